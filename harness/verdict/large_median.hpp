// The median of many numbers, without a copy of them.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "harness/problem/problem.hpp"

namespace xcorr::judged {

// The median of value(0) to value(size - 1), at least one number; the mean of the two middle ones. A sample says between which
// two numbers it lies, and only numbers between them are put in order.
template <typename F>
double large_median(Index size, F&& value) {
  // The place of the median in the sample has a standard deviation of 90.
  constexpr Index kSample = 32768, kMargin = 540;
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  double low = -kInfinite, high = kInfinite;
  if (size > 4 * kSample) {
    std::vector<double> sample(kSample);
    for (Index i = 0; i < kSample; ++i) sample[i] = value(i * size / kSample);
    std::sort(sample.begin(), sample.end());
    low = sample[kSample / 2 - kMargin];
    high = sample[kSample / 2 + kMargin];
  }
  const Index lower = (size - 1) / 2, upper = size / 2;
  for (;;) {
    Index below = 0;
    std::vector<double> between;
    for (Index i = 0; i < size; ++i) {
      const double v = value(i);
      below += v < low;
      if (v >= low && v <= high) between.push_back(v);
    }
    const bool whole = low == -kInfinite && high == kInfinite;
    if (whole || (below <= lower && upper < below + static_cast<Index>(between.size()))) {
      const auto middle = between.begin() + (upper - below);
      std::nth_element(between.begin(), middle, between.end());
      if (lower == upper) return *middle;
      const double before = *std::max_element(between.begin(), middle);
      return before + (*middle - before) / 2;
    }
    low = -kInfinite;  // the sample is not like the others
    high = kInfinite;
  }
}

}  // namespace xcorr::judged
