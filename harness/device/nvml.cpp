#include "harness/device/nvml.hpp"

#include <dlfcn.h>

#include <utility>

namespace xcorr {

struct Nvml::Library {
  void* handle;

  // nvmlReturn_t is an int, 0 is success, in every release.
  template <typename... Args>
  bool call(const char* name, Args... args) const {
    using Function = int (*)(Args...);
    const auto function = reinterpret_cast<Function>(dlsym(handle, name));
    return function && function(args...) == 0;
  }
};

// The number that a function of NVML writes behind its last argument.
template <typename T, typename... Args>
std::optional<T> Nvml::number(const char* name, Args... args) const {
  T value{};
  if (!device_ || !library_->call(name, device_, args..., &value)) return std::nullopt;
  return value;
}

namespace {

constexpr int kSmClock = 1, kMemoryClock = 2;  // nvmlClockType_t

// nvmlClocksEventReasons. "idle" and "application setting" are no throttling.
constexpr std::pair<unsigned long long, const char*> kReasons[] = {{0x4, "software power cap"},
                                                                   {0x8, "hardware slowdown"},
                                                                   {0x20, "software thermal"},
                                                                   {0x40, "hardware thermal"},
                                                                   {0x80, "hardware power brake"}};

}  // namespace

Nvml::Nvml(const std::string& bus_id) {
  void* handle = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!handle) return;
  library_.reset(new Library{handle});
  if (!library_->call("nvmlInit_v2") ||
      !library_->call("nvmlDeviceGetHandleByPciBusId_v2", bus_id.c_str(), &device_)) {
    device_ = nullptr;
  }
}

Nvml::~Nvml() {
  if (!library_) return;
  library_->call("nvmlShutdown");
  dlclose(library_->handle);
}

std::string Nvml::driver_version() const {
  char text[96] = "";
  const bool known = device_ && library_->call("nvmlSystemGetDriverVersion", +text, 96u);
  return known ? text : "";
}

std::optional<unsigned> Nvml::sm_clock_mhz() const {
  return number<unsigned>("nvmlDeviceGetClockInfo", kSmClock);
}

std::optional<unsigned> Nvml::memory_clock_mhz() const {
  return number<unsigned>("nvmlDeviceGetClockInfo", kMemoryClock);
}

std::optional<unsigned> Nvml::temperature_c() const {
  return number<unsigned>("nvmlDeviceGetTemperature", 0);
}

std::string Nvml::throttle_reasons() const {
  const auto bits = number<unsigned long long>("nvmlDeviceGetCurrentClocksThrottleReasons");
  std::string text;
  for (const auto& [bit, name] : kReasons) {
    if (bits.value_or(0) & bit) text += (text.empty() ? "" : ", ") + std::string(name);
  }
  return text;
}

std::optional<double> Nvml::energy_uj() const {
  const auto millijoules = number<unsigned long long>("nvmlDeviceGetTotalEnergyConsumption");
  if (!millijoules) return std::nullopt;
  return static_cast<double>(*millijoules) * 1e3;
}

}  // namespace xcorr
