#pragma once

#include <algorithm>
#include <vector>

namespace xcorr {

// The mean of the two middle numbers where their count is even. At least one number.
inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace xcorr
