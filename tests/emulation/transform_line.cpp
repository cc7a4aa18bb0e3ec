#include <complex>
#include <numbers>
#include <vector>

#include "harness/problem/problem.hpp"

namespace xcorr::emulation {

template <typename T>
void transform_line(std::complex<T>* first, Index step, Index count, bool is_forward) {
  const auto n = static_cast<std::size_t>(count);
  std::vector<std::complex<double>> in(n), roots(n);
  for (std::size_t i = 0; i < n; ++i) {
    in[i] = std::complex<double>(first[static_cast<Index>(i) * step]);
    const double angle = 2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(n);
    roots[i] = std::polar(1.0, is_forward ? -angle : angle);
  }
  for (std::size_t k = 0; k < n; ++k) {
    std::complex<double> sum = 0;
    for (std::size_t i = 0; i < n; ++i) sum += in[i] * roots[i * k % n];
    first[static_cast<Index>(k) * step] = std::complex<T>(sum);
  }
}

template void transform_line(std::complex<float>*, Index, Index, bool);
template void transform_line(std::complex<double>*, Index, Index, bool);

}  // namespace xcorr::emulation
