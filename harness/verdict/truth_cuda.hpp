// float64 truth on a CUDA device. Reference and comparison run on the device in chunks of pairs, so
// that checks take little of the time of a sweep, and their memory does not limit the size of a
// problem (docs/design.md, Checks).
#pragma once

#include <cuda_runtime.h>

#include <memory>

#include "harness/verdict/verdict.hpp"

namespace xcorr {

std::unique_ptr<Truth> make_cuda_truth(const Problem& problem, Precision precision,
                                       AlgorithmClass algorithm_class, std::uint64_t seed,
                                       cudaStream_t stream);

// Device bytes that it takes at most.
std::size_t cuda_truth_bytes(const Problem& problem);

}  // namespace xcorr
