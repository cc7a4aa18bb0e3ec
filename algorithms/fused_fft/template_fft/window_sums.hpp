// Sums of 16 neighbouring windows of one length, a run, by additions alone (template_factors.hpp says why), where the
// sums of groups of 16 elements are known, a group being what a run begins with:
//
//   window j   [ elements j to 15 | groups 1, 2, .. | what is left | the j elements behind window 0 ]
//
// What all windows of a run have is added up once; the first part grows from its end, the last one from its beginning.
// Windows stay in registers until they are complete, and go to shared memory once.
#pragma once

#include "algorithms/blocks/template_factors.hpp"

namespace xcorr::fused_fft {

// Rows of windows of a block, and of a group of a column.
constexpr int kStripRows = kTallFactors;

// The compiler converts no element before the one before: registers are short.
__device__ __forceinline__ float in_turn(float value) {
  return std::bit_cast<float>(opaque(std::bit_cast<int>(value)));
}

// A run of a column, values and squares. load(i) is element i, which may lie behind the last window's, sums_of(element)
// what it adds, group(s) the sums of elements 16 s to 16 s + 15; store(j, sums) takes window j. 16 windows of both
// sums would take all registers, so there are two halves of 8.
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
  // Windows of the first half have all elements of the second one; for these `shared` then has the eight elements
  // behind window 0.
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

// A run of a row, of values or of squares, from shared memory, where both alternate, in two steps, since other threads
// add up the groups: elements j to 15 become window j, and their sum is the group's.
__device__ __forceinline__ double begin_run(double (&windows)[kWindowRun], const double* elements) {
  double sum = 0;
#pragma unroll
  for (int j = kWindowRun - 1; j >= 0; --j) {
    sum += elements[2 * j];
    windows[j] = sum;
  }
  return sum;
}
// All else. `groups`: from the run's own.
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
