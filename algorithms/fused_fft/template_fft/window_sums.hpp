// Sums of a run, 16 neighbouring windows of one length, by additions alone (template_factors.hpp
// says why). The sums of groups of 16 consecutive elements are known; a group starts where a run
// starts. Window j of a run is the sum of four parts:
//
//   elements j to 15, groups 1, 2, .., elements after the last group, j elements behind window 0
//
// The two middle parts are equal for all windows of a run and are added up once. The first part is
// summed from its end, the last part from its beginning. Windows stay in registers until they are
// complete, and are written to shared memory once.
#pragma once

#include "algorithms/blocks/template_factors.hpp"

namespace xcorr::fused_fft {

// Rows of windows per block, and elements per group of a column.
constexpr int kStripRows = kTallFactors;

// Keeps the compiler from converting several elements to float64 at once, which would take more
// registers.
__device__ __forceinline__ float in_turn(float value) {
  return std::bit_cast<float>(opaque(std::bit_cast<int>(value)));
}

// The sums of values and squares of a run of a column. load(i) is element i and may be called for
// elements behind the last window; sums_of(element) is the element's contribution; group(s) is the
// sums of elements 16 s to 16 s + 15; store(j, sums) takes window j. The run is processed in two
// halves of 8 windows, because 16 windows of both sums would take all registers.
template <typename Load, typename SumsOf, typename Group, typename Store>
__device__ __forceinline__ void sums_of_column(int length, Load load, SumsOf sums_of, Group group,
                                               Store store) {
  constexpr int kHalf = kStripRows / 2, kAtOnce = 4;
  float of[kHalf];
  RunSums windows[kHalf];
  if (length < kStripRows) {
#pragma unroll 1
    for (int begin = 0; begin < kStripRows; begin += kHalf) {
#pragma unroll
      for (RunSums& window : windows) window = {};
#pragma unroll 1
      for (int i = begin; i < begin + length; ++i) {
#pragma unroll
        for (int k = 0; k < kHalf; ++k) windows[k].add(sums_of(load(i + k)));
      }
#pragma unroll
      for (int k = 0; k < kHalf; ++k) store(begin + k, windows[k]);
    }
    return;
  }
  const int whole = length / kStripRows;
  RunSums shared{};
#pragma unroll 1
  for (int s = 1; s < whole; s += kAtOnce) {
    RunSums some[kAtOnce];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) some[k] = s + k < whole ? group(s + k) : RunSums{};
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) shared.add(some[k]);
  }
#pragma unroll 1
  for (int i = whole * kStripRows; i < length; ++i) shared.add(sums_of(load(i)));
  // Windows 0 to 7 contain elements 8 to 15, summed here. For windows 8 to 15 `shared` then
  // includes the eight elements behind window 0.
  RunSums first{};
#pragma unroll
  for (int k = 0; k < kHalf; ++k) of[k] = load(kHalf + k);
#pragma unroll
  for (int k = 0; k < kHalf; ++k) first.add(sums_of(of[k]));
#pragma unroll 1
  for (int begin = 0; begin < kStripRows; begin += kHalf) {
#pragma unroll
    for (int k = 0; k < kHalf; ++k) of[k] = load(begin + k);
#pragma unroll
    for (int k = kHalf - 1; k >= 0; --k) {
      first.add(sums_of(in_turn(of[k])));
      windows[k] = first;
    }
    first = {};
#pragma unroll
    for (int k = 0; k < kHalf; ++k) of[k] = load(length + begin + k);
#pragma unroll
    for (int k = 0; k < kHalf; ++k) {
      windows[k].add(shared);
      store(begin + k, windows[k]);
      shared.add(sums_of(in_turn(of[k])));
    }
  }
}

// A run of a row, of values or of squares, which alternate in shared memory. It takes two steps,
// since other threads add up the groups: begin_run() sums elements j to 15 into window j, and
// returns the sum of the group.
__device__ __forceinline__ double begin_run(double (&windows)[kWindowRun], const double* elements) {
  double sum = 0;
#pragma unroll
  for (int j = kWindowRun - 1; j >= 0; --j) {
    sum += elements[2 * j];
    windows[j] = sum;
  }
  return sum;
}
// The other three parts. groups[0] is the group at which the run starts.
__device__ __forceinline__ void finish_run(double (&windows)[kWindowRun], int length,
                                           const double* elements, const double* groups) {
  if (length < kWindowRun) {
#pragma unroll
    for (double& window : windows) window = 0;
#pragma unroll 1
    for (int i = 0; i < length; ++i) {
#pragma unroll
      for (int j = 0; j < kWindowRun; ++j) windows[j] += elements[2 * (i + j)];
    }
    return;
  }
  const int whole = length / kWindowRun;
  double shared = 0;
#pragma unroll 4
  for (int s = 1; s < whole; ++s) shared += groups[2 * s];
#pragma unroll 1
  for (int i = whole * kWindowRun; i < length; ++i) shared += elements[2 * i];
  const double* const behind = elements + 2 * length;
#pragma unroll
  for (int j = 0; j < kWindowRun; ++j) {
    windows[j] += shared;
    if (j + 1 < kWindowRun) shared += behind[2 * j];
  }
}

}  // namespace xcorr::fused_fft
