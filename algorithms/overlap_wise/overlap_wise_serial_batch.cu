// Overlap-wise as the paper measured it (the baseline of its section 5; `naive_original` of the
// artifact), kept to reproduce the paper's ratios. One thread computes one output, in
// blocks of 16 x 16. With several right matrices a thread computes their outputs one after the
// other, so that the time grows with their number even while most of the GPU idles.
//
// n-to-m and n-to-mn spread one kernel per left matrix over eight streams. Events start the streams
// after the caller's stream and join them with it (the artifact synchronises the device on the
// host). Limits: at most 2^31 - 1 rows, columns and pairs; in float32 at most 2^19 products for an
// output, which one register adds.
#include "algorithms/blocks/overlap_geometry.hpp"
#include "algorithms/blocks/pairs.hpp"
#include "algorithms/blocks/plan.hpp"
#include "algorithms/blocks/streams.hpp"
#include "harness/variant.hpp"

namespace xcorr::overlap_wise {
namespace {

constexpr int kBlockSide = 16;
constexpr int kStreams = 8;
// For __launch_bounds__: without it the compiler targets more blocks and spills registers in
// float64.
constexpr int kBlocksResident = 4;

// One left matrix with `rights` right matrices; pairs are consecutive in the output.
template <typename T>
__global__ void __launch_bounds__(kBlockSide* kBlockSide, kBlocksResident)
    serial_batch_kernel(Geometry q, const T* __restrict__ left, const T* __restrict__ right,
                        Index rights, T* __restrict__ out) {
  const Index col = static_cast<Index>(blockIdx.x) * kBlockSide + threadIdx.x;
  if (col >= q.out_cols()) return;
  const Index sx = q.window.sx.first + col;
  const Overlap x = overlap(q.left.cols, q.right.cols, sx);
  const int cols = static_cast<int>(x.count);
  for (Index row = static_cast<Index>(blockIdx.y) * kBlockSide + threadIdx.y; row < q.out_rows();
       row += static_cast<Index>(gridDim.y) * kBlockSide) {
    const Index sy = q.window.sy.first + row;
    const Overlap y = overlap(q.left.rows, q.right.rows, sy);
    for (Index matrix = 0; matrix < rights; ++matrix) {
      const T* l = left + y.first * q.left.cols + x.first;
      const T* r = right + matrix * q.right.size() + (y.first + sy) * q.right.cols + x.first + sx;
      T sum = 0;
      for (int i = 0; i < static_cast<int>(y.count); ++i) {
        for (int j = 0; j < cols; ++j) sum += l[j] * r[j];
        l += q.left.cols;
        r += q.right.cols;
      }
      out[(matrix * q.out_rows() + row) * q.out_cols() + col] = sum;
    }
  }
}

template <typename T>
class SerialBatchPlan final : public DevicePlan<T> {
 public:
  explicit SerialBatchPlan(const PlanRequest& request) : DevicePlan<T>(request.problem) {
    const Problem& q = request.problem;
    if (q.lefts > 1) {
      streams_ = std::make_unique<Streams>(static_cast<int>(std::min<Index>(q.lefts, kStreams)));
    }
    grid_ = dim3(static_cast<unsigned>(ceil_div<Index>(q.out_cols(), kBlockSide)),
                 grid_extent(ceil_div<Index>(q.out_rows(), kBlockSide)));
  }

 private:
  void enqueue(const Call& call, const Arrays<T>& arrays) override {
    const Problem& q = this->problem_;
    const Index rights = rights_of_a_left(q);
    if (streams_) streams_->fork(call.stream);
    for (Index left = 0; left < q.lefts; ++left) {
      const Index pair = left * rights;
      launch(serial_batch_kernel<T>, grid_, dim3(kBlockSide, kBlockSide), 0,
             streams_ ? (*streams_)[left] : call.stream, Geometry(q),
             arrays.left + left * q.left.size(), arrays.right + q.pair(pair).right * q.right.size(),
             rights, arrays.out + pair * q.out_size());
    }
    if (streams_) streams_->join(call.stream);
  }

  dim3 grid_;
  std::unique_ptr<Streams> streams_;
};

XCORR_VARIANT({
    .summary = "The paper's baseline: a thread per output element loops over the right matrices",
    .parent = "overlap_wise",
    .source = "section 3.2, baseline of section 5",
    .backend = Backend::cuda,
    .precisions = {Precision::fp32, Precision::fp64},
    .supports = device::one_sum_fits,
    .plan = plan_in_precision<SerialBatchPlan>,
});

}  // namespace
}  // namespace xcorr::overlap_wise
