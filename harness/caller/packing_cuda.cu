#include <algorithm>

#include "harness/caller/packing.hpp"
#include "harness/device/cuda_check.hpp"

namespace xcorr {
namespace {

constexpr Index kThreads = 256;
constexpr Index kMostBlocks = 1 << 16;  // a grid of all elements would need more than CUDA allows

// Element i of the dense matrices. Divisions of 32 bits are several times as fast as those of 64.
template <typename Number, typename From, typename To>
__global__ void pack_kernel(Packing p, const From* __restrict__ from, To* __restrict__ to) {
  const Index count = p.elements();
  const Index step = static_cast<Index>(gridDim.x) * blockDim.x;
  for (Index i = static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
    const Number cols = static_cast<Number>(p.shape.cols), rows = static_cast<Number>(p.shape.rows);
    const Number row = static_cast<Number>(i) / cols, col = static_cast<Number>(i) - row * cols;
    const Number matrix = row / rows, y = row - matrix * rows;
    const Index at = static_cast<Index>(matrix) * p.strides[0] +
                     static_cast<Index>(y) * p.strides[1] + static_cast<Index>(col) * p.strides[2];
    to[i] = as_scalar<To>(from[at]);
  }
}

template <typename From, typename To>
void launch_pack(const Packing& p, const From* from, To* to, cudaStream_t stream) {
  const Index count = p.elements();
  const auto blocks =
      static_cast<unsigned>(std::min((count + kThreads - 1) / kThreads, kMostBlocks));
  const auto threads = static_cast<unsigned>(kThreads);
  if (count < (Index{1} << 32)) {
    pack_kernel<std::uint32_t><<<blocks, threads, 0, stream>>>(p, from, to);
  } else {
    pack_kernel<std::uint64_t><<<blocks, threads, 0, stream>>>(p, from, to);
  }
  require_cuda(cudaGetLastError(), "conversion of an array");
}

}  // namespace

void pack_on_cuda(const Packing& packing, const void* from, void* to, void* stream) {
  const auto enqueued = static_cast<cudaStream_t>(stream);
  with_element_type(packing.from, [&](auto of_type) {
    const auto* const elements = static_cast<const decltype(of_type)*>(from);
    if (packing.to_double)
      return launch_pack(packing, elements, static_cast<double*>(to), enqueued);
    launch_pack(packing, elements, static_cast<float*>(to), enqueued);
  });
}

}  // namespace xcorr
