// Stages panels with asynchronous copies (cp.async). Their columns lie in a ring.
#pragma once

#include "algorithms/device/memory.hpp"
#include "algorithms/tiled/staging.hpp"

namespace xcorr::tiled {

// Columns go to a ring of `ring` columns, from position `start` on. The first `repeated` columns of
// the ring are stored again after its end.
struct RingTarget : StageTarget {
  int ring, start, repeated;
};

// Starts the copies of all threads of a block. `col` is a multiple of kChunk; start < ring.
__device__ __forceinline__ void stage_async(const StageSource& source, const RingTarget& to,
                                            int thread, int threads) {
  if (to.chunks <= 0) return;
  const auto chunks = static_cast<unsigned>(to.chunks);
  int y = static_cast<int>(static_cast<unsigned>(thread) / chunks), x = thread - y * to.chunks;
  const int dy = static_cast<int>(static_cast<unsigned>(threads) / chunks);
  const int dx = threads - dy * to.chunks;
  int m = 0;
#pragma unroll 1
  for (;;) {
    while (y >= to.rows) y -= to.rows, ++m;
    if (m >= to.matrices) return;
    const int row = to.row + y, col = to.col + x * kChunk;
    int position = to.start + x * kChunk;
    position -= position >= to.ring ? to.ring : 0;
    float* const place = to.shared + m * to.stride + y * to.pitch + position;
    const bool in_rows = row >= source.first_row && row < source.end_row;
    const float* const line =
        source.matrix + (in_rows ? m * source.size + static_cast<Index>(row) * source.cols : 0);
    const auto put = [&](float* shared) {
      const auto exists = [&](int c) {
        return in_rows && static_cast<unsigned>(c) < static_cast<unsigned>(source.cols);
      };
      if (source.aligned) {
        async_copy::copy<kChunk>(shared, exists(col) ? line + col : source.matrix, exists(col));
      } else {
#pragma unroll
        for (int i = 0; i < kChunk; ++i) {
          async_copy::copy<1>(shared + i, exists(col + i) ? line + col + i : source.matrix,
                              exists(col + i));
        }
      }
    };
    put(place);
    if (position < to.repeated) put(place + to.ring);
    x += dx;
    y += dy;
    if (x >= to.chunks) x -= to.chunks, ++y;
  }
}

}  // namespace xcorr::tiled
