#include <cuda_runtime.h>
#include <cufft.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "harness/device/cuda_owned.hpp"
#include "harness/device/cuda_timer.hpp"
#include "harness/device/device.hpp"
#include "harness/device/device_kernels.hpp"
#include "harness/device/nvml.hpp"
#include "harness/problem/error.hpp"
#include "harness/verdict/truth_cuda.hpp"

namespace xcorr {
namespace {

CudaEvent recorded_event(cudaStream_t stream) {
  CudaEvent event = make_event();
  require_cuda(cudaEventRecord(event.get(), stream), "event");
  return event;
}

// The edges of a graph: at most `count`, which becomes the number of all.
cudaError_t edges_of(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to,
                     std::size_t& count) {
#if CUDART_VERSION >= 13000
  // A dependent launch has data at its edge, and is refused where nobody asks for them.
  std::vector<cudaGraphEdgeData> data(from == nullptr ? 0 : count);
  return cudaGraphGetEdges(graph, from, to, from == nullptr ? nullptr : data.data(), &count);
#else
  return cudaGraphGetEdges(graph, from, to, &count);
#endif
}

// What a call enqueues, read from a graph that captured it.
Launches launches_in(cudaGraph_t graph) {
  const std::vector<cudaGraphNode_t> nodes = nodes_of(graph);
  std::size_t edges = 0;
  require_cuda(edges_of(graph, nullptr, nullptr, edges), "graph");
  std::vector<cudaGraphNode_t> from(edges), to(edges);
  require_cuda(edges_of(graph, from.data(), to.data(), edges), "graph");
  std::unordered_map<cudaGraphNode_t, Index> number;
  for (std::size_t i = 0; i < nodes.size(); ++i) number.emplace(nodes[i], static_cast<Index>(i));
  std::vector<std::pair<Index, Index>> pairs;
  for (std::size_t i = 0; i < edges; ++i) pairs.emplace_back(number.at(from[i]), number.at(to[i]));
  return count_launches(static_cast<Index>(nodes.size()), pairs);
}

// A mark is an event in the stream; the kernels of a phase lie between two events.
class CudaMarks : public PhaseMarks {
 public:
  explicit CudaMarks(cudaStream_t stream) : stream_(stream) {}
  void mark(std::string_view name) override { marks.emplace_back(name, recorded_event(stream_)); }
  std::vector<std::pair<std::string, CudaEvent>> marks;

 private:
  cudaStream_t stream_;
};

// FMAs of one SM in one cycle; 0 where the rate of the compute capability is unknown.
double fmas_per_sm_cycle(int major, int minor, Precision precision) {
  const int capability = 10 * major + minor;
  const bool fast_fp64 =
      capability == 70 || capability == 80 || capability == 90 || capability == 100;
  const double fp32 = capability == 70 || capability == 75 || capability == 80 ? 64
                      : capability >= 86 && capability <= 121                  ? 128
                                                                               : 0;
  // Dense products of tensor cores, where the rate is known.
  const double tf32 = capability == 80 ? 512 : capability == 90 ? 1024 : 0;
  switch (precision) {
    case Precision::fp64:
      return fp32 == 0                               ? 0
             : capability == 90 || capability == 100 ? 128  // tensor cores included
             : capability == 80                      ? 64
             : fast_fp64                             ? 32
                                                     : 2;
    case Precision::fp32:
      return fp32;
    case Precision::tf32:
    case Precision::three_tf32:
      return tf32;
    default:
      return 2 * tf32;
  }
}

int attribute(cudaDeviceAttr which, int index) {
  int value = 0;
  require_cuda(cudaDeviceGetAttribute(&value, which, index), "device attribute");
  return value;
}

std::string bus_id(int index) {
  char text[32] = "";
  require_cuda(cudaDeviceGetPCIBusId(text, sizeof text, index), "bus id");
  return text;
}

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

class Cuda : public Device {
 public:
  explicit Cuda(int index) : index_(index), nvml_(bus_id(index)) {
    require_cuda(cudaSetDevice(index), "device");
    require_cuda(cudaGetDeviceProperties(&properties_, index), "device properties");
    // The driver takes most of a millisecond to answer for a clock.
    clock_hz_ = 1e3 * attribute(cudaDevAttrClockRate, index);
    memory_clock_hz_ = 1e3 * attribute(cudaDevAttrMemoryClockRate, index);
    cudaStream_t stream{};
    require_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
    stream_.reset(stream);
  }

  Backend backend() const override { return Backend::cuda; }

  std::string machine_key() const override {
    const double gib = static_cast<double>(properties_.totalGlobalMem) / (1 << 30);
    return slug(properties_.name) + "-" + std::to_string(properties_.multiProcessorCount) + "-sm-" +
           std::to_string(std::lround(gib)) + "-gib";
  }

  nlohmann::json facts() const override {
    int runtime = 0, driver = 0, transforms = 0;
    cudaRuntimeGetVersion(&runtime);
    cudaDriverGetVersion(&driver);
    cufftGetVersion(&transforms);
    std::uint64_t uuid = 0;  // a hash: it distinguishes two GPUs without identifying one
    for (const char c : properties_.uuid.bytes) uuid = mix(uuid ^ static_cast<unsigned char>(c));
    const Peaks fp32 = peaks(Precision::fp32);
    const auto number = [](const auto& value) {
      return value ? nlohmann::json(*value) : nlohmann::json(nullptr);
    };
    return {{"device", "cuda:" + std::to_string(index_)},
            {"device_name", properties_.name},
            {"compute_capability",
             std::to_string(properties_.major) + "." + std::to_string(properties_.minor)},
            {"multiprocessors", properties_.multiProcessorCount},
            {"memory_bytes", properties_.totalGlobalMem},
            {"l2_bytes", properties_.l2CacheSize},
            {"shared_bytes_per_block", properties_.sharedMemPerBlockOptin},
            {"max_clock_mhz", default_clock_mhz()},
            {"clock_mhz", number(nvml_.sm_clock_mhz())},
            {"memory_clock_mhz", number(nvml_.memory_clock_mhz())},
            {"temperature_c", number(nvml_.temperature_c())},
            {"throttle_reasons", nvml_.throttle_reasons()},
            {"uuid_hash", uuid},
            {"driver", nvml_.driver_version()},
            {"cuda", version_text(runtime)},
            {"cuda_driver", version_text(driver)},
            {"cufft_version", std::to_string(transforms)},
            {"guard", fp32.fmas_per_s > 0 ? "SMs x lanes x maximum clock"
                                          : "off: this compute capability is not known"},
            {"peak_fma_per_s", fp32.fmas_per_s},
            {"peak_bytes_per_s", fp32.bytes_per_s}};
  }

  Peaks peaks(Precision precision) const override {
    const double sms = properties_.multiProcessorCount;
    const double lanes = fmas_per_sm_cycle(properties_.major, properties_.minor, precision);
    const double memory =
        2.0 * memory_clock_hz_ * attribute(cudaDevAttrGlobalMemoryBusWidth, index_) / 8;
    // An SM moves at most 64 bytes in and 64 out a cycle through its L2 port.
    return {sms * lanes * clock_hz_, memory, 2.0 * properties_.l2CacheSize, sms * 128 * clock_hz_};
  }

  Support supports(Mode) const override { return yes(); }
  nlohmann::json ceilings() override { return measure_ceilings(*this); }

  std::size_t available_bytes() const override {
    std::size_t free = 0, total = 0;
    require_cuda(cudaMemGetInfo(&free, &total), "free memory");
    return free;
  }
  Buffer allocate(std::size_t bytes) override {
    void* memory = nullptr;
    require_cuda(cudaMalloc(&memory, bytes), ("allocating " + bytes_text(bytes)).c_str());
    return Buffer(memory, [](void* p) { cudaFree(p); });
  }
  void upload(void* device, const void* host, std::size_t bytes) override {
    require_cuda(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream_.get()),
                 "upload");
    synchronize();
  }
  void download(void* host, const void* device, std::size_t bytes) override {
    require_cuda(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, stream_.get()),
                 "download");
    synchronize();
  }
  void fill(void* device, unsigned char byte, std::size_t bytes) override {
    require_cuda(cudaMemsetAsync(device, byte, bytes, stream_.get()), "fill");
  }
  bool host_memory() const override { return false; }

  void make_current() override { require_cuda(cudaSetDevice(index_), "device"); }
  void* stream() override { return stream_.get(); }
  std::unique_ptr<CallerStreams> caller_streams() override {
    return make_cuda_caller_streams(index_);
  }
  void synchronize() override { require_cuda(cudaStreamSynchronize(stream_.get()), "device"); }
  bool lost() override {
    cudaGetLastError();  // clears the error, or the check of the next launch would report it
    return cudaDeviceSynchronize() != cudaSuccess;
  }

  std::optional<double> energy_uj() override { return nvml_.energy_uj(); }

  Timed sample(const std::function<void()>& compute, Index count, Mode mode, Pace& pace) override {
    if (!gate_) gate_.emplace(properties_.multiProcessorCount, stream_.get());
    if (mode == Mode::stream) {
      if (queue_ == 0) {
        launch_empty(stream_.get());  // CUDA loads a kernel with its first launch
        synchronize();
        const Index held = search(*gate_, [&] { launch_empty(stream_.get()); }, kMostLaunches);
        queue_ = std::max<Index>(held, 256);  // every queue is longer; the host was held up
      }
      const auto launches = [&] { return launches_of(compute); };
      // A first call with many launches would run in vain, since no gate of the usual time holds it.
      if (pace.calls == 0 && (count > 1 || pace.may_be_many)) pace = pace_of(launches(), queue_);
      const Timed timed = time_gated(*gate_, compute, count, pace, queue_, launches);
      if (!pace.by_host) return timed;
    }
    SmClock& clock = gate_->clock();
    clock.begin(stream_.get());
    synchronize();
    const Seconds seconds = time_ungated(compute, count, mode);
    clock.end(stream_.get());
    synchronize();
    return {seconds, clock.mhz()};
  }
  double default_clock_mhz() const override { return clock_hz_ / 1e6; }

  std::optional<Seconds> empty_launch(Mode mode) override {
    if (mode == Mode::stream && launch_time_) return launch_time_;
    constexpr Index kLaunches = 400;
    const std::function<void()> launch = [&] { launch_empty(stream_.get()); };
    launch();  // CUDA loads a kernel with its first launch
    synchronize();
    Pace pace;
    const auto batch = [&] { return sample(launch, kLaunches, mode, pace).seconds; };
    const Seconds once = std::min({batch(), batch(), batch()}) / static_cast<double>(kLaunches);
    if (mode == Mode::stream && !pace.by_host) launch_time_ = once;
    return once;
  }

  Seconds shortest_batch() const override { return 2e-3; }  // event resolution: half a microsecond

  std::map<std::string, Seconds> phases(const std::function<void(PhaseMarks&)>& compute) override {
    constexpr int kRepetitions = 10;
    std::vector<CudaMarks> all;
    const auto call = [&] {
      CudaMarks& marks = all.emplace_back(stream_.get());
      marks.mark("rest");
      compute(marks);
      marks.mark("end");
    };
    call();
    synchronize();
    if (all.front().marks.size() == 2) return {};
    const Seconds once = elapsed(all.front().marks.front().second, all.front().marks.back().second);
    const int repetitions = once < 0.01 ? kRepetitions : 1;
    if (repetitions > 1) {
      all.clear();
      // For short phases a spinning kernel holds the stream until all calls are enqueued, so that
      // no event waits for the host.
      if (once < 1e-3) launch_spin(5'000'000, stream_.get());
      for (int i = 0; i < repetitions; ++i) call();
      synchronize();
    }
    std::map<std::string, Seconds> totals;
    for (const CudaMarks& marks : all) {
      for (std::size_t i = 0; i + 1 < marks.marks.size(); ++i) {
        totals[marks.marks[i].first] +=
            elapsed(marks.marks[i].second, marks.marks[i + 1].second) / repetitions;
      }
    }
    return totals;
  }

 protected:
  std::unique_ptr<Truth> make_truth(const Problem& problem, Precision precision,
                                    AlgorithmClass algorithm_class, std::uint64_t seed) override {
    return make_cuda_truth(problem, precision, algorithm_class, seed, stream_.get());
  }
  std::size_t new_truth_bytes(const Problem& problem) const override {
    return cuda_truth_bytes(problem);
  }

  std::unique_ptr<ScoreReference> score_reference(const ScoreData& data) override {
    return make_cuda_score_reference(data, stream_.get());
  }
  Index score_definition_fmas() const override { return Index{1} << 40; }
  std::size_t score_reference_bytes(const Problem& problem) const override {
    return cuda_score_bytes(problem);
  }

 private:
  // Device time between an event before the work that `work` enqueues and one after it.
  template <typename Work>
  Seconds time_between(Work&& work) {
    const CudaEvent stop = make_event();
    const CudaEvent start = recorded_event(stream_.get());
    work();
    require_cuda(cudaEventRecord(stop.get(), stream_.get()), "event");
    synchronize();
    return elapsed(start, stop);
  }

  Seconds time_ungated(const std::function<void()>& compute, Index count, Mode mode) {
    switch (mode) {
      case Mode::latency:
        return time_latency(compute, count);
      case Mode::graph:
        return time_graph(compute, count);
      case Mode::cold:
        return time_cold(compute, count);
      default:
        return time_between([&] {
          for (Index i = 0; i < count; ++i) compute();
        });
    }
  }

  Seconds time_latency(const std::function<void()>& compute, Index count) {
    synchronize();
    const auto start = std::chrono::steady_clock::now();
    for (Index i = 0; i < count; ++i) {
      compute();
      synchronize();
    }
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

  CudaGraph captured(const std::function<void()>& compute) {
    cudaGraph_t captured{};
    require_cuda(cudaStreamBeginCapture(stream_.get(), cudaStreamCaptureModeThreadLocal),
                 "graph capture");
    try {
      compute();
    } catch (...) {  // a stream that stays in capture mode refuses all later calls
      cudaStreamEndCapture(stream_.get(), &captured);
      const CudaGraph unused(captured);
      throw;
    }
    require_cuda(cudaStreamEndCapture(stream_.get(), &captured), "graph capture");
    return CudaGraph(captured);
  }

  // Launches of a call; none where it cannot be captured, as a call that waits for its own work.
  Launches launches_of(const std::function<void()>& compute) {
    try {
      return launches_in(captured(compute).get());
    } catch (const std::exception&) {
      cudaGetLastError();  // clears the error, or the check of the next launch would report it
      return {};
    }
  }

  Seconds time_graph(const std::function<void()>& compute, Index count) {
    const CudaGraph graph = captured(compute);
    cudaGraphExec_t instantiated{};
    require_cuda(cudaGraphInstantiate(&instantiated, graph.get(), 0), "graph");
    const CudaGraphExec executable(instantiated);
    const auto launch = [&] {
      require_cuda(cudaGraphLaunch(executable.get(), stream_.get()), "graph launch");
    };
    launch();  // the first launch uploads the graph
    synchronize();
    return time_between([&] {
      for (Index i = 0; i < count; ++i) launch();
    });
  }

  Seconds time_cold(const std::function<void()>& compute, Index count) {
    if (!flush_) flush_ = allocate(flush_bytes());
    Seconds total = 0;
    for (Index i = 0; i < count; ++i) {
      fill(flush_.get(), static_cast<unsigned char>(i), flush_bytes());
      total += time_between(compute);
    }
    return total;
  }
  std::size_t flush_bytes() const { return 4 * static_cast<std::size_t>(properties_.l2CacheSize); }

  int index_;
  Nvml nvml_;
  cudaDeviceProp properties_{};
  double clock_hz_ = 0, memory_clock_hz_ = 0;
  CudaStream stream_;
  std::optional<CudaGate> gate_;        // with the first sample: a session has none
  Index queue_ = 0;                     // launches that the queue of the stream holds; 0: not known
  std::optional<Seconds> launch_time_;  // of an empty launch behind a gate: the device's own
  Buffer flush_;
};

}  // namespace

std::unique_ptr<Device> open_cuda(int index) {
  int count = 0;
  const cudaError_t code = cudaGetDeviceCount(&count);
  if (code != cudaSuccess || count == 0) {
    throw UserError(
        "device 'cuda': " +
        (code == cudaSuccess ? std::string("the machine has none") : cudaGetErrorString(code)) +
        "; use --device cpu");
  }
  if (index >= count) {
    throw UserError("device 'cuda:" + std::to_string(index) +
                    "': this machine has cuda:0 to cuda:" + std::to_string(count - 1) +
                    "; use one of these");
  }
  return std::make_unique<Cuda>(index);
}

}  // namespace xcorr
