// A place where variants run: memory, clock, facts. The harness knows devices only through this
// page.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "harness/variant.hpp"
#include "harness/verdict.hpp"

namespace xcorr {

// stream: launches back to back (throughput); latency: synchronised after each; graph: replay of a
// captured launch; cold: caches flushed before each. Never mixed (DESIGN section 5).
enum class Mode { stream, latency, graph, cold };
std::string_view to_string(Mode mode);
Mode parse_mode(const std::string& text);

// Device memory, aligned to 256 bytes, released with the object.
using Buffer = std::unique_ptr<void, std::function<void(void*)>>;

using Seconds = double;

class Device {
 public:
  virtual ~Device() = default;

  virtual Backend backend() const = 0;
  // Rows of one kind of machine meet under this key, rows of two kinds cannot.
  virtual std::string machine_key() const = 0;
  virtual nlohmann::json facts() const = 0;
  virtual Peaks peaks(Precision precision) const = 0;
  virtual Support supports(Mode mode) const = 0;
  // Whether the variant can compute this here: its backend, forms, precision classes, and then what
  // it says itself, which may throw. The one place where that is decided.
  Support runs(const Variant& variant, const PlanRequest& request) const;
  // What the device can do at most, measured (--ceilings); empty where nobody has written it.
  virtual nlohmann::json ceilings() = 0;

  virtual std::size_t available_bytes() const = 0;
  virtual Buffer allocate(std::size_t bytes) = 0;
  virtual void upload(void* device, const void* host, std::size_t bytes) = 0;
  virtual void download(void* host, const void* device, std::size_t bytes) = 0;
  virtual void fill(void* device, unsigned char byte, std::size_t bytes) = 0;
  // True where the host reads device pointers directly and transfers do not exist.
  virtual bool host_memory() const = 0;

  // Makes this the device of the calling thread, which need not be the one that opened it.
  virtual void make_current() {}
  virtual void* stream() = 0;
  // Waits for the stream; throws std::runtime_error with the device's own words after a fault.
  virtual void synchronize() = 0;
  // Asked after an error: true when no later call of this process can succeed, as after an illegal
  // address on CUDA. An error that harms no later call is forgotten.
  virtual bool lost() { return false; }
  // Energy that the device has taken since some moment in the past, in microjoules, once all work
  // has ended; empty where nothing counts it.
  virtual std::optional<double> energy_uj() { return std::nullopt; }
  // What the host needs at this moment for a launch of nothing, back to back, the shortest of a few
  // batches: what is shorter than a few of these is timed at the pace of the host. Empty where
  // nothing is launched.
  virtual std::optional<Seconds> empty_launch() { return std::nullopt; }
  // Duration of `count` calls of `compute` in `mode`.
  virtual Seconds time(const std::function<void()>& compute, Index count, Mode mode) = 0;
  // The shortest batch that this device's clock measures well.
  virtual Seconds shortest_batch() const = 0;
  // Mean duration of each phase of `compute`, "rest" included, by name.
  virtual std::map<std::string, Seconds> phases(
      const std::function<void(PhaseMarks&)>& compute) = 0;

  // Truth for this device's memory, shared by all points of one problem; the last one is kept.
  std::shared_ptr<Truth> truth(const Problem& problem, Precision precision,
                               AlgorithmClass algorithm_class, std::uint64_t seed);
  // Bytes of this device that making this truth takes; 0 when it is the one that is kept. Releases
  // a kept one of another problem.
  std::size_t truth_bytes(const Problem& problem, Precision precision,
                          AlgorithmClass algorithm_class, std::uint64_t seed);

 protected:
  virtual std::unique_ptr<Truth> make_truth(const Problem& problem, Precision precision,
                                            AlgorithmClass algorithm_class, std::uint64_t seed) = 0;
  virtual std::size_t new_truth_bytes(const Problem& problem) const = 0;

 private:
  std::string kept_truth_name_;
  std::shared_ptr<Truth> kept_truth_;
};

// "cpu", "cuda" or "cuda:N". UserError when there is no such device.
std::unique_ptr<Device> open_device(const std::string& name);

std::unique_ptr<Device> open_cpu();
std::unique_ptr<Device> open_cuda(int index);  // only in builds with CUDA

// "4.29 GB": what a message about memory shows.
std::string bytes_text(double bytes);

}  // namespace xcorr
