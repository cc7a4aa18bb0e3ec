// Where the matrices of a problem with field `views` lie in arrays of the harness: a pure function
// of problem, side and seed.
#pragma once

#include <cstdint>
#include <vector>

#include "harness/problem/inputs.hpp"
#include "harness/problem/problem.hpp"

namespace xcorr {

struct ViewLayout {
  Index elements = 0;          // of the array
  Index pitch = 0;             // between rows; 0 for channels, whose rows have offsets
  std::vector<Index> offsets;  // a matrix (windows) or a row of a matrix (channels)

  // The first element of row y of matrix i; `rows` is the height of a matrix.
  Index row(Index i, Index y, Index rows) const {
    return pitch > 0 ? offsets[i] + y * pitch : offsets[i * rows + y];
  }
};

// Dense matrices have no offsets. windows: windows that overlap in one frame. channels: rows that
// overlap in one signal.
ViewLayout view_layout(const Problem& problem, Side side, std::uint64_t seed);

}  // namespace xcorr
