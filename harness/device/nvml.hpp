// Facts that only the management library of the driver (NVML) has: clocks, throttling, energy.
#pragma once

#include <memory>
#include <optional>
#include <string>

namespace xcorr {

// Loads the library at run time, so that nothing links to it. An answer is empty where the library is
// missing or the GPU does not give the value.
class Nvml {
 public:
  // `bus_id` as CUDA prints it ("0000:1b:00.0").
  explicit Nvml(const std::string& bus_id);
  ~Nvml();

  std::string driver_version() const;
  std::optional<unsigned> sm_clock_mhz() const;
  std::optional<unsigned> memory_clock_mhz() const;
  std::optional<unsigned> temperature_c() const;
  std::string throttle_reasons() const;     // names, separated by commas; "" where there are none
  std::optional<double> energy_uj() const;  // since the driver was loaded

 private:
  struct Library;
  template <typename T, typename... Args>
  std::optional<T> number(const char* name, Args... args) const;

  std::unique_ptr<Library> library_;
  void* device_ = nullptr;
};

}  // namespace xcorr
