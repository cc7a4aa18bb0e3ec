// The C++ program of the ISS paper with SIMD (section 4.2): autocorr_reordered, with the innermost
// sum in the lanes of vectors. The paper recompiles its source with other compiler options. Here
// the sum over a line is written with kSums vectors, since the compiler may not reorder
// floating-point additions, and a single vector would wait for the previous addition.
//
// SIMD: vector types of GCC and Clang, compiled once per instruction set (AVX-512, AVX2 + FMA, and
// the baseline of the architecture: SSE2, NEON) and chosen at run time.
//
// Parameter threads: `1` is the paper's program of its figures. `all` divides the rows of shifts of
// all images, so that one image has work for every thread. A number of threads has threads_over too:
// with `images` each thread analyses other images, which is the paper's OpenMP program (section
// 2.2); with `rows_of_shifts` the division is that of `all`. The order of the additions of an output
// is the same for any number of threads and either division.
// Limits: two loads per product, so that the load units limit the time; cpu_row_streaming keeps
// blocks of outputs in registers.
#include <algorithm>
#include <cstring>

#include "algorithms/autocorrelation/line_loops.hpp"

namespace xcorr::autocorrelation {
namespace {

constexpr int kSums = 4;
const std::string kAll = "all", kImages = "images";

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

int thread_count(const Params& params) {
  return params.get("threads") == kAll ? omp_get_max_threads() : params.get_int("threads");
}

bool divides_images(const Params& params) {
  return params.has("threads_over") && params.get("threads_over") == kImages;
}

// More threads than OpenMP has would wait for each other. Images of which there is one cannot be
// divided.
Support supports(const PlanRequest& request) {
  const int threads = thread_count(request.params), available = omp_get_max_threads();
  if (threads > available) {
    return no("threads=" + std::to_string(threads) + ": OpenMP has " + std::to_string(available) +
              " threads here; take threads=all");
  }
  if (divides_images(request.params) && request.problem.pairs() == 1) {
    return no("threads_over=images: the problem has one image; take threads_over=rows_of_shifts");
  }
  return yes();
}

XCORR_VARIANT({
    .summary = "Autocorrelation: adjacent lines innermost by SIMD, on one or more cores",
    .parent = "autocorr_reordered",
    .source = "ISS paper, sections 2.2 and 4.2",
    .forms = {Form::one_to_one, Form::n_to_mn},
    .axes = {{"threads", {"1", kAll, "2", "4", "8", "16", "32", "64"}},
             {"threads_over", {"rows_of_shifts", kImages}}},
    .drops = {{"threads", "1", "threads_over"}, {"threads", kAll, "threads_over"}},
    .same_only = true,
    .supports = supports,
    .plan = [](const PlanRequest& request) -> std::unique_ptr<Plan> {
      const auto over =
          divides_images(request.params) ? ThreadsOver::images : ThreadsOver::rows_of_shifts;
      return std::make_unique<LineLoopsPlan>(request, fastest_sum(), thread_count(request.params),
                                             over);
    },
});

}  // namespace
}  // namespace xcorr::autocorrelation
