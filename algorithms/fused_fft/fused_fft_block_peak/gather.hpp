// Copies the matrices to the workspace, dense, for fused_fft_block_peak, if the inputs are windows
// of a frame or if means must be removed. The score phase does not depend on scale, so for phase
// each matrix is scaled to a norm of 1 to 2 by a power of two, and its norm is stored.
#pragma once

#include <algorithm>
#include <bit>

#include "algorithms/blocks/divide.hpp"
#include "algorithms/blocks/float_order.hpp"
#include "algorithms/blocks/workspace.hpp"
#include "algorithms/device/launch.hpp"
#include "algorithms/fused_fft/fused_fft_block_peak/tuning.hpp"
#include "algorithms/fused_fft/pair_columns.hpp"
#include "algorithms/fused_fft/pair_scale.hpp"
#include "algorithms/fused_fft/phase.hpp"
#include "harness/variant.hpp"

namespace xcorr::fused_fft {

// A thread keeps this many elements in registers, and reads what exceeds them again in each pass.
inline constexpr int kGatherHeld = 16;

// The matrices of one side.
struct GatherSide {
  const float* from = nullptr;  // dense, or the frame
  PairView view;
  int size = 0, cols = 0;
  Divider row;
  float over = 0;  // 1 / size
  float* to = nullptr;
};

struct Gather {
  // Whether a problem needs the copies.
  static bool needed(const Problem& q) {
    return q.fields.score.kind != ScoreKind::product || q.fields.views == Views::windows;
  }
  Gather() = default;
  Gather(const Problem& q, Workspace& workspace) {
    if (!needed(q)) return;
    const auto side = [&](const Shape& shape, float* copies) {
      return GatherSide{nullptr,
                        {},
                        static_cast<int>(shape.size()),
                        static_cast<int>(shape.cols),
                        Divider(shape.cols),
                        1.0f / static_cast<float>(shape.size()),
                        copies};
    };
    left = side(q.left, workspace.take<float>(q.left_elements()));
    right = side(q.right, workspace.take<float>(q.right_elements()));
    lefts = static_cast<std::uint32_t>(q.lefts);
    matrices = static_cast<std::uint32_t>(q.lefts + q.rights);
    centres = q.fields.score.kind != ScoreKind::product;
    if (q.fields.score.kind == ScoreKind::phase) {
      norms = workspace.take<ScaledNorm>(q.lefts + q.rights);
    }
  }
  // Threads per block: enough to keep all elements of a matrix in registers, if a block can have as
  // many.
  unsigned threads() const {
    const int size = std::max(left.size, right.size);
    const int warps = ceil_div(size, kGatherHeld * warp::kSize);
    return static_cast<unsigned>(
        std::clamp(warps * warp::kSize, 64, BlockPeakTuning::kGatherMostThreads));
  }
  // The inputs of a call.
  void set(const Call& call, const Arrays<float>& arrays) {
    const auto view = [](const View& of, int cols) {
      return PairView{of.offsets, of.offsets ? static_cast<int>(of.pitch) : cols};
    };
    left.from = arrays.left;
    right.from = arrays.right;
    left.view = view(call.left_view, left.cols);
    right.view = view(call.right_view, right.cols);
  }

  GatherSide left, right;
  std::uint32_t lefts = 0, matrices = 0;
  bool centres = false;
  ScaledNorm* norms = nullptr;  // if matrices are scaled: [lefts], then [rights]
};

// join() of the values of all threads of a block, returned to all threads.
template <typename Join>
static __device__ __forceinline__ float over_gather_block(float of_this_warp, float* of_warp,
                                                          Join join) {
  const int thread = static_cast<int>(threadIdx.x);
  block::barrier();  // previous values have been read
  if (thread % warp::kSize == 0) of_warp[thread / warp::kSize] = of_this_warp;
  block::barrier();
  float joined = of_warp[0];
  for (unsigned i = 1; i < blockDim.x / warp::kSize; ++i) joined = join(joined, of_warp[i]);
  return joined;
}

// One block per matrix. It subtracts the first element, then the mean, then what rounding has left
// of the mean. So an offset of the data costs no digits, and nothing remains if all elements are
// equal.
static __global__ void __launch_bounds__(BlockPeakTuning::kGatherMostThreads)
    gather_kernel(Gather a) {
  XCORR_SHARED(float, of_warp, BlockPeakTuning::kGatherMostThreads / warp::kSize);
  const auto sum_of_block = [&](float value) {
    return over_gather_block(warp::reduce_add(value), of_warp,
                             [](float x, float y) { return x + y; });
  };
  wait_for_previous();
#pragma unroll 1
  for (std::uint32_t i = blockIdx.x; i < a.matrices; i += gridDim.x) {
    const bool is_left = i < a.lefts;
    const GatherSide side = is_left ? a.left : a.right;
    const std::uint32_t number = is_left ? i : i - a.lefts;
    const Index first = static_cast<Index>(number) * side.size;
    const float* const from = side.view.matrix(side.from + first, side.from, number);
    float* const to = side.to + first;
    const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
    const auto load = [&](int at) {
      const int y = static_cast<int>(side.row.quotient(static_cast<std::uint32_t>(at)));
      return from[y * side.view.pitch + (at - y * side.cols)];
    };
    float held[kGatherHeld];
#pragma unroll
    for (int k = 0; k < kGatherHeld; ++k) {
      const int at = thread + k * threads;
      held[k] = at < side.size ? load(at) : 0.0f;
    }
    // f(index, element) for each element of the thread.
    const auto each = [&](auto f) {
#pragma unroll
      for (int k = 0; k < kGatherHeld; ++k) {
        if (thread + k * threads < side.size) f(thread + k * threads, held[k]);
      }
#pragma unroll 4
      for (int at = thread + kGatherHeld * threads; at < side.size; at += threads) f(at, load(at));
    };
    float mean = 0, rest = 0;
    if (a.centres) {
      const float pivot = *from;
      // Values are divided before they are summed: the first element may be a fill value near the
      // largest float32.
      float sum = 0;
      each([&](int, float value) { sum = fmaf(side.over, value - pivot, sum); });
      mean = pivot + sum_of_block(sum);
      sum = 0;
      each([&](int, float value) { sum += value - mean; });
      rest = sum_of_block(sum) * side.over;
    }
    float scale = 1;
    if (a.norms != nullptr) {
      const auto squares_of_block = [&] {
        float squares = 0;
        each([&](int, float value) {
          const float scaled = scale * ((value - mean) - rest);
          squares = fmaf(scaled, scaled, squares);
        });
        return sum_of_block(squares);
      };
      float squares = squares_of_block();
      int exponent = 0;
      bool usable = true;
      if (!are_usual({squares, squares})) [[unlikely]] {
        // Scales the largest value to [1, 2), so that squares stay in the range of float32.
        float most = 0;
        each([&](int, float value) {
          const float size = fabsf((value - mean) - rest);
          most = size > most || !(size <= most) ? size : most;
        });
        most =
            over_gather_block(std::bit_cast<float>(warp::largest(size_bits(most))), of_warp,
                              [](float x, float y) { return size_bits(y) > size_bits(x) ? y : x; });
        usable = most > 0 && most - most == 0;
        exponent = usable ? exponent_of(most) : 0;
        scale = any_power_of_two(-exponent);
        squares = squares_of_block();
      }
      const int more = usable ? exponent_of(squares) >> 1 : 0;
      exponent += more;
      scale *= power_of_two(-more);
      if (threadIdx.x == 0) a.norms[i] = {sqrtf(squares) * power_of_two(-more), exponent};
    }
    each([&](int at, float value) { to[at] = scale * ((value - mean) - rest); });
  }
}

}  // namespace xcorr::fused_fft
