// Surfaces of scores by the definition on a CUDA device, for the truth (harness/truth/field_truth.hpp).
#pragma once

#include <cuda_runtime.h>

#include <memory>

#include "harness/truth/score_reference.hpp"

namespace xcorr {

// Where the definition would take too long on this device, and for phase correlation, the reference
// is that of the host. `data` must outlive it.
std::unique_ptr<ScoreReference> make_cuda_score_reference(const ScoreData& data,
                                                          cudaStream_t stream);

// Device bytes that it takes at most.
std::size_t cuda_score_bytes(const Problem& problem);

}  // namespace xcorr
