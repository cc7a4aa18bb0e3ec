// A macro for a header that is compiled by the build and whose text NVRTC compiles at run time; and
// the text in front of it, which has the functions that it takes from CUDA. For the build
// prelude.hpp has these functions.
#pragma once

// Expands to the header as code, and to a string `name` with its text.
#define XCORR_RUN_TIME_TEXT(name, ...)              \
  __VA_ARGS__                                       \
  namespace xcorr::template_matching {              \
  inline constexpr const char* name = #__VA_ARGS__; \
  }
#define XCORR_DEVICE __device__ __forceinline__
// Stands in front of a loop over the elements of a tile, or over tiles. The text that NVRTC gets
// begins with one of the definitions below; the build needs none.
#define XCORR_TILE_LOOP

namespace xcorr::template_matching {

// The compiler chooses how far it unrolls a loop, or unrolls every loop as a whole.
inline constexpr const char* kLoopsText = "#define XCORR_TILE_LOOP\n";
inline constexpr const char* kUnrolledLoopsText = "#define XCORR_TILE_LOOP _Pragma(\"unroll\")\n";

inline constexpr const char* kPreludeText = R"(
#define XCORR_DEVICE __device__ __forceinline__
namespace xcorr::template_matching {
extern __shared__ __align__(16) float xcorr_dynamic[];
XCORR_DEVICE float* dynamic_floats() { return xcorr_dynamic; }
XCORR_DEVICE int thread_number() { return static_cast<int>(threadIdx.x); }
XCORR_DEVICE int block_number() { return static_cast<int>(blockIdx.x); }
XCORR_DEVICE int second_block_number() { return static_cast<int>(blockIdx.y); }
XCORR_DEVICE int second_blocks() { return static_cast<int>(gridDim.y); }
XCORR_DEVICE void meet_in_block() { __syncthreads(); }
XCORR_DEVICE void wait_for_launch_before() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
XCORR_DEVICE float multiply_add(float a, float b, float c) { return __fmaf_rn(a, b, c); }
}  // namespace xcorr::template_matching
)";

}  // namespace xcorr::template_matching
