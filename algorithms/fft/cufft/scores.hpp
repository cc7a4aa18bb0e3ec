// What cufft does for the scores covariance and phase (harness/fields.hpp), with transform=real:
// the means of the padded inputs are removed before the forward transform, and products of spectra
// are weighted before the inverse one. Slow and right: means, moduli and weights are float64, and
// every sum has one order.
#pragma once

#include <algorithm>
#include <cmath>

#include "algorithms/device/cuda.hpp"
#include "algorithms/fft/layout.hpp"

namespace xcorr::fft {

constexpr int kScoreWarps = 8;
constexpr int kScoreThreads = kScoreWarps * warp::kSize;
// Blocks along x, and blocks that share the bins of a pair while they look for the largest modulus.
constexpr Index kMostScoreBlocks = small_if_emulated(Index{1} << 16, 3);
constexpr Index kMostPhaseParts = small_if_emulated(64, 3);
// Bins of a spectrum whose modulus is less than this share of the largest are divided by that share
// of the largest.
constexpr double kLeastModulus = 1e-5;

// Sum or largest value over the threads of a block of kScoreWarps warps.
template <bool kSum>
__device__ __forceinline__ double over_block(double value) {
  XCORR_SHARED(double, of_warp, kScoreWarps);
  const auto join = [](double a, double b) { return kSum ? a + b : b > a ? b : a; };
  for (int by = warp::kSize / 2; by > 0; by /= 2) {
    value = join(value, warp::shuffle_xor(value, by));
  }
  block::barrier();  // others may still read the values before
  if (warp::lane() == 0) of_warp[threadIdx.x / warp::kSize] = value;
  block::barrier();
  value = of_warp[0];
  for (int i = 1; i < kScoreWarps; ++i) value = join(value, of_warp[i]);
  return value;
}

// Padded images of the inputs, one matrix a slot.
template <typename T>
struct PaddedInputs {
  T* images;
  Strides strides;
  Index slots, left_slots;
  Shape left, right;
};

// Removes its mean from each matrix; the padding stays 0. A block takes slots in a stride. The mean
// is removed in two parts, so that an offset of the data loses no bit of the difference.
template <typename T>
__global__ void __launch_bounds__(kScoreThreads) remove_means_kernel(PaddedInputs<T> of) {
  for (Index slot = blockIdx.x; slot < of.slots; slot += gridDim.x) {
    const Shape shape = slot < of.left_slots ? of.left : of.right;
    T* const image = of.images + slot * of.strides.slot;
    double mean[2] = {0, 0};
    for (int part = 0; part < 2; ++part) {
      double sum = 0;
      for (Index i = threadIdx.x; i < shape.size(); i += kScoreThreads) {
        sum += image[i / shape.cols * of.strides.row + i % shape.cols] - mean[0];
      }
      mean[part] = over_block<true>(sum) / static_cast<double>(shape.size());
    }
    for (Index i = threadIdx.x; i < shape.size(); i += kScoreThreads) {
      T& value = image[i / shape.cols * of.strides.row + i % shape.cols];
      value = static_cast<T>((value - mean[0]) - mean[1]);
    }
  }
}

template <typename T>
void remove_means(const FftGeometry& g, T* images, void* stream) {
  const PaddedInputs<T> of{images, g.in, g.input_slots(), g.left_slots, g.left, g.right};
  launch(remove_means_kernel<T>, dim3(static_cast<unsigned>(std::min(of.slots, kMostScoreBlocks))),
         dim3(kScoreThreads), 0, stream, of);
}

// Spectra of a chunk as in Hadamard: `runs` runs (one a left spectrum) of `items` valid slots each.
// Products may replace the right spectra.
template <typename T>
struct PhaseArguments {
  using Bin = Wide<T, 2>;
  const Bin* left;
  const Bin* right;
  Bin* product;
  double* largest;  // [slots][parts]
  Index slots, run, runs, items;
  bool shared_rights;
  Index spectrum, pitch, rows, cols;  // cols: bins of a row that the transform uses
  double exponent;
  double scale;
};

template <typename T>
struct SpectrumPair {
  const Wide<T, 2>* left;
  const Wide<T, 2>* right;
  bool valid;
};

template <typename T>
__device__ __forceinline__ SpectrumPair<T> spectra(const PhaseArguments<T>& a, Index slot) {
  const Index run = slot / a.run, item = slot % a.run;
  return {a.left + run * a.spectrum, a.right + (a.shared_rights ? item : slot) * a.spectrum,
          run < a.runs && item < a.items};
}

// conj(left) * right of bin `at`, and its modulus, in float64: a product of float32 moduli could
// leave their range.
struct CrossBin {
  double re, im, modulus;
};
template <typename T>
__device__ __forceinline__ CrossBin cross(const SpectrumPair<T>& of, Index at) {
  const double lx = of.left[at].at[0], ly = of.left[at].at[1];
  const double rx = of.right[at].at[0], ry = of.right[at].at[1];
  const double re = lx * rx + ly * ry, im = lx * ry - ly * rx;
  return {re, im, sqrt(re * re + im * im)};
}

// largest[slot][part] = the largest modulus of the bins that a block takes. grid: parts, slots (in
// a stride).
template <typename T>
__global__ void __launch_bounds__(kScoreThreads) largest_modulus_kernel(PhaseArguments<T> a) {
  for (Index slot = blockIdx.y; slot < a.slots; slot += gridDim.y) {
    const SpectrumPair<T> of = spectra(a, slot);
    double largest = 0;
    for (Index i = static_cast<Index>(blockIdx.x) * kScoreThreads + threadIdx.x;
         of.valid && i < a.rows * a.cols; i += static_cast<Index>(gridDim.x) * kScoreThreads) {
      const double modulus = cross(of, i / a.cols * a.pitch + i % a.cols).modulus;
      largest = modulus > largest ? modulus : largest;
    }
    largest = over_block<false>(largest);
    if (threadIdx.x == 0) a.largest[slot * gridDim.x + blockIdx.x] = largest;
  }
}

// product = X / max(|X|, kLeastModulus * max |X|)^(1 - exponent), with X = conj(left) * right; 0
// where all of X is. grid: bins (in a stride), slots (in a stride). Four blocks a multiprocessor leave
// a thread 64 registers; for sm_80 the compiler stops at 48 by itself, and spills.
template <typename T>
__global__ void __launch_bounds__(kScoreThreads, 4) phase_kernel(PhaseArguments<T> a, Index parts) {
  for (Index slot = blockIdx.y; slot < a.slots; slot += gridDim.y) {
    const SpectrumPair<T> of = spectra(a, slot);
    if (!of.valid) continue;
    double largest = 0;
    for (Index part = 0; part < parts; ++part) {
      const double modulus = a.largest[slot * parts + part];
      largest = modulus > largest ? modulus : largest;
    }
    for (Index i = static_cast<Index>(blockIdx.x) * kScoreThreads + threadIdx.x;
         i < a.rows * a.cols; i += static_cast<Index>(gridDim.x) * kScoreThreads) {
      const Index at = i / a.cols * a.pitch + i % a.cols;
      const CrossBin x = cross(of, at);
      const double least = kLeastModulus * largest;
      const double modulus = x.modulus > least ? x.modulus : least;
      const double by = a.exponent == 0 ? modulus : pow(modulus, 1 - a.exponent);
      // Times 0 where all are 0, so that what is no number stays none.
      const double weight = largest > 0 ? a.scale / by : 0;
      a.product[slot * a.spectrum + at] = {
          {static_cast<T>(weight * x.re), static_cast<T>(weight * x.im)}};
    }
  }
}

// Blocks that share the bins of a pair.
inline Index phase_parts(const FftGeometry& g) {
  return std::min(ceil_div<Index>(g.rows * (g.cols / 2 + 1), kScoreThreads), kMostPhaseParts);
}
// Bytes of `largest` in phase_products.
inline Index phase_bytes(const FftGeometry& g) {
  return g.pair_slots * phase_parts(g) * static_cast<Index>(sizeof(double));
}

// The weighted products of the valid slots of a chunk, as hadamard makes plain ones.
template <typename T>
void phase_products(const FftGeometry& g, const void* left, const void* right, void* product,
                    Index runs, Index items, bool shared_rights, double exponent, double* largest,
                    void* stream) {
  using Bin = typename PhaseArguments<T>::Bin;
  PhaseArguments<T> a{};
  a.left = static_cast<const Bin*>(left);
  a.right = static_cast<const Bin*>(right);
  a.product = static_cast<Bin*>(product);
  a.largest = largest;
  a.slots = g.pair_slots;
  a.run = g.pair_run;
  a.runs = runs;
  a.items = items;
  a.shared_rights = shared_rights;
  a.spectrum = g.spectrum;
  a.pitch = g.pitch;
  a.rows = g.rows;
  a.cols = g.cols / 2 + 1;
  a.exponent = exponent;
  a.scale = 1 / static_cast<double>(g.rows * g.cols);
  const Index parts = phase_parts(g);
  const auto slots = static_cast<unsigned>(std::min<Index>(a.slots, kGridLimitYZ));
  launch(largest_modulus_kernel<T>, dim3(static_cast<unsigned>(parts), slots), dim3(kScoreThreads),
         0, stream, a);
  const Index blocks = std::min(ceil_div<Index>(a.rows * a.cols, kScoreThreads), kMostScoreBlocks);
  launch(phase_kernel<T>, dim3(static_cast<unsigned>(blocks), slots), dim3(kScoreThreads), 0,
         stream, a, parts);
}

}  // namespace xcorr::fft
