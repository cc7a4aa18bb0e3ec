// What the stand-ins for libraries print of memory and of handles.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <set>
#include <string>
#include <vector>

namespace stand_in {

// Addresses of device memory: where the host's programs, heaps and stacks never lie.
inline constexpr std::uint64_t kFirstAddress = 0x100000000000, kLastAddress = 0x300000000000;
inline constexpr std::uint64_t kAlignment = 512;

// The smallest free numbers as handles.
class Numbers {
 public:
  template <typename Handle>
  Handle take() {
    std::uint64_t number = 1;
    while (used_.count(number)) ++number;
    used_.insert(number);
    return reinterpret_cast<Handle>(number);
  }
  void give(const void* handle) { used_.erase(reinterpret_cast<std::uint64_t>(handle)); }

 private:
  std::set<std::uint64_t> used_;
};

inline std::uint64_t hash(const void* data, std::size_t bytes) {  // FNV-1a
  std::uint64_t value = 0xcbf29ce484222325;
  for (std::size_t i = 0; i < bytes; ++i) {
    value = (value ^ static_cast<const unsigned char*>(data)[i]) * 0x100000001b3;
  }
  return value;
}

inline std::uint64_t number(const void* handle) { return reinterpret_cast<std::uint64_t>(handle); }
inline bool on_device(const void* pointer) {
  return number(pointer) >= kFirstAddress && number(pointer) < kLastAddress;
}

// Contents of the host's memory, addresses of the device's.
inline std::string place(const void* pointer, std::size_t bytes) {
  char text[64];
  if (on_device(pointer)) {
    std::snprintf(text, sizeof text, "%llx", static_cast<unsigned long long>(number(pointer)));
  } else {
    std::snprintf(text, sizeof text, "host:%016llx",
                  static_cast<unsigned long long>(hash(pointer, bytes)));
  }
  return text;
}

// Of kernels that are compiled while a program runs: bytes of their parameters (run_time_kernels.cpp).
extern const std::vector<std::size_t> kParametersAtRunTime;

}  // namespace stand_in
