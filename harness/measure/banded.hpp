// Device memory between two bands that no variant may touch. A write beyond either end changes a
// band.
#pragma once

#include <algorithm>
#include <vector>

#include "harness/device/device.hpp"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace xcorr {

constexpr std::size_t kBand = 256;
constexpr unsigned char kPoison = 0xff;  // all bits set is a NaN in every floating-point type

struct Banded {
  Buffer memory;
  std::size_t bytes = 0;

  Banded(Device& device, std::size_t size)
      : memory(device.allocate(size + 2 * kBand)), bytes(size) {}
  ~Banded() { forbid(false); }
  Banded(const Banded&) = delete;
  Banded& operator=(const Banded&) = delete;

  char* data() const { return static_cast<char*>(memory.get()) + kBand; }

  // Fills memory and bands with NaN. In host memory AddressSanitizer then reports every access to
  // the bands.
  void poison(Device& device) {
    forbid(false);
    device.fill(memory.get(), kPoison, bytes + 2 * kBand);
    host_ = device.host_memory();
    forbid(true);
  }

  bool bands_intact(Device& device) const {
    std::vector<unsigned char> bands(2 * kBand);
    forbid(false);
    device.download(bands.data(), memory.get(), kBand);
    device.download(bands.data() + kBand, data() + bytes, kBand);
    forbid(true);
    return std::all_of(bands.begin(), bands.end(), [](unsigned char b) { return b == kPoison; });
  }

 private:
  void forbid([[maybe_unused]] bool on) const {
#if defined(__SANITIZE_ADDRESS__)
    if (!host_) return;
    for (char* band : {static_cast<char*>(memory.get()), data() + bytes}) {
      if (on) {
        ASAN_POISON_MEMORY_REGION(band, kBand);
      } else {
        ASAN_UNPOISON_MEMORY_REGION(band, kBand);
      }
    }
#endif
  }

  bool host_ = false;
};

}  // namespace xcorr
