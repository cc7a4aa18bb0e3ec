// Facts that only the management library of the driver (NVML) has: clocks, throttling, energy. The
// library is loaded at run time, so that nothing links to it. An answer is empty where the library
// is missing or the GPU does not give the value.
#pragma once

#include <optional>
#include <string>

namespace xcorr {

class Nvml {
 public:
  // `bus_id` as CUDA prints it ("0000:1b:00.0").
  explicit Nvml(const std::string& bus_id);
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  std::string driver_version() const;
  std::optional<unsigned> sm_clock_mhz() const;
  std::optional<unsigned> memory_clock_mhz() const;
  std::optional<unsigned> temperature_c() const;
  std::string throttle_reasons() const;     // names, comma-separated; "" when none
  std::optional<double> energy_uj() const;  // since the driver was loaded

 private:
  struct Library;
  Library* library_ = nullptr;
  void* device_ = nullptr;
};

}  // namespace xcorr
