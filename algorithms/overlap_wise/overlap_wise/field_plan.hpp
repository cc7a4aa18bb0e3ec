// The host side of overlap_wise for problems with fields: workspace and launches. The kernels are
// in field_kernels.hpp.
#pragma once

#include <algorithm>

#include "algorithms/blocks/plan.hpp"
#include "algorithms/blocks/workspace.hpp"
#include "algorithms/overlap_wise/overlap_wise/field_kernels.hpp"
#include "algorithms/overlap_wise/overlap_wise/tuning.hpp"

namespace xcorr::overlap_wise {

inline unsigned blocks_along_x(Index count) {
  return static_cast<unsigned>(std::min(count, OverlapWiseTuning::kMostBlocks));
}

struct FieldMemory {
  FieldMemory(const Problem& q, Workspace workspace)
      : has_means(q.fields.score.kind == ScoreKind::covariance),
        counts(q.fields.masks != Masks::none),
        parts(std::min(ceil_div<Index>(q.out_size(), warp::kSize), OverlapWiseTuning::kMostParts)),
        means(workspace.take<Mean>(has_means ? q.lefts + q.rights : 0)),
        largest(workspace.take<Index>(counts ? q.pairs() : 0)),
        partial(workspace.take<Index>(counts ? q.pairs() * parts : 0)),
        bytes(workspace.bytes()) {}

  bool has_means, counts;
  Index parts;
  Mean* means;
  Index *largest, *partial;
  std::size_t bytes;
};

template <typename T>
class FieldPlan final : public DevicePlan<T> {
 public:
  explicit FieldPlan(const PlanRequest& request)
      : DevicePlan<T>(request.problem), at_(request.problem, Workspace(request.workspace)) {}

 private:
  void enqueue(const Call& call, const Arrays<T>& arrays) override {
    const Problem& q = this->problem_;
    const bool rows = q.fields.views == Views::channels;
    const Matrices<T> left{arrays.left,          call.left_mask, call.left_view.offsets,
                           call.left_view.pitch, rows,           q.left};
    const Matrices<T> right{
        arrays.right, call.right_mask, call.right_view.offsets, call.right_view.pitch,
        rows,         q.right};
    const bool ratio = is_normalised(q.fields.score.kind);
    const FieldArguments<T> a{q,
                              Pairing(q),
                              q.fields.boundary,
                              q.fields.score,
                              left,
                              right,
                              at_.has_means ? at_.means : nullptr,
                              at_.counts ? at_.largest : nullptr,
                              ratio ? q.max_overlap() : 0};
    const unsigned pairs = grid_extent(q.pairs());
    if (at_.has_means) {
      launch_means(left, q.lefts, at_.means, call.stream);
      launch_means(right, q.rights, at_.means + q.lefts, call.stream);
    }
    if (at_.counts) {
      launch(largest_counts_kernel<T>, dim3(static_cast<unsigned>(at_.parts), pairs),
             dim3(warp::kSize), 0, call.stream, a, at_.partial);
      launch(largest_of_parts_kernel<Index>,
             dim3(blocks_along_x(ceil_div<Index>(q.pairs(), warp::kSize))), dim3(warp::kSize), 0,
             call.stream, at_.partial, at_.parts, q.pairs(), at_.largest);
    }
    launch(score_kernel<T>,
           dim3(static_cast<unsigned>(ceil_div<Index>(q.out_cols(), warp::kSize)),
                grid_extent(ceil_div<Index>(q.out_rows(), OverlapWiseTuning::kScoreRows)), pairs),
           dim3(warp::kSize, OverlapWiseTuning::kScoreRows), 0, call.stream, a, arrays.out);
  }

  void launch_means(const Matrices<T>& of, Index matrices, Mean* means, void* stream) {
    launch(mean_kernel<T>, dim3(blocks_along_x(matrices)), dim3(OverlapWiseTuning::kMeanThreads), 0,
           stream, of, matrices, means);
  }

  FieldMemory at_;
};

}  // namespace xcorr::overlap_wise
