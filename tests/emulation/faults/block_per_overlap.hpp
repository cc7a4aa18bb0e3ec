// A block of two warps per output element, in the vocabulary, right as `none` and wrong in one way
// under each other name. The tests show that the emulation catches every one.
#pragma once

#include "algorithms/blocks/pairs.hpp"
#include "algorithms/device/cuda.hpp"
#include "harness/variant.hpp"

namespace xcorr::faults {

enum class Fault {
  none,
  out_of_bounds,           // reads one element past the end of the last row
  missing_barrier,         // sums of the warps are read before they are all written
  missing_second_barrier,  // the next row's sums are written while the last are still read
  wrong_remainder,         // the last, incomplete step over the overlap is left out
  bad_shuffle,             // the tree of shuffles leaves out half of the lanes
  lost_lane,               // lanes without work end before a shuffle of all lanes
  diverged_barrier,        // only threads with work come to the block's barrier
  two_barriers,            // the warps wait at different barriers
};

constexpr int kThreads = 64;

// grid: columns, rows, pairs; every block sums its overlap `kRounds` times, to use the shared sums
// again.
template <Fault fault>
__global__ void block_per_overlap_kernel(Problem q, Pairing pairing, const float* left,
                                         const float* right, float* out) {
  constexpr int kRounds = 2;
  XCORR_SHARED(float, sums, kThreads / warp::kSize);
  const int thread = static_cast<int>(threadIdx.x);
  const Index sy = q.window.sy.first + blockIdx.y, sx = q.window.sx.first + blockIdx.x;
  const Overlap y = overlap(q.left.rows, q.right.rows, sy),
                x = overlap(q.left.cols, q.right.cols, sx);
  const Pair lr = pairing.pair(blockIdx.z);
  const float* l = left + lr.left * q.left.size();
  const float* r = right + lr.right * q.right.size();
  const int cols = static_cast<int>(x.count), terms = static_cast<int>(y.count) * cols;
  const int end = fault == Fault::wrong_remainder ? terms / kThreads * kThreads : terms;

  float total = 0;
  for (int round = 0; round < kRounds; ++round) {
    float sum = 0;
    for (int i = thread; i < end; i += kThreads) {
      const Index row = y.first + i / cols, col = x.first + i % cols;
      const Index past = fault == Fault::out_of_bounds ? 1 : 0;
      // Neighbours are read too, as by a kernel that loads ahead of its need.
      const float next = load_or_zero(r + (row + sy) * q.right.cols, static_cast<int>(col + sx + 1),
                                      static_cast<int>(q.right.cols + past));
      sum += l[row * q.left.cols + col] * r[(row + sy) * q.right.cols + col + sx] + 0 * next;
    }
    if constexpr (fault == Fault::lost_lane) {
      if (thread >= terms) return;
    }
    for (int offset = fault == Fault::bad_shuffle ? 8 : 16; offset > 0; offset /= 2) {
      sum += warp::shuffle_down(sum, offset);
    }
    if (warp::lane() == 0) sums[thread / warp::kSize] = sum;
    if constexpr (fault == Fault::diverged_barrier) {
      if (thread < terms) block::barrier();
    } else if constexpr (fault == Fault::two_barriers) {
      if (thread < warp::kSize) {
        block::barrier();
      } else {
        block::barrier();
      }
    } else if constexpr (fault != Fault::missing_barrier) {
      block::barrier();
    }
    // Only the last round counts, weighted by 1.
    if (thread == 0) total += (sums[0] + sums[1]) * static_cast<float>(round);
    if constexpr (fault != Fault::missing_second_barrier) block::barrier();
    if constexpr (fault == Fault::missing_second_barrier) {
      if (warp::lane() == 0) sums[thread / warp::kSize] = 0;
    }
  }
  if (thread == 0)
    out[(blockIdx.z * q.out_rows() + blockIdx.y) * q.out_cols() + blockIdx.x] = total;
}

template <Fault fault>
class BlockPerOverlapPlan final : public Plan {
 public:
  explicit BlockPerOverlapPlan(const PlanRequest& request) : problem_(request.problem) {}

  void compute(const Call& call) override {
    const dim3 grid(static_cast<unsigned>(problem_.out_cols()),
                    static_cast<unsigned>(problem_.out_rows()),
                    static_cast<unsigned>(problem_.pairs()));
    launch(block_per_overlap_kernel<fault>, grid, dim3(kThreads), 0, call.stream, problem_,
           Pairing(problem_), call.lefts<float>(), call.rights<float>(), call.outs<float>());
  }

 private:
  Problem problem_;
};

template <Fault fault>
Variant block_per_overlap() {
  Variant variant;
  variant.backend = Backend::cuda;
  variant.plan = make_plan<BlockPerOverlapPlan<fault>>;
  return variant;
}

}  // namespace xcorr::faults
