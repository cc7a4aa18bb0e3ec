// The names of algorithms/device/matrix.hpp for a host compiler; meanings are documented there. A
// product takes every element from the lane and the register that the mapping of fragments says,
// adds in float64 and rounds once. The names are in vocabulary.hpp's namespace.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "tests/emulation/emulation.hpp"

namespace xcorr::device::matrix {

inline bool supported() { return true; }

inline std::uint32_t to_tf32(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return std::isfinite(value) ? (bits + 0x1000u) & ~0x1fffu : bits;
}

// What tensor cores read of the bits of a float.
inline double of_tf32(std::uint32_t bits) { return std::bit_cast<float>(bits & ~0x1fffu); }

inline std::uint32_t to_half(float value) {
  const std::uint32_t sign = std::signbit(value) ? 0x8000u : 0u;
  if (std::isnan(value)) return sign | 0x7fffu;
  const double size = std::fabs(value);
  int exponent = 0;
  std::frexp(size, &exponent);  // size < 2^exponent
  const int last = size < 0x1p-14 ? -24 : exponent - 11;
  const double rounded = std::ldexp(std::nearbyint(std::ldexp(size, -last)), last);
  if (rounded > 65504) return sign | 0x7c00u;
  if (rounded < 0x1p-14) return sign | static_cast<std::uint32_t>(std::ldexp(rounded, 24));
  std::frexp(rounded, &exponent);
  const double fraction = std::ldexp(rounded, 11 - exponent) - 1024;
  return sign | static_cast<std::uint32_t>(exponent + 14) << 10 |
         static_cast<std::uint32_t>(fraction);
}
inline std::uint32_t to_halves(float low, float high) { return to_half(low) | to_half(high) << 16; }

inline double of_half(std::uint32_t bits) {
  const std::uint32_t sign = (bits & 0x8000u) << 16, rest = bits & 0x7fffu;
  const float size = rest < 0x400u    ? static_cast<float>(rest) * 0x1p-24f
                     : rest < 0x7c00u ? std::bit_cast<float>((rest << 13) + (112u << 23))
                                      : std::bit_cast<float>(rest << 13 | 0x7f800000u);
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(size) | sign);
}

// One register of each matrix holds kPerWord columns of a row, or rows of a column.
template <int kPerWord, double (*kElement)(std::uint32_t word, int part)>
void add_product(float (&d)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1,
                 emulation::Site site) {
  struct Fragments {
    std::uint32_t a[4], b[2];
  };
  const Fragments mine = {{a[0], a[1], a[2], a[3]}, {b0, b1}};
  const std::uint64_t* all = emulation::exchange(std::bit_cast<std::uintptr_t>(&mine), site);
  const auto of_lane = [&](int lane) -> const Fragments& {
    return *std::bit_cast<const Fragments*>(static_cast<std::uintptr_t>(all[lane]));
  };
  for (int i = 0; i < 4; ++i) {
    const int row = emulation::lane() / 4 + i / 2 * 8, col = emulation::lane() % 4 * 2 + i % 2;
    double sum = d[i];
    for (int k = 0; k < 8 * kPerWord; ++k) {
      const int word = k / kPerWord, part = k % kPerWord;
      const std::uint32_t left =
          of_lane(row % 8 * 4 + word % 4).a[(row >= 8 ? 1 : 0) + (word >= 4 ? 2 : 0)];
      const std::uint32_t right = of_lane(col * 4 + word % 4).b[word / 4];
      sum += kElement(left, part) * kElement(right, part);
    }
    d[i] = static_cast<float>(sum);
  }
  emulation::exchange(0, site);  // all have read
}

inline double tf32_element(std::uint32_t word, int /*part*/) { return of_tf32(word); }
inline double half_element(std::uint32_t word, int part) {
  return of_half(part == 0 ? word & 0xffffu : word >> 16);
}

inline void add_product_tf32(float (&d)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                             std::uint32_t b1, emulation::Site site = emulation::Site::current()) {
  add_product<1, tf32_element>(d, a, b0, b1, site);
}
inline void add_product_half(float (&d)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                             std::uint32_t b1, emulation::Site site = emulation::Site::current()) {
  add_product<2, half_element>(d, a, b0, b1, site);
}
inline void add_product_16_columns(float (&d)[4], float (&e)[4], const std::uint32_t (&a)[4],
                                   const std::uint32_t (&b)[4],
                                   emulation::Site site = emulation::Site::current()) {
  add_product<1, tf32_element>(d, a, b[0], b[1], site);
  add_product<1, tf32_element>(e, a, b[2], b[3], site);
}

// Throws Fault where the hardware would trap.
inline void check_matrix(const std::uint32_t* shared, int pitch, emulation::Site site) {
  if (std::bit_cast<std::uintptr_t>(shared) % 32 != 0 || pitch % 4 != 0) {
    emulation::fail(
        "a matrix that is loaded is not aligned to 32 bytes, or its pitch is no "
        "multiple of 4");
  }
  emulation::exchange(0, site);
}
inline void load_left(std::uint32_t (&a)[4], const std::uint32_t* shared, int pitch,
                      emulation::Site site = emulation::Site::current()) {
  check_matrix(shared, pitch, site);
  for (int i = 0; i < 4; ++i) {
    a[i] = shared[(emulation::lane() / 4 + i % 2 * 8) * pitch + emulation::lane() % 4 + i / 2 * 4];
  }
}
inline void load_right(std::uint32_t (&b)[4], const std::uint32_t* shared, int pitch,
                       emulation::Site site = emulation::Site::current()) {
  check_matrix(shared, pitch, site);
  for (int i = 0; i < 4; ++i) {
    b[i] = shared[(emulation::lane() % 4 + i % 2 * 4) * pitch + emulation::lane() / 4 + i / 2 * 8];
  }
}

}  // namespace xcorr::device::matrix

// Products are made at once: a missing fence is not seen, nor a wait that only the sums need. Each warp has rows of its
// own, so that no other warp's fragments are needed.
namespace xcorr::device::warpgroup {

inline bool supported() { return true; }

struct RightMatrix {
  const std::uint32_t* at;
  int rows_apart, columns_apart;  // words
};
inline RightMatrix right_matrix(const void* shared, int rows_apart, int columns_apart) {
  if ((std::bit_cast<std::uintptr_t>(shared) | static_cast<unsigned>(rows_apart | columns_apart)) %
          16 !=
      0) {
    emulation::fail("a right matrix in shared memory is not in multiples of 16 bytes");
  }
  return {static_cast<const std::uint32_t*>(shared), rows_apart / 4, columns_apart / 4};
}
inline void publish_shared() {}
inline void fence() {}
inline void commit() {}
// An operation is one of the whole warpgroup and ends for its four warps at once (PTX ISA, wgmma.wait_group): whoever has
// waited may overwrite what any of them read.
template <int kGroups>
void wait(emulation::Site site = emulation::Site::current()) {
  static_assert(kGroups == 0, "which operations have ended is not kept here");
  emulation::group_barrier(4 * 32, site);
}

// A word holds kPerWord rows of a column of the right matrix, or columns of a row of the left one.
template <int kPerWord, double (*kElement)(std::uint32_t word, int part), bool kAdd, int kSums>
void add_product(float (&d)[kSums], const std::uint32_t (&a)[4], const RightMatrix& b,
                 emulation::Site site) {
  constexpr int kDepth = 8 * kPerWord;
  const std::uint64_t* all = emulation::exchange(std::bit_cast<std::uintptr_t>(&a), site);
  const int lane = emulation::lane();
  for (int half = 0; half < 2; ++half) {
    double left[kDepth];
    for (int k = 0; k < kDepth; ++k) {
      const int word = k / kPerWord;
      const auto* const of = std::bit_cast<const std::uint32_t*>(
          static_cast<std::uintptr_t>(all[lane / 4 * 4 + word % 4]));
      left[k] = kElement(of[half + word / 4 * 2], k % kPerWord);
    }
    for (int j = 0; j < kSums / 2; ++j) {
      const int col = j / 2 * 8 + lane % 4 * 2 + j % 2, at = j / 2 * 4 + half * 2 + j % 2;
      const std::uint32_t* const column = b.at + col / 8 * b.columns_apart + col % 8 * 4;
      double sum = kAdd ? d[at] : 0.0;
      for (int k = 0; k < kDepth; ++k) {
        const int word = k / kPerWord;
        sum += left[k] * kElement(column[word / 4 * b.rows_apart + word % 4], k % kPerWord);
      }
      d[at] = static_cast<float>(sum);
    }
  }
  emulation::exchange(0, site);  // all have read
}

template <bool kAdd = true, int kSums>
void add_product_tf32(float (&d)[kSums], const std::uint32_t (&a)[4], const RightMatrix& b,
                      emulation::Site site = emulation::Site::current()) {
  add_product<1, matrix::tf32_element, kAdd>(d, a, b, site);
}
template <bool kAdd = true>
void add_product_half(float (&d)[64], const std::uint32_t (&a)[4], const RightMatrix& b,
                      emulation::Site site = emulation::Site::current()) {
  add_product<2, matrix::half_element, kAdd>(d, a, b, site);
}

}  // namespace xcorr::device::warpgroup
