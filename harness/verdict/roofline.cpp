// The guard against impossible times (docs/design.md, Checks).
#include <cstdio>

#include "harness/registry.hpp"
#include "harness/verdict/verdict.hpp"

namespace xcorr {

std::string roofline_guard(const Problem& problem, Precision precision,
                           AlgorithmClass algorithm_class, double seconds, const Peaks& peaks) {
  char text[200];
  const double bytes = static_cast<double>(problem.bytes(scalar_bytes(precision)));
  const double bytes_peak =
      bytes <= peaks.cache_bytes ? peaks.cache_bytes_per_s : peaks.bytes_per_s;
  if (bytes_peak > 0 && bytes / seconds > bytes_peak) {
    std::snprintf(text, sizeof text,
                  "faster than the hardware: %.3g B/s of compulsory traffic, the peak is %.3g B/s",
                  bytes / seconds, bytes_peak);
    return text;
  }
  const double fma_rate = static_cast<double>(problem.fmas()) / seconds;
  if (is_definition(algorithm_class) && peaks.fmas_per_s > 0 && fma_rate > peaks.fmas_per_s) {
    std::snprintf(text, sizeof text,
                  "faster than the hardware: %.3g useful FMA/s, the peak is %.3g FMA/s", fma_rate,
                  peaks.fmas_per_s);
    return text;
  }
  return "";
}

}  // namespace xcorr
