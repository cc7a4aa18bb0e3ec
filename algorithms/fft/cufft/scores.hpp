// The scores covariance and phase (harness/problem/fields.hpp) for cufft with transform=real. Means
// of the padded inputs are removed before the forward transform, and products of spectra are
// weighted before the inverse transform. Accuracy comes before speed: means, moduli and weights are
// float64, and every sum has a fixed order.
#pragma once

#include <algorithm>
#include <cmath>

#include "algorithms/blocks/block_sum.hpp"
#include "algorithms/device/cuda.hpp"
#include "algorithms/fft/cufft/tuning.hpp"
#include "algorithms/fft/layout.hpp"

namespace xcorr::fft {

// Padded images of the inputs, one matrix per slot.
template <typename T>
struct PaddedInputs {
  T* images;
  Strides strides;
  Index parts;  // scalars per column
  Index slots, left_slots;
  Shape left, right;
};

// Subtracts the mean from each matrix; the padding stays 0. A block takes slots in a stride. The
// mean is subtracted in two parts, so that an offset of the data costs no bit of the difference.
// norms[slot] is the norm of the result. For a matrix of equal elements it is 0: the rounding error
// of the mean is far below the last place of an element.
template <typename T>
__global__ void __launch_bounds__(CufftTuning::kScoreThreads)
    remove_means_kernel(PaddedInputs<T> of, double* norms) {
  for (Index slot = blockIdx.x; slot < of.slots; slot += gridDim.x) {
    const Shape shape = slot < of.left_slots ? of.left : of.right;
    T* const image = of.images + slot * of.strides.slot;
    const auto element = [&](Index i) -> T& {
      return image[i / shape.cols * of.strides.row + i % shape.cols * of.parts];
    };
    const double size = static_cast<double>(shape.size());
    double mean = 0, rest = 0, squares = 0;
    for (Index i = threadIdx.x; i < shape.size(); i += CufftTuning::kScoreThreads)
      mean += element(i);
    mean = sum_over_block<CufftTuning::kScoreThreads>(mean) / size;
    for (Index i = threadIdx.x; i < shape.size(); i += CufftTuning::kScoreThreads) {
      const double value = element(i) - mean;
      rest += value;
      squares += value * value;
    }
    rest = sum_over_block<CufftTuning::kScoreThreads>(rest) / size;
    squares = sum_over_block<CufftTuning::kScoreThreads>(squares) - rest * rest * size;
    const double least = 0x1p-70 * mean;
    const bool constant = squares <= least * least * size;
    for (Index i = threadIdx.x; i < shape.size(); i += CufftTuning::kScoreThreads) {
      T& value = element(i);
      value = constant ? T(0) : static_cast<T>((value - mean) - rest);
    }
    if (threadIdx.x == 0) norms[slot] = constant ? 0 : sqrt(squares);
  }
}

// The number of doubles in `norms`.
inline Index matrix_norms(const FftGeometry& g) { return g.input_slots(); }

template <typename T>
void remove_means(const FftGeometry& g, T* images, double* norms, void* stream) {
  const PaddedInputs<T> of{images, g.in, g.parts(), g.input_slots(), g.left_slots, g.left, g.right};
  launch(remove_means_kernel<T>,
         dim3(static_cast<unsigned>(std::min(of.slots, CufftTuning::kMostScoreBlocks))),
         dim3(CufftTuning::kScoreThreads), 0, stream, of, norms);
}

// Spectra of a chunk as in Hadamard: `runs` runs (one per left spectrum) of `items` valid slots
// each. Products may overwrite the right spectra.
template <typename T>
struct PhaseArguments {
  using Bin = Wide<T, 2>;
  const Bin* left;
  const Bin* right;
  Bin* product;
  const double* left_norms;  // of the matrices of the spectra
  const double* right_norms;
  Index slots, run, runs, items;
  bool shared_rights;
  Index spectrum, pitch, rows, cols;  // cols: bins per row that the transform uses
  double exponent;
  double floor;  // is multiplied by both norms
  double scale;
};

// product = X / max(|X|, floor)^(1 - exponent), with X = conj(left) * right (phase_floor). In
// float64, because a product of float32 moduli can leave the range of float32. Bin 0 becomes 0, and
// so do all bins where a norm is 0. grid: bins in a stride (x), slots in a stride (y). With four
// blocks per SM a thread has 64 registers; for sm_80 the compiler stops at 48 without this limit,
// and spills.
template <typename T>
__global__ void __launch_bounds__(CufftTuning::kScoreThreads, CufftTuning::kPhaseBlocks)
    phase_kernel(PhaseArguments<T> a) {
  for (Index slot = blockIdx.y; slot < a.slots; slot += gridDim.y) {
    const Index run = slot / a.run, item = slot % a.run;
    if (run >= a.runs || item >= a.items) continue;
    const Index of_right = a.shared_rights ? item : slot;
    const double floor = a.floor * (a.left_norms[run] * a.right_norms[of_right]);
    for (Index i = static_cast<Index>(blockIdx.x) * CufftTuning::kScoreThreads + threadIdx.x;
         i < a.rows * a.cols; i += static_cast<Index>(gridDim.x) * CufftTuning::kScoreThreads) {
      const Index at = i / a.cols * a.pitch + i % a.cols;
      const auto left = a.left[run * a.spectrum + at], right = a.right[of_right * a.spectrum + at];
      const double lx = left.at[0], ly = left.at[1], rx = right.at[0], ry = right.at[1];
      const double re = lx * rx + ly * ry, im = lx * ry - ly * rx;
      const double modulus = sqrt(re * re + im * im);
      const double by = modulus > floor ? modulus : floor;
      // Multiplied by 0, not set to 0, so that a NaN stays a NaN.
      const double weight = i == 0 || !(floor > 0)
                                ? 0
                                : a.scale * (a.exponent == 0 ? 1 / by : pow(by, a.exponent - 1));
      a.product[slot * a.spectrum + at] = {
          {static_cast<T>(weight * re), static_cast<T>(weight * im)}};
    }
  }
}

// Computes the weighted products of the valid slots of a chunk, for spectra of matrices without
// means. hadamard() computes the plain products.
template <typename T>
void phase_products(const FftGeometry& g, const void* left, const void* right,
                    const double* left_norms, const double* right_norms, void* product, Index runs,
                    Index items, bool shared_rights, double exponent, void* stream) {
  using Bin = typename PhaseArguments<T>::Bin;
  PhaseArguments<T> a{};
  a.left = static_cast<const Bin*>(left);
  a.right = static_cast<const Bin*>(right);
  a.product = static_cast<Bin*>(product);
  a.left_norms = left_norms;
  a.right_norms = right_norms;
  a.slots = g.pair_slots;
  a.run = g.pair_run;
  a.runs = runs;
  a.items = items;
  a.shared_rights = shared_rights;
  a.spectrum = g.spectrum;
  a.pitch = g.pitch;
  a.rows = g.rows;
  a.cols = g.used_cols();
  a.exponent = exponent;
  a.floor = phase_floor(static_cast<double>(g.rows * g.cols));
  a.scale = 1 / static_cast<double>(g.rows * g.cols);
  const auto slots = static_cast<unsigned>(std::min<Index>(a.slots, kGridLimitYZ));
  const Index blocks = std::min(ceil_div<Index>(a.rows * a.cols, CufftTuning::kScoreThreads),
                                CufftTuning::kMostScoreBlocks);
  launch(phase_kernel<T>, dim3(static_cast<unsigned>(blocks), slots),
         dim3(CufftTuning::kScoreThreads), 0, stream, a);
}

}  // namespace xcorr::fft
