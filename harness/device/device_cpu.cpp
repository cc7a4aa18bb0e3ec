#include <omp.h>
#include <sched.h>
#include <unistd.h>

#include <cctype>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <vector>

#include "harness/device/device.hpp"
#include "harness/device/host_memory.hpp"
#include "harness/problem/error.hpp"

namespace xcorr {
namespace {

using Clock = std::chrono::steady_clock;

Seconds since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::string first_match(const char* path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(key, 0) != 0) continue;
    const std::size_t start = line.find_first_not_of(" \t:", key.size());
    return start == std::string::npos ? "" : line.substr(start);
  }
  return "";
}

int usable_cores() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : omp_get_num_procs();
}

}  // namespace

std::string cpu_model() {
  for (const char* key : {"model name", "CPU part", "cpu"}) {
    const std::string name = first_match("/proc/cpuinfo", key);
    if (!name.empty()) return name;
  }
  return "unknown-cpu";
}

std::string slug(const std::string& text) {
  using std::regex_replace, std::regex;
  const std::string plain = regex_replace(text, regex("\\((R|TM)\\)", regex::icase), "");
  std::string result = regex_replace(plain, regex("[^A-Za-z0-9]+"), "-");
  result = regex_replace(result, regex("^-|-$"), "");
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

namespace {

// float32 FMAs that a core starts in a cycle: the maximum of all CPUs with this instruction set.
double fmas_per_cycle() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return 32;
  if (__builtin_cpu_supports("fma")) return 16;
  return 8;
#else
  return 32;
#endif
}

// In Hz; 0 where the operating system does not give it.
double max_clock() {
  return 1e3 * number_in("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq").value_or(0);
}
// No CPU is sold with a higher clock. Used where the operating system does not give the maximum.
constexpr double kHighestClock = 6.5e9;

class CpuMarks : public PhaseMarks {
 public:
  void start() {
    current_ = "rest";
    since_ = Clock::now();
  }
  void mark(std::string_view name) override {
    const Clock::time_point now = Clock::now();
    totals[current_] += std::chrono::duration<double>(now - since_).count();
    current_ = name;
    since_ = now;
  }
  std::map<std::string, Seconds> totals;

 private:
  std::string current_;
  Clock::time_point since_;
};

class Cpu : public Device {
 public:
  Backend backend() const override { return Backend::cpu; }

  std::string machine_key() const override {
    const int cores = usable_cores();
    return slug(cpu_model()) + "-" + std::to_string(cores) + (cores == 1 ? "-core" : "-cores");
  }

  nlohmann::json facts() const override {
    return {{"device", "cpu"},
            {"device_name", cpu_model()},
            {"cores", usable_cores()},
            {"memory_bytes", static_cast<double>(sysconf(_SC_PHYS_PAGES)) *
                                 static_cast<double>(sysconf(_SC_PAGESIZE))},
            {"clock_mhz", std::atof(first_match("/proc/cpuinfo", "cpu MHz").c_str())},
            {"throttle_reasons", ""},
            {"guard", max_clock() > 0 ? "maximum clock from the operating system"
                                      : "maximum clock unknown, assumed as 6.5 GHz"},
            {"peak_fma_per_s", peaks(Precision::fp32).fmas_per_s},
            {"peak_bytes_per_s", peaks(Precision::fp32).bytes_per_s}};
  }

  Peaks peaks(Precision precision) const override {
    const double clock = max_clock() > 0 ? max_clock() : kHighestClock;
    const double cores = usable_cores();
    const double lanes = fmas_per_cycle() / (precision == Precision::fp64 ? 2 : 1);
    // Data of small problems stay in the first-level cache: two loads and one store of a full
    // vector a cycle.
    return {cores * lanes * clock, cores * 192 * clock};
  }

  Support supports(Mode mode) const override {
    return mode == Mode::graph ? no("mode graph needs a CUDA device") : yes();
  }

  nlohmann::json ceilings() override { return nlohmann::json::object(); }

  std::size_t available_bytes() const override { return available_host_bytes(); }

  Buffer allocate(std::size_t bytes) override {
    void* memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
    if (!memory) {
      throw OutOfMemory("host memory: the system refused " + bytes_text(bytes) +
                        "; use a smaller problem");
    }
    return Buffer(memory, [](void* p) { std::free(p); });
  }

  void upload(void* device, const void* host, std::size_t bytes) override {
    std::memcpy(device, host, bytes);
  }
  void download(void* host, const void* device, std::size_t bytes) override {
    std::memcpy(host, device, bytes);
  }
  void fill(void* device, unsigned char byte, std::size_t bytes) override {
    std::memset(device, byte, bytes);
  }
  bool host_memory() const override { return true; }

  void* stream() override { return nullptr; }
  void synchronize() override {}

  // Modes stream and paper are one here: a call has ended when it returns.
  Timed sample(const std::function<void()>& compute, Index count, Mode mode,
               Pace& /*pace*/) override {
    const Index calls = mode == Mode::cold ? 1 : count;  // between two readings of the clock
    Seconds total = 0;
    for (Index done = 0; done < count; done += calls) {
      if (mode == Mode::cold) flush_caches();
      const Clock::time_point start = Clock::now();
      for (Index i = 0; i < calls; ++i) compute();
      total += since(start);
    }
    return {total};
  }

  // Reading the clock takes tens of nanoseconds.
  Seconds shortest_batch() const override { return 100e-6; }

  std::map<std::string, Seconds> phases(const std::function<void(PhaseMarks&)>& compute) override {
    constexpr int kRepetitions = 5;
    CpuMarks marks;
    int done = 0;
    // One repetition is enough without phases, and for calls longer than a second.
    do {
      const Clock::time_point start = Clock::now();
      marks.start();
      compute(marks);
      marks.mark("rest");
      ++done;
      if (since(start) > 1) break;
    } while (done < kRepetitions && marks.totals.size() > 1);
    for (auto& [name, seconds] : marks.totals) seconds /= done;
    return marks.totals;
  }

 protected:
  std::unique_ptr<Truth> make_truth(const Problem& problem, Precision precision,
                                    AlgorithmClass algorithm_class, std::uint64_t seed) override {
    return std::make_unique<HostTruth>(problem, precision, algorithm_class, seed, cache_bytes());
  }
  std::size_t new_truth_bytes(const Problem& problem) const override {
    return HostTruth::host_bytes(problem, cache_bytes());
  }

 private:
  std::size_t cache_bytes() const { return available_bytes() / 2; }

  // Writes twice the last-level cache, from every core.
  void flush_caches() {
    if (flush_.empty()) {
      const long level3 = sysconf(_SC_LEVEL3_CACHE_SIZE);
      flush_.resize(2 * static_cast<std::size_t>(level3 > 0 ? level3 : 64l << 20));
    }
    ++flush_value_;
#pragma omp parallel for schedule(static)
    for (std::size_t i = 0; i < flush_.size(); i += 64) flush_[i] = flush_value_;
  }

  std::vector<unsigned char> flush_;
  unsigned char flush_value_ = 0;
};

}  // namespace

std::unique_ptr<Device> open_cpu() { return std::make_unique<Cpu>(); }

}  // namespace xcorr
