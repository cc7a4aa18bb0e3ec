// The element-wise fraction, the last step of the sliding-window paper's passes. Its sizes are not
// compiled in: it has no loop.
#pragma once

#include "algorithms/template_matching/pearson_passes.hpp"

namespace xcorr::template_matching {

// Turns numerators into scores, in place. a.norms has sums of squares of windows less their means.
// One thread per shift of a pair.
static __global__ void __launch_bounds__(TemplateTuning::kAddThreads)
    fractions_kernel(PearsonArguments a) {
  wait_for_previous();
  const TemplateProblem& q = a.q;
  const Index size = q.out_size(), count = q.pairs * size;
#pragma unroll 1
  for (Index i = static_cast<Index>(blockIdx.x) * TemplateTuning::kAddThreads + threadIdx.x;
       i < count; i += static_cast<Index>(gridDim.x) * TemplateTuning::kAddThreads) {
    const int pair = static_cast<int>(i / size);
    const Index shift = i - pair * size, frame = q.right_of(pair), window = frame * size + shift;
    const StagedWindow of = {static_cast<double>(a.norms[window]),
                             static_cast<double>(a.means[window])};
    a.out[i] = score_of(a, pair, shift, a.out[i], norm_of_window(a, frame, shift, of));
  }
}

}  // namespace xcorr::template_matching
