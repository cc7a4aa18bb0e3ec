// Defines the functions of FFTW that this project calls. At the first call of a scalar type it loads
// FFTW where it is installed; else pocketfft computes. So a library that is distributed contains and
// links no part of FFTW, which is under the GPL.
//
// Environment: XCORR_FFTW=none never loads FFTW; XCORR_FFTW=FOLDER loads it from that folder alone.
#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <type_traits>

#include "harness/fftw/functions.hpp"

extern "C" {
char fftw_version[128] = "";
char fftwf_version[128] = "";
}

namespace xcorr::transforms {
namespace {

template <typename T>
constexpr const char* kFile = std::is_same_v<T, float> ? "libfftw3f.so.3" : "libfftw3.so.3";
template <typename T>
constexpr const char* kPrefix = std::is_same_v<T, float> ? "fftwf_" : "fftw_";

// False where a function is missing.
template <typename Function>
bool find(void* library, const std::string& name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name.c_str()));
  return function != nullptr;
}

template <typename T>
bool find_all(void* library, Functions<T>& found) {
  const std::string prefix = kPrefix<T>;
  bool all = true;
#define XCORR_FFTW(result, name, parameters, arguments) \
  all = find(library, prefix + #name, found.name) && all;
#include "harness/fftw/functions.inc"
#undef XCORR_FFTW
  return all;
}

// Loads FFTW, or takes pocketfft, and writes which of both into `version`.
template <typename T>
Functions<T> choose(char* version, std::size_t capacity) {
  const char* const asked = std::getenv("XCORR_FFTW");
  const std::string folder = asked == nullptr ? "" : asked;
  if (folder != "none") {
    const std::string file = folder.empty() ? kFile<T> : folder + "/" + kFile<T>;
    if (void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) {
      Functions<T> found;
      const auto* const text =
          static_cast<const char*>(dlsym(library, (std::string(kPrefix<T>) + "version").c_str()));
      if (text != nullptr && find_all(library, found)) {
        std::strncpy(version, text, capacity - 1);
        return found;
      }
      dlclose(library);
    }
  }
  std::strncpy(version, "pocketfft", capacity - 1);
  return pocketfft_functions<T>();
}

template <typename T>
const Functions<T>& functions() {
  static const Functions<T> chosen = std::is_same_v<T, float>
                                         ? choose<T>(fftwf_version, sizeof fftwf_version)
                                         : choose<T>(fftw_version, sizeof fftw_version);
  return chosen;
}

}  // namespace
}  // namespace xcorr::transforms

extern "C" {

#define PLAN fftw_plan
#define REAL double
#define COMPLEX fftw_complex
#define XCORR_FFTW(result, name, parameters, arguments) \
  result fftw_##name parameters { return xcorr::transforms::functions<double>().name arguments; }
#include "harness/fftw/functions.inc"
#undef XCORR_FFTW
#undef COMPLEX
#undef REAL
#undef PLAN

#define PLAN fftwf_plan
#define REAL float
#define COMPLEX fftwf_complex
#define XCORR_FFTW(result, name, parameters, arguments) \
  result fftwf_##name parameters { return xcorr::transforms::functions<float>().name arguments; }
#include "harness/fftw/functions.inc"
#undef XCORR_FFTW
#undef COMPLEX
#undef REAL
#undef PLAN

// Without libfftw3_omp a plan has one thread, which is what this project asks for.
int fftw_init_threads() { return 1; }
void fftw_plan_with_nthreads(int) {}
}
