// The device: host memory, and the CPU's times. What xcorr-bench verifies is the shrunk problem, which lies
// at the beginning of the arrays of the whole one.
#include "harness/device/device.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "harness/problem/error.hpp"
#include "harness/reduce/reduce.hpp"
#include "tests/stand_in/shrunk.hpp"
#include "tests/support/forwarding_device.hpp"

namespace xcorr {
namespace {

// A shrunk problem needs no more at either end of an array.
constexpr std::size_t kEnd = std::size_t{1} << 20;

class StandIn final : public ForwardingDevice {
 public:
  Device& cpu() { return *cpu_; }

  Backend backend() const override { return Backend::cuda; }
  std::string machine_key() const override { return "stand-in"; }
  nlohmann::json facts() const override {
    return {{"device", "cuda:0"},
            {"device_name", "stand-in for a GPU"},
            {"compute_capability", "9.0"},
            {"multiprocessors", 132},
            {"memory_bytes", available_bytes()},
            {"l2_bytes", 50 << 20},
            {"shared_bytes_per_block", 227 * 1024},
            {"max_clock_mhz", 1980},
            {"clock_mhz", 1980},
            {"memory_clock_mhz", 2619},
            {"temperature_c", 40},
            {"throttle_reasons", nlohmann::json::array()},
            {"uuid_hash", 0},
            {"driver", "none"},
            {"cuda", "none"},
            {"cuda_driver", "none"},
            {"cufft_version", "none"},
            {"guard", "off: this is no GPU"},
            {"peak_fma_per_s", 0},
            {"peak_bytes_per_s", 0}};
  }
  Peaks peaks(Precision) const override { return {0, 0, 0, 0}; }
  Support supports(Mode) const override { return yes(); }
  // Made up, so that figures have a floor.
  nlohmann::json ceilings() override {
    return {{"copy_bytes_per_s", 3e12},       {"fill_bytes_per_s", 3e12},
            {"fp32_fma_flop_per_s", 5e13},    {"cublas_fp32_flop_per_s", 4e13},
            {"cublas_tf32_flop_per_s", 4e14}, {"empty_launch_stream_us", 2.0},
            {"empty_launch_host_us", 3.0},    {"empty_launch_graph_us", 1.0},
            {"shuffle_bytes_per_s", 3e13},    {"shared_bytes_per_s", 3e13}};
  }

  std::size_t available_bytes() const override { return std::size_t{80} << 30; }
  void fill(void* device, unsigned char byte, std::size_t bytes) override {
    auto* const to = static_cast<unsigned char*>(device);
    const std::size_t end = stand_in::shrinks() ? std::min(bytes, kEnd) : bytes;
    std::memset(to, byte, end);
    if (bytes > end) std::memset(to + (bytes - end), byte, end);
  }
  bool host_memory() const override { return false; }
  std::optional<Seconds> empty_launch(Mode) override { return 2e-6; }
  // One call stands for all.
  Timed sample(const std::function<void()>& compute, Index count, Mode, Pace&) override {
    return {static_cast<double>(count) * cpu_->time(compute, 1, Mode::stream), 1980};
  }
  double default_clock_mhz() const override { return 1980; }
  Seconds shortest_batch() const override { return 2e-3; }

 protected:
  std::unique_ptr<Truth> make_truth(const Problem&, Precision, AlgorithmClass,
                                    std::uint64_t) override {
    throw std::logic_error("stand-in: truth is the CPU's");
  }
  std::size_t new_truth_bytes(const Problem&) const override { return 0; }
  std::size_t score_reference_bytes(const Problem&) const override { return 0; }
};

}  // namespace

std::unique_ptr<Device> open_cuda(int index) {
  if (index != 0) {
    throw UserError("device 'cuda:" + std::to_string(index) +
                    "': the stand-in has cuda:0 alone; use it");
  }
  return std::make_unique<StandIn>();
}

std::shared_ptr<Truth> Device::truth(const Problem& problem, Precision precision,
                                     AlgorithmClass algorithm_class, std::uint64_t seed) {
  if (auto* const stand_in = dynamic_cast<StandIn*>(this)) {
    return stand_in->cpu().truth(stand_in::computed(problem), precision, algorithm_class, seed);
  }
  using Made =
      std::shared_ptr<Truth> (*)(Device*, const Problem&, Precision, AlgorithmClass, std::uint64_t);
  static const auto next = reinterpret_cast<Made>(
      dlsym(RTLD_NEXT, "_ZN5xcorr6Device5truthERKNS_7ProblemENS_9PrecisionENS_14AlgorithmClassEm"));
  if (!next) throw std::runtime_error("stand-in: libxcorr.so has no xcorr::Device::truth()");
  return next(this, problem, precision, algorithm_class, seed);
}

void reduce_on_cuda(const Problem& problem, Precision precision, const void* surface, void* scratch,
                    void* out, void* /*stream*/) {
  reduce_on_cpu(stand_in::computed(problem), precision, surface, scratch, out);
}

}  // namespace xcorr
