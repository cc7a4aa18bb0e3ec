// float64 truth on a CUDA device (docs/design.md, Checks). Reference and comparison of products run on
// the device in chunks of pairs, so that checks take little of the time of a sweep, and their memory
// does not limit the size of a problem.
#pragma once

#include <cuda_runtime.h>

#include <memory>

#include "harness/truth/score_reference.hpp"
#include "harness/verdict/verdict.hpp"

namespace xcorr {

std::unique_ptr<Truth> make_cuda_truth(const Problem& problem, Precision precision,
                                       AlgorithmClass algorithm_class, std::uint64_t seed,
                                       cudaStream_t stream);

// Scores by the definition on the device. Where the definition would take too long, and for phase
// correlation, the reference is that of the host. `data` must outlive it.
std::unique_ptr<ScoreReference> make_cuda_score_reference(const ScoreData& data,
                                                          cudaStream_t stream);

// Device bytes that they take at most.
std::size_t cuda_truth_bytes(const Problem& problem);
std::size_t cuda_score_bytes(const Problem& problem);

}  // namespace xcorr
