// The C++ program of the ISS paper with SIMD (section 4.2): autocorr_reordered, with the innermost
// sum in the lanes of vectors. The paper recompiles its source with other compiler options. Here
// the sum over a line is written with kSums vectors, since the compiler may not reorder
// floating-point additions, and a single vector would wait for the previous addition.
//
// SIMD: vector types of GCC and Clang, compiled once per instruction set (AVX-512, AVX2 + FMA, and
// the baseline of the architecture: SSE2, NEON) and chosen at run time.
//
// Threads divide the rows of shifts. The paper's text has one thread, and in addition OpenMP over
// images. The order of the additions of an output is the same for any number of threads.
// Limits: two loads per product, so that the load units limit the time; cpu_row_streaming keeps
// blocks of outputs in registers.
#include <algorithm>
#include <cstring>

#include "algorithms/autocorrelation/line_loops.hpp"

namespace xcorr::autocorrelation {
namespace {

constexpr int kSums = 4;

template <int kBytes>
[[gnu::always_inline]] inline float sum_in_lanes(const float* a, const float* b, Index count) {
  constexpr Index kLanes = kBytes / sizeof(float), kStep = kLanes * kSums;
  typedef float Vector __attribute__((vector_size(kBytes), aligned(sizeof(float)), may_alias));
  Vector sums[kSums] = {};
  Index x = 0;
  for (; x + kStep <= count; x += kStep) {
#pragma GCC unroll 4
    for (int i = 0; i < kSums; ++i) {
      sums[i] += *reinterpret_cast<const Vector*>(a + x + i * kLanes) *
                 *reinterpret_cast<const Vector*>(b + x + i * kLanes);
    }
  }
  for (; x + kLanes <= count; x += kLanes) {
    sums[0] += *reinterpret_cast<const Vector*>(a + x) * *reinterpret_cast<const Vector*>(b + x);
  }
  const Vector all = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  float lanes[kLanes];
  std::memcpy(lanes, &all, sizeof lanes);
  float sum = 0;
  for (const float lane : lanes) sum += lane;
  for (; x < count; ++x) sum += a[x] * b[x];
  return sum;
}

#if defined(__x86_64__)
[[gnu::target("avx512f")]] float sum_avx512(const float* a, const float* b, Index count) {
  return sum_in_lanes<64>(a, b, count);
}
[[gnu::target("avx2,fma")]] float sum_avx2(const float* a, const float* b, Index count) {
  return sum_in_lanes<32>(a, b, count);
}
#endif
float sum_baseline(const float* a, const float* b, Index count) {
  return sum_in_lanes<16>(a, b, count);
}

SumOfProducts fastest_sum() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return sum_avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return sum_avx2;
#endif
  return sum_baseline;
}

XCORR_VARIANT({
    .summary = "Autocorrelation: adjacent lines innermost by SIMD, on one or all cores",
    .parent = "autocorr_reordered",
    .source = "ISS paper, section 4.2",
    .forms = {Form::one_to_one, Form::n_to_mn},
    .axes = {{"threads", {"1", "all"}}},
    .same_only = true,
    .plan = [](const PlanRequest& request) -> std::unique_ptr<Plan> {
      const int threads = request.params.get("threads") == "1" ? 1 : omp_get_max_threads();
      return std::make_unique<LineLoopsPlan>(request, fastest_sum(), threads);
    },
});

}  // namespace
}  // namespace xcorr::autocorrelation
