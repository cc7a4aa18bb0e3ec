// Device memory between two bands that nobody may touch: a write beyond either end shows.
#pragma once

#include <algorithm>
#include <vector>

#include "harness/device.hpp"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace xcorr {

class Banded {
 public:
  // Filled with NaN, bands and all. AddressSanitizer knows the bands too.
  Banded(Device& device, std::size_t bytes)
      : device_(device), bytes_(bytes), memory_(device.allocate(bytes + 2 * kBand)) {
    device_.fill(memory_.get(), kPoison, bytes + 2 * kBand);
    protect(true);
  }
  ~Banded() { protect(false); }
  Banded(const Banded&) = delete;
  Banded& operator=(const Banded&) = delete;

  char* data() const { return static_cast<char*>(memory_.get()) + kBand; }
  std::size_t size() const { return bytes_; }
  void poison() { device_.fill(data(), kPoison, bytes_); }

  bool bands_intact() {
    std::vector<unsigned char> bands(2 * kBand);
    protect(false);
    device_.download(bands.data(), memory_.get(), kBand);
    device_.download(bands.data() + kBand, data() + bytes_, kBand);
    protect(true);
    return std::all_of(bands.begin(), bands.end(), [](unsigned char b) { return b == kPoison; });
  }

  static constexpr std::size_t kBand = 256;
  static constexpr unsigned char kPoison = 0xff;  // all bits set is a NaN in every float type

 private:
  void protect([[maybe_unused]] bool on) const {
#if defined(__SANITIZE_ADDRESS__)
    if (!device_.host_memory()) return;
    for (char* band : {static_cast<char*>(memory_.get()), data() + bytes_}) {
      if (on) {
        ASAN_POISON_MEMORY_REGION(band, kBand);
      } else {
        ASAN_UNPOISON_MEMORY_REGION(band, kBand);
      }
    }
#endif
  }

  Device& device_;
  std::size_t bytes_;
  Buffer memory_;
};

}  // namespace xcorr
