// A device on which variants run: memory, clock and facts. The rest of the harness knows devices
// only through this page.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "harness/caller/streams.hpp"
#include "harness/truth/score_reference.hpp"
#include "harness/variant.hpp"
#include "harness/verdict/verdict.hpp"

namespace xcorr {

// How calls follow each other while they are timed (docs/design.md, Time). Times of two modes are
// never mixed. stream: back to back, all enqueued before the first one starts (throughput).
// latency: the host waits after each call. graph: replay of a captured call. cold: the caches are
// flushed before each call. paper: back to back at the pace of the host, as in the paper.
enum class Mode { stream, latency, graph, cold, paper };
std::string_view to_string(Mode mode);
Mode parse_mode(const std::string& text);

// Device memory, aligned to 256 bytes, released with the object.
using Buffer = std::unique_ptr<void, std::function<void(void*)>>;

using Seconds = double;

// Time of some calls.
struct Timed {
  Seconds seconds = 0;
  double sm_mhz = 0;  // mean clock of an SM meanwhile; 0 where it is not known

  void add(const Timed& other) {
    const Seconds total = seconds + other.seconds;
    const bool known = other.sm_mhz > 0 && (seconds == 0 || sm_mhz > 0);
    sm_mhz = known ? (sm_mhz * seconds + other.sm_mhz * other.seconds) / total : 0;
    seconds = total;
  }
};

// What samples of one point in mode stream have shown (time_gated in gated.hpp).
struct Pace {
  Index calls = 0;       // this many calls take at most half of the queue; 0: not known yet
  bool limited = false;  // twice as many do not fit
  bool by_host =
      false;  // a call waits for its own work, or for space in the queue: the host makes the pace
  bool many = false;  // a call has more launches than the queue of one stream holds
  Seconds hold = 0;   // of a gate before such a call
  bool may_be_many =
      false;  // a call may have a launch for each of many matrices: they are counted before the first one
};

// Copies between a device and memory that is not pinned: both inputs there, the output back.
struct Transfers {
  double upload_us, download_us;
};
// Bytes of left, right and output.
using TransferBytes = std::array<std::size_t, 3>;

class Device {
 public:
  virtual ~Device() = default;

  virtual Backend backend() const = 0;
  // The same for all machines of one kind, different for machines of two kinds.
  virtual std::string machine_key() const = 0;
  virtual nlohmann::json facts() const = 0;
  virtual Peaks peaks(Precision precision) const = 0;
  virtual Support supports(Mode mode) const = 0;
  // Whether the variant computes the request on this device. Only this function decides it: by
  // backend, forms, precision classes and fields, then by variant.supports, which may throw.
  Support runs(const Variant& variant, const PlanRequest& request) const;
  // Whether the backend of the variant is that of this device.
  Support runs(const Variant& variant) const;
  // The measured maximal rates (--ceilings); empty where they cannot be measured.
  virtual nlohmann::json ceilings() = 0;

  virtual std::size_t available_bytes() const = 0;
  virtual Buffer allocate(std::size_t bytes) = 0;
  virtual void upload(void* device, const void* host, std::size_t bytes) = 0;
  virtual void download(void* host, const void* device, std::size_t bytes) = 0;
  virtual void fill(void* device, unsigned char byte, std::size_t bytes) = 0;
  // True where the host reads device pointers, so that there are no transfers.
  virtual bool host_memory() const = 0;

  // Makes this the current device of the calling thread, which may not have opened it.
  virtual void make_current() {}
  virtual void* stream() = 0;
  // What a session for arrays of this device asks of it. This device is current.
  virtual std::unique_ptr<CallerStreams> caller_streams() {
    return std::make_unique<CallerStreams>();
  }
  // Waits for the stream. After a fault it throws std::runtime_error with the message of the
  // device.
  virtual void synchronize() = 0;
  // Comes after an error. True where no later call of this process can succeed, as after an illegal
  // address on CUDA. Clears an error that does not affect later calls.
  virtual bool lost() { return false; }
  // Energy in microjoules since a fixed moment in the past; empty without a counter. Comes after
  // all work has ended.
  virtual std::optional<double> energy_uj() { return std::nullopt; }
  // Time of one launch of an empty kernel in `mode`; the shortest of a few batches. In mode paper it
  // is the pace of the host, which limits calls that are not several times longer. Empty on the CPU.
  virtual std::optional<Seconds> empty_launch(Mode /*mode*/) { return std::nullopt; }
  // Time of `count` calls of `compute` in `mode`. `pace` is kept between the samples of a point.
  virtual Timed sample(const std::function<void()>& compute, Index count, Mode mode,
                       Pace& pace) = 0;
  Seconds time(const std::function<void()>& compute, Index count, Mode mode) {
    Pace pace;
    return sample(compute, count, mode, pace).seconds;
  }
  // The clock that an SM has unless something slows it down; 0 where it is not known.
  virtual double default_clock_mhz() const { return 0; }
  // The shortest batch that the clock resolves well.
  virtual Seconds shortest_batch() const = 0;
  // Mean time of each phase of `compute` by name, "rest" included; empty where it marks none.
  virtual std::map<std::string, Seconds> phases(
      const std::function<void(PhaseMarks&)>& compute) = 0;

  // Truth for the memory of this device, shared by all points of one problem. The last one is
  // cached.
  std::shared_ptr<Truth> truth(const Problem& problem, Precision precision,
                               AlgorithmClass algorithm_class, std::uint64_t seed);
  // Bytes of this device that computing this truth takes; 0 when it is cached. Releases a cached
  // truth of another problem.
  std::size_t truth_bytes(const Problem& problem, Precision precision,
                          AlgorithmClass algorithm_class, std::uint64_t seed);
  // What is measured already: transfers depend on their sizes alone, and no point needs to repeat them.
  std::map<TransferBytes, Transfers>& known_transfers() { return known_transfers_; }
  // The surfaces that the truth of a problem with fields expects. `data` must outlive them.
  virtual std::unique_ptr<ScoreReference> score_reference(const ScoreData& data) {
    return make_host_score_reference(data);
  }
  // Largest work in FMAs, about a second, for which the definition gives these surfaces; transforms
  // give larger ones.
  virtual Index score_definition_fmas() const { return Index{1} << 28; }

 protected:
  // Of plain problems (Problem::is_plain).
  virtual std::unique_ptr<Truth> make_truth(const Problem& problem, Precision precision,
                                            AlgorithmClass algorithm_class, std::uint64_t seed) = 0;
  virtual std::size_t new_truth_bytes(const Problem& problem) const = 0;
  // Bytes of this device that score_reference takes.
  virtual std::size_t score_reference_bytes(const Problem& problem) const;

 private:
  std::string cached_truth_name_;
  std::shared_ptr<Truth> cached_truth_;
  std::map<TransferBytes, Transfers> known_transfers_;
};

// "cpu", "cuda" or "cuda:N". UserError when there is no such device.
std::unique_ptr<Device> open_device(const std::string& name);

std::unique_ptr<Device> open_cpu();
std::unique_ptr<Device> open_cuda(int index);  // only in builds with CUDA

// A name as part of a machine_key: "Intel(R) Xeon(R) CPU @ 2.50GHz" -> "intel-xeon-cpu-2-50ghz".
std::string slug(const std::string& text);

// "4.29 GB": a number of bytes in a message.
std::string bytes_text(std::size_t bytes);

}  // namespace xcorr
