// What the library says of itself to a caller in C: the version of its interface, and the library
// that computes transforms on the CPU.
#include <fftw3.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "harness/library/xcorr.h"

namespace {

int refused(const char* text, char* error, std::size_t capacity) {
  if (error != nullptr && capacity > 0) {
    const std::size_t length = std::min(std::strlen(text), capacity - 1);
    std::memcpy(error, text, length);
    error[length] = '\0';
  }
  return 1;
}

}  // namespace

extern "C" {

int xcorr_abi_version() { return XCORR_ABI_VERSION; }

int xcorr_cpu_transforms(char* json, std::size_t capacity, char* error,
                         std::size_t error_capacity) {
  if (json == nullptr) return refused("json: null; give its address", error, error_capacity);
  // FFTW that is loaded at run time has no version before a first call.
  fftw_free(nullptr);
  fftwf_free(nullptr);
  std::string text =
      std::string(R"({"single": ")") + fftwf_version + R"(", "double": ")" + fftw_version + R"("})";
  const bool fits = text.size() < capacity;
  if (!fits) text = std::to_string(text.size() + 1);
  if (text.size() < capacity) std::memcpy(json, text.c_str(), text.size() + 1);
  return fits ? 0 : 2;
}

}  // extern "C"
