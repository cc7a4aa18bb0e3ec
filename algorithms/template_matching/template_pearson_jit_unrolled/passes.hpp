// Host side of template_pearson_jit_unrolled: the launches of a pass.
#pragma once

#include <algorithm>
#include <string>

#include "algorithms/template_matching/template_pearson_jit_unrolled/fractions.hpp"
#include "algorithms/template_matching/template_pearson_jit_unrolled/program.hpp"

namespace xcorr::template_matching {

// The launches of a kernel in a pass: one, or one for each area of shifts.
inline int launches_of_pass(const PlanRequest& request, const PearsonShape& s) {
  return launches_by_area(request) ? s.items / s.tiles : 1;
}

inline Support launches_fit(const PlanRequest& request) {
  constexpr int kMost = 1024;
  const int launches = launches_of_pass(request, pearson_shape(request));
  if (launches <= kMost) return yes();
  return no("a window of " + std::to_string(launches) + " launches in each pass, and " +
            std::to_string(kMost) + " are the limit: take launches=one");
}

// Launches the kernels of a pass: sums of tiles and reductions that were compiled for the problem;
// after the numerators the fraction. `Kernels` gives kernel i of unrolled_kernels() as
// of<Arguments>(i).
template <typename Kernels>
class UnrolledPasses {
 public:
  UnrolledPasses(const PlanRequest& request, const PearsonMemory& memory)
      : kernels_(request), sums_(run_time_arguments(request.problem, memory)) {
    const PearsonShape s = pearson_shape(request);
    const bool by_area = launches_by_area(request);
    launches_ = launches_of_pass(request, s);
    add_threads_ = add_threads(s, by_area);
    const Index shifts = by_area ? Index{s.down} * s.across : request.problem.out_size();
    add_blocks_ = static_cast<unsigned>(ceil_div<Index>(shifts, add_threads_));
    outputs_ = request.problem.out_elements();
  }
  auto made() const { return kernels_.made(); }

  template <Pass kPass>
  void run(DependentLaunches& launches, const PearsonArguments& a, void* stream) {
    constexpr RunTimePass kOwn = kRunTimePass<kPass>;
    sums_.units = a.units;
    sums_.right = a.right;
    sums_.count = items_of<kPass>(a.q);
    RunTimeTotals totals{a.partial, totals_of<kPass>(a), sums_.count, 0};
    const unsigned items = grid_extent(sums_.count);
    const dim3 sums_grid(static_cast<unsigned>(a.shape.items / launches_), items);
    for (int area = 0; area < launches_; ++area) {
      sums_.area = totals.area = area;
      launches.run(kernels_.template of<RunTimeArguments>(kOwn), sums_grid,
                   dim3(pearson_threads(a.shape)), run_time_shared_bytes(a.shape), stream, sums_);
      launches.run(kernels_.template of<RunTimeTotals>(kRunTimeKernels.size() + kOwn),
                   dim3(add_blocks_, items), dim3(static_cast<unsigned>(add_threads_)), 0, stream,
                   totals);
    }
    if (kPass != Pass::numerators || !a.q.is_ratio) return;
    const Index blocks = std::min(ceil_div<Index>(outputs_, TemplateTuning::kAddThreads),
                                  TemplateTuning::kMostAddBlocks);
    launches.run(fractions_kernel, dim3(static_cast<unsigned>(blocks)),
                 dim3(TemplateTuning::kAddThreads), 0, stream, a);
  }

 private:
  // Where a pass leaves its totals. The fraction reads the norms' memory as sums of squares.
  template <Pass kPass>
  static float* totals_of(const PearsonArguments& a) {
    return kPass == Pass::averages ? a.means : kPass == Pass::denominators ? a.norms : a.out;
  }

  Kernels kernels_;
  RunTimeArguments sums_;
  int launches_ = 1, add_threads_ = 0;
  unsigned add_blocks_ = 0;
  Index outputs_ = 0;
};

}  // namespace xcorr::template_matching
