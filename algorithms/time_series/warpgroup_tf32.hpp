// The products of warpgroup_products.hpp in tf32: one word per sample.
#pragma once

#include "algorithms/time_series/warpgroup_products.hpp"

namespace xcorr::time_series {

struct WgmmaTf32 {
  static constexpr int kStep = 8, kPart = 4, kColumns = 128, kMostTileShifts = 8192;
  static constexpr int kAtOnce = 4, kParts = 1;
  static constexpr bool kFromZero = false;

  template <typename Sample>
  __device__ static __forceinline__ void words(const Sample& sample, int i,
                                               std::uint32_t (&of)[kParts]) {
    of[0] = matrix::to_tf32(sample(i));
  }
  template <bool kAdd>
  __device__ static __forceinline__ void add(float (&d)[kColumns / 2],
                                             const std::uint32_t (&a)[kParts][4],
                                             const std::uint32_t* b, int /*part_words*/,
                                             int rows_apart) {
    warpgroup::add_product_tf32<kAdd>(d, a[0],
                                      warpgroup::right_matrix(b, rows_apart, 8 * kPartBytes));
  }
};

}  // namespace xcorr::time_series
