// Block-per-overlap (thesis 3.6.8): a block of block_size threads computes one output. Derived from
// warp_per_overlap by using more threads. They walk the flattened overlap, each warp adds the sums
// of its lanes with shuffles, and the first warp adds the sums of the warps through shared memory.
//
// With more threads each has fewer products, but more have none: at 16 x 16 no overlap has more
// than 256 products. Limits: those of warp_per_overlap.
// Measured (H200, one-to-one, 128 x 128, 128 threads): 15 instructions of a warp for each FMA,
// issued in 66 % of the cycles; the L1 pipe is busy in 55 %.
#include "algorithms/warp_per_overlap/overlap_tasks.hpp"
#include "harness/variant.hpp"

namespace xcorr::warp_per_overlap {
namespace {

constexpr int kMostBlock = 512;

template <bool kSamePitch>
__global__ void __launch_bounds__(kMostBlock)
    block_per_overlap_kernel(DeviceProblem q, Divider columns, int rows_of_a_part,
                             const float* __restrict__ left, const float* __restrict__ right,
                             float* __restrict__ out) {
  XCORR_SHARED(float, sums, kMostBlock / warp::kSize);
  std::uint32_t col = blockIdx.x;
  const int row = static_cast<int>(columns.split(col));
  const int sy = q.first_sy + row, sx = q.first_sx + static_cast<int>(col);
  const Span y(q.left_rows, q.right_rows, sy), x(q.left_cols, q.right_cols, sx);
  const PairOverlap<float> overlap(q, left, right, y.first, y.count, x, sy, sx);

  const std::uint32_t threads = blockDim.x, thread = threadIdx.x;
  const auto cols = static_cast<std::uint32_t>(x.count);
  const std::uint32_t at = thread / cols, step = threads / cols;
  const FlatWalk walk{static_cast<int>(at), static_cast<int>(thread - at * cols),
                      static_cast<int>(step), static_cast<int>(threads - step * cols)};
  float sum = warp::reduce_add(flat_sum<kSamePitch>(
      overlap, rows_of_a_part, walk, static_cast<int>(thread), static_cast<int>(threads)));
  if (warp::lane() == 0) sums[thread / warp::kSize] = sum;
  block::barrier();
  if (thread >= warp::kSize) return;
  sum = warp::reduce_add(thread < threads / warp::kSize ? sums[thread] : 0.0f);
  if (thread == 0) out[blockIdx.x] = sum;
}

class BlockPerOverlapPlan final : public DevicePlan<float> {
 public:
  explicit BlockPerOverlapPlan(const PlanRequest& request)
      : DevicePlan(request.problem),
        threads_(static_cast<unsigned>(request.params.get_int("block_size"))) {}

 private:
  void enqueue(const Call& call, const Arrays<float>& arrays) override {
    const Problem& q = problem_;
    launch(q.left.cols == q.right.cols ? block_per_overlap_kernel<true>
                                       : block_per_overlap_kernel<false>,
           dim3(static_cast<unsigned>(q.out_size())), dim3(threads_), 0, call.stream,
           DeviceProblem(q), Divider(q.out_cols()), rows_of_a_part(q), arrays.left, arrays.right,
           arrays.out);
  }

  unsigned threads_;
};

XCORR_VARIANT({
    .summary = "A whole block per output element; sums of its warps meet in shared memory",
    .parent = "warp_per_overlap",
    .source = "thesis 3.6.8",
    .backend = Backend::cuda,
    .forms = {Form::one_to_one},
    .axes = {{"block_size", {"64", "128", "256", "512"}}},
    .supports = outputs_fit,
    .plan = make_plan<BlockPerOverlapPlan>,
});

}  // namespace
}  // namespace xcorr::warp_per_overlap
