// Factors of the windows of frames, beside the spectra of templates: a template is transformed by one block, which
// leaves all other SMs idle.
//
// A call launches the survey of the frames, the spectra and these factors, each allowed to start before the one
// before it ends. The kernel of spectra says so when the survey has ended, since it waits for the survey first. So
// the factors find what the survey has stored, and wait for the spectra only before they store.
#pragma once

#include "algorithms/device/template_factors.hpp"

namespace xcorr::fused_fft {

// As factors_kernel, but for when it waits.
template <int kRows>
__global__ void __launch_bounds__(kFactorsThreads, 4)
    frame_factors_kernel(TemplateProblem q, TemplateMemory memory, const float* right) {
  make_factors<kRows, true>(q, memory, right);
}

}  // namespace xcorr::fused_fft
