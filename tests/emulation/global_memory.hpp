// Global memory of exactly as many bytes as are asked for, so that AddressSanitizer sees an access beyond
// it, and full of NaN, so that a value that nobody wrote is seen.
#pragma once

#include <algorithm>
#include <cstddef>
#include <new>

namespace xcorr::emulation {

class GlobalMemory {
 public:
  explicit GlobalMemory(std::size_t bytes)
      : size_(bytes), data_(static_cast<unsigned char*>(::operator new(bytes, kAlignment))) {
    poison();
  }
  GlobalMemory(const GlobalMemory&) = delete;
  GlobalMemory& operator=(const GlobalMemory&) = delete;
  ~GlobalMemory() { ::operator delete(data_, kAlignment); }
  void poison() { std::fill_n(data_, size_, static_cast<unsigned char>(0xff)); }
  template <typename T = void>
  T* get() const {
    return reinterpret_cast<T*>(data_);
  }

 private:
  static constexpr std::align_val_t kAlignment{256};  // the contract's, of the workspace
  std::size_t size_;
  unsigned char* data_;
};

}  // namespace xcorr::emulation
