// Which sums of a shift come from inverse transforms, and the products of spectra from which these
// start.
//
// A sum over the elements that are valid in both matrices splits: with M = m + M', m being the
// share of valid elements, sum v M' comes from a transform, and m times the sum of v over the
// overlap comes from an integral image. So transforms compute only what a mask changes.
//
// Two sums are the real and the imaginary part of one complex inverse transform: two sums of one
// pair, or sums of two neighbouring pairs. The spectra of the two planes of a slot are separated
// when products are made.
//
//   products_kernel    for each sum conj(left plane) * right plane
#pragma once

#include "algorithms/blocks/divide.hpp"
#include "algorithms/blocks/pairs.hpp"
#include "algorithms/fft/cufft_normalised/planes.hpp"
#include "algorithms/fft/cufft_normalised/tuning.hpp"

namespace xcorr::fft {

// The sums of a shift that transforms compute. The mask of a side changes only the sums of the
// other side.
enum Sum { kProducts, kLeftSum, kLeftSquares, kRightSum, kRightSquares, kCount, kSums };

// Which sums a problem takes from transforms, and from which planes.
template <Masks kMasks_, bool kCentred_>
struct SumList {
  static constexpr Masks kMasks = kMasks_;
  static constexpr bool kCentred = kCentred_;
  static constexpr bool kLeft = masks_left(kMasks), kRight = masks_right(kMasks);
  static constexpr bool kMasked = kMasks != Masks::none;
  static constexpr int kImages = PlaneArguments::column_sums(kMasked);

  static constexpr bool kHas[kSums] = {true,  kRight&& kCentred, kRight, kLeft&& kCentred,
                                       kLeft, kLeft&& kRight};
  // Position of each sum among those of a pair.
  static constexpr int kPlace[kSums + 1] = {0,
                                            1,
                                            1 + kHas[1],
                                            1 + kHas[1] + kHas[2],
                                            1 + kHas[1] + kHas[2] + kHas[3],
                                            1 + kHas[1] + kHas[2] + kHas[3] + kHas[4],
                                            1 + kHas[1] + kHas[2] + kHas[3] + kHas[4] + kHas[5]};
  static constexpr int kNumber = kPlace[kSums];

  // Planes of a matrix: its values; squares, if the other side has a mask; its mask, if it has one.
  static constexpr int kPlanes = 1 + (kLeft ? 1 : 0) + (kRight ? 1 : 0);
  static constexpr SidePlanes kLeftPlanes = {kRight ? 1 : -1, kLeft ? (kRight ? 2 : 1) : -1};
  static constexpr SidePlanes kRightPlanes = {kLeft ? 1 : -1, kRight ? (kLeft ? 2 : 1) : -1};
  static constexpr int kLeftOf[kSums] = {
      0, 0, kLeftPlanes.square, kLeftPlanes.mask, kLeftPlanes.mask, kLeftPlanes.mask};
  static constexpr int kRightOf[kSums] = {0, kRightPlanes.mask,   kRightPlanes.mask,
                                          0, kRightPlanes.square, kRightPlanes.mask};

  // Number of pairs whose sums fill whole complex transforms.
  static constexpr int kPairs = kNumber % 2 == 0 ? 1 : 2;
  static constexpr int kSlots = kPairs * kNumber / 2;
};

struct alignas(8) Bin {
  float re, im;
};

// Pairs [first, first + count) of a call.
struct PairRange {
  Pairing pairing;
  Index lefts;
  Index first, count;

  // The numbers of both matrices among all matrices.
  __device__ __forceinline__ Pair matrices(Index pair) const {
    const Pair own = pairing.pair(static_cast<std::uint32_t>(first + pair));
    return {own.left, lefts + own.right};
  }
};

struct ProductArguments {
  PairRange pairs;
  const Bin* spectra;
  Index gap;  // PlaneArguments
  PlaneLayout from;
  Bin* products;
  PlaneLayout to;
  Divider half;  // bins per row that are no mirrors
  std::uint32_t rows, cols;
  Index groups;  // groups of pairs
  float scale;
  std::uint32_t* uncertain;  // counter; this kernel clears it
};

// Products of the bins k and -k at once. A slot Z holds two real planes, whose spectra are (Z(k) +
// conj Z(-k)) / 2 and (Z(k) - conj Z(-k)) / 2i. grid: bins, groups of pairs (in runs).
template <typename S>
__global__ void __launch_bounds__(kScoreThreads, 4) products_kernel(ProductArguments a) {
  if (blockIdx.x == 0 && blockIdx.y == 0 && threadIdx.x == 0) *a.uncertain = 0;
  std::uint32_t x = blockIdx.x * kScoreThreads + threadIdx.x;
  const std::uint32_t y = a.half.split(x);
  if (y >= a.rows) return;
  const bool is_own_mirror = x == 0 || 2 * x == a.cols;
  if (is_own_mirror && 2 * y > a.rows) return;  // the thread of row rows - y has it
  const Index mirrored_y = y == 0 ? 0 : a.rows - y, mirrored_x = x == 0 ? 0 : a.cols - x;
  const Index from_row = a.from.row, to_row = a.to.row;
  const Bin* const at = a.spectra + y * from_row + x;
  const Bin* const mirrored = a.spectra + mirrored_y * from_row + mirrored_x;
  Bin* const to = a.products + y * to_row + x;
  Bin* const to_mirrored = a.products + mirrored_y * to_row + mirrored_x;
  // Twice the spectrum of a plane.
  const auto bin = [&](Index plane) {
    const Index slot = plane / 2 * a.from.slot;
    const Bin z = at[slot], m = mirrored[slot];
    return plane % 2 == 0 ? Bin{z.re + m.re, z.im - m.im} : Bin{z.im + m.im, m.re - z.re};
  };
  const float scale = 0.25f * a.scale;
  const Index run = (a.groups + gridDim.y - 1) / gridDim.y;
  const Index begin = blockIdx.y * run, end = begin + run < a.groups ? begin + run : a.groups;
  Index left_matrix = -1;
  Bin left[S::kPlanes] = {};
  for (Index group = begin; group < end; ++group) {
    Bin product[S::kPairs * S::kNumber] = {};
#pragma unroll
    for (int k = 0; k < S::kPairs; ++k) {
      const Index pair = group * S::kPairs + k;
      if (pair >= a.pairs.count) continue;
      const Pair own = a.pairs.matrices(pair);
      if (own.left != left_matrix) {
        left_matrix = own.left;
#pragma unroll
        for (int i = 0; i < S::kPlanes; ++i) left[i] = bin(own.left * S::kPlanes + i);
      }
      Bin right[S::kPlanes];
#pragma unroll
      for (int i = 0; i < S::kPlanes; ++i) right[i] = bin(own.right * S::kPlanes + a.gap + i);
      const auto multiply = [&]<int kSum>() {
        if constexpr (S::kHas[kSum]) {
          const Bin l = left[S::kLeftOf[kSum]], r = right[S::kRightOf[kSum]];
          product[k * S::kNumber + S::kPlace[kSum]] = {scale * (l.re * r.re + l.im * r.im),
                                                       scale * (l.re * r.im - l.im * r.re)};
        }
      };
      [&]<int... kOf>(std::integer_sequence<int, kOf...>) {
        (multiply.template operator()<kOf>(), ...);
      }(std::make_integer_sequence<int, kSums>());
    }
#pragma unroll
    for (int i = 0; i < S::kSlots; ++i) {
      const Index slot = (group * S::kSlots + i) * a.to.slot;
      const Bin re = product[2 * i], im = product[2 * i + 1];
      to[slot] = {re.re - im.im, re.im + im.re};
      to_mirrored[slot] = {re.re + im.im, im.re - re.im};
    }
  }
}

}  // namespace xcorr::fft
