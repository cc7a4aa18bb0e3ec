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

namespace {

constexpr int kGraphicsSm = 1;  // nvmlClockType_t: NVML_CLOCK_SM
constexpr int kMemory = 2;      // NVML_CLOCK_MEM

// nvmlClocksEventReasons; "idle" and "application setting" are no throttling.
constexpr std::pair<unsigned long long, const char*> kReasons[] = {{0x4, "software power cap"},
                                                                   {0x8, "hardware slowdown"},
                                                                   {0x20, "software thermal"},
                                                                   {0x40, "hardware thermal"},
                                                                   {0x80, "hardware power brake"}};

}  // namespace

Nvml::Nvml(const std::string& bus_id) {
  void* handle = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!handle) return;
  library_ = new Library{handle};
  if (!library_->call("nvmlInit_v2") ||
      !library_->call("nvmlDeviceGetHandleByPciBusId_v2", bus_id.c_str(), &device_)) {
    device_ = nullptr;
  }
}

Nvml::~Nvml() {
  if (!library_) return;
  library_->call("nvmlShutdown");
  dlclose(library_->handle);
  delete library_;
}

std::string Nvml::driver_version() const {
  char text[96] = "";
  if (!device_ || !library_->call("nvmlSystemGetDriverVersion", static_cast<char*>(text), 96u))
    return "";
  return text;
}

std::optional<unsigned> Nvml::sm_clock_mhz() const {
  unsigned mhz = 0;
  if (!device_ || !library_->call("nvmlDeviceGetClockInfo", device_, kGraphicsSm, &mhz)) return {};
  return mhz;
}

std::optional<unsigned> Nvml::memory_clock_mhz() const {
  unsigned mhz = 0;
  if (!device_ || !library_->call("nvmlDeviceGetClockInfo", device_, kMemory, &mhz)) return {};
  return mhz;
}

std::optional<unsigned> Nvml::temperature_c() const {
  unsigned celsius = 0;
  if (!device_ || !library_->call("nvmlDeviceGetTemperature", device_, 0, &celsius)) return {};
  return celsius;
}

std::string Nvml::throttle_reasons() const {
  unsigned long long bits = 0;
  if (!device_ || !library_->call("nvmlDeviceGetCurrentClocksThrottleReasons", device_, &bits))
    return "";
  std::string text;
  for (const auto& [bit, name] : kReasons) {
    if (bits & bit) text += (text.empty() ? "" : ", ") + std::string(name);
  }
  return text;
}

std::optional<double> Nvml::energy_uj() const {
  unsigned long long millijoules = 0;
  if (!device_ || !library_->call("nvmlDeviceGetTotalEnergyConsumption", device_, &millijoules))
    return {};
  return static_cast<double>(millijoules) * 1e3;
}

}  // namespace xcorr
