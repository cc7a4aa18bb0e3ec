// Copies the matrices to the workspace, dense, for fused_fft_block_peak, if the inputs are windows
// of a frame or if means must be removed. The score phase does not depend on scale, so for phase
// each matrix is scaled to a norm of 1 to 2 by a power of two, and its norm is stored.
#pragma once

#include "algorithms/blocks/float_order.hpp"
#include "algorithms/blocks/workspace.hpp"
#include "algorithms/device/launch.hpp"
#include "algorithms/fused_fft/pair_columns.hpp"
#include "algorithms/fused_fft/pair_scale.hpp"
#include "algorithms/fused_fft/phase.hpp"
#include "harness/variant.hpp"

namespace xcorr::fused_fft {

inline constexpr int kGatherThreads = static_cast<int>(small_if_emulated(256, 64));

// The matrices of one side.
struct GatherSide {
  const float* from = nullptr;  // dense, or the frame
  PairView view;
  int rows = 0, cols = 0;
  float over = 0;  // 1 / number of elements
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
                        static_cast<int>(shape.rows),
                        static_cast<int>(shape.cols),
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

// The sum over all threads of a block, returned to all threads.
static __device__ __forceinline__ float sum_of_block(float mine, float* of_warp) {
  const int thread = static_cast<int>(threadIdx.x);
  mine = warp::reduce_add(mine);
  block::barrier();  // previous values have been read
  if (thread % warp::kSize == 0) of_warp[thread / warp::kSize] = mine;
  block::barrier();
  float sum = 0;
  for (int i = 0; i < kGatherThreads / warp::kSize; ++i) sum += of_warp[i];
  return sum;
}

// The largest absolute value over all threads of a block; NaN or infinity if a value is that.
static __device__ __forceinline__ float largest_of_block(float mine, float* of_warp) {
  const int thread = static_cast<int>(threadIdx.x);
  std::uint32_t most = warp::largest(size_bits(mine));
  block::barrier();  // previous values have been read
  if (thread % warp::kSize == 0) of_warp[thread / warp::kSize] = std::bit_cast<float>(most);
  block::barrier();
  for (int i = 0; i < kGatherThreads / warp::kSize; ++i) {
    most = size_bits(of_warp[i]) > most ? size_bits(of_warp[i]) : most;
  }
  return std::bit_cast<float>(most);
}

// One block per matrix. It subtracts the first element, then the mean, then what rounding has left
// of the mean. So an offset of the data costs no digits, and nothing remains if all elements are
// equal.
static __global__ void __launch_bounds__(kGatherThreads) gather_kernel(Gather a) {
  XCORR_SHARED(float, of_warp, kGatherThreads / warp::kSize);
  wait_for_previous();
#pragma unroll 1
  for (std::uint32_t i = blockIdx.x; i < a.matrices; i += gridDim.x) {
    const bool is_left = i < a.lefts;
    const GatherSide side = is_left ? a.left : a.right;
    const std::uint32_t number = is_left ? i : i - a.lefts;
    const int size = side.rows * side.cols;
    const Index first = static_cast<Index>(number) * size;
    const float* const from = side.view.matrix(side.from + first, side.from, number);
    float* const to = side.to + first;
    const auto each = [&](auto f) {
#pragma unroll 8
      for (int at = static_cast<int>(threadIdx.x); at < size; at += kGatherThreads) {
        const int y = at / side.cols;
        f(at, from[y * side.view.pitch + (at - y * side.cols)]);
      }
    };
    float mean = 0, rest = 0;
    if (a.centres) {
      const float pivot = *from;
      // Values are divided before they are summed: the first element may be a fill value near the
      // largest float32.
      float sum = 0;
      each([&](int, float value) { sum = fmaf(side.over, value - pivot, sum); });
      mean = pivot + sum_of_block(sum, of_warp);
      sum = 0;
      each([&](int, float value) { sum += value - mean; });
      rest = sum_of_block(sum, of_warp) * side.over;
    }
    float scale = 1;
    if (a.norms != nullptr) {
      // Scales the largest value to [1, 2) first, so that squares stay in the range of float32.
      float most = 0;
      each([&](int, float value) {
        const float size_of = fabsf((value - mean) - rest);
        most = size_of > most || !(size_of <= most) ? size_of : most;
      });
      most = largest_of_block(most, of_warp);
      const bool usable = most > 0 && most - most == 0;
      int exponent = usable ? exponent_of(most) : 0;
      scale = any_power_of_two(-exponent);
      float squares = 0;
      each([&](int, float value) {
        const float scaled = scale * ((value - mean) - rest);
        squares = fmaf(scaled, scaled, squares);
      });
      squares = sum_of_block(squares, of_warp);
      const int more = usable ? exponent_of(squares) / 2 : 0;
      exponent += more;
      scale *= power_of_two(-more);
      if (threadIdx.x == 0) a.norms[i] = {sqrtf(squares) * power_of_two(-more), exponent};
    }
    each([&](int at, float value) { to[at] = scale * ((value - mean) - rest); });
  }
}

}  // namespace xcorr::fused_fft
