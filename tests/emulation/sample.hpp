// Which compile-time points of a variant the emulation compiles: all of them, or a sample in which
// every pair of values of two axes occurs. Each generated unit (unit.cpp.in) includes this before
// the variant, whose kernels algorithms/blocks/points.hpp makes.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "harness/variant.hpp"

namespace xcorr::emulation {

// The place of a point's value on each axis. Points are numbered as in points.hpp: the last axis
// changes fastest.
template <std::size_t kAxes>
constexpr std::array<std::size_t, kAxes> places(const std::array<std::size_t, kAxes>& sizes,
                                                std::size_t point) {
  std::array<std::size_t, kAxes> result = {};
  for (std::size_t axis = kAxes; axis-- > 0; point /= sizes[axis]) {
    result[axis] = point % sizes[axis];
  }
  return result;
}

// Which pairs of values of two axes a set of points has.
template <std::size_t kAxes>
class Pairs {
 public:
  constexpr explicit Pairs(const std::array<std::size_t, kAxes>& sizes) : sizes_(sizes) {}
  // How many pairs of the point the set does not have.
  constexpr std::size_t missing(std::size_t point) const {
    const auto at = places(sizes_, point);
    std::size_t count = 0;
    for (std::size_t a = 0; a < kAxes; ++a) {
      for (std::size_t b = a + 1; b < kAxes; ++b) count += !has_[number(a, b, at)];
    }
    return count;
  }
  constexpr void add(std::size_t point) {
    const auto at = places(sizes_, point);
    for (std::size_t a = 0; a < kAxes; ++a) {
      for (std::size_t b = a + 1; b < kAxes; ++b) has_[number(a, b, at)] = true;
    }
  }

 private:
  static constexpr std::size_t kMostValues = 16;
  static constexpr std::size_t number(std::size_t a, std::size_t b,
                                      const std::array<std::size_t, kAxes>& at) {
    return ((a * kAxes + b) * kMostValues + at[a]) * kMostValues + at[b];
  }
  std::array<std::size_t, kAxes> sizes_;
  std::array<bool, kAxes * kAxes * kMostValues * kMostValues> has_ = {};
};

// Whether each of the kPoints points of axes with `sizes` values is in the sample of `seed`. The
// next point of the sample is one that adds most pairs, of several the first in an order that the
// seed draws. Of a single axis the sample has every point.
template <std::size_t kPoints, std::size_t kAxes>
constexpr std::array<bool, kPoints> pairwise_sample(const std::array<std::size_t, kAxes>& sizes,
                                                    std::uint64_t seed) {
  std::array<bool, kPoints> sample = {};
  if (kAxes < 2) {
    for (bool& taken : sample) taken = true;
    return sample;
  }
  std::array<std::size_t, kPoints> order = {};
  for (std::size_t i = 0; i < kPoints; ++i) order[i] = i;
  for (std::size_t i = kPoints; i > 1; --i) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    std::swap(order[i - 1], order[(seed >> 33) % i]);
  }
  Pairs<kAxes> pairs(sizes);
  for (;;) {
    std::size_t best = 0, most = 0;
    for (const std::size_t point : order) {
      const std::size_t count = pairs.missing(point);
      if (count > most) most = count, best = point;
    }
    if (most == 0) return sample;
    pairs.add(best);
    sample[best] = true;
  }
}

// A plan needs a kernel whose point is not in the sample.
struct NotInSample {};

using AnyKernel = void (*)();
// By variant and point, filled before main: the kernel, or null where it is not in the sample.
std::map<std::string, std::map<std::vector<int>, AnyKernel>>& compiled_points();
// Every kernel that was launched so far.
std::set<AnyKernel>& launched_kernels();

// The points of a variant's grid whose own kernel was compiled. A plan may still take the kernel of
// another point, where a problem has fewer matrices than the point asks for.
std::vector<Params> emulated_points(const Variant& variant);

// Called by launch() of the vocabulary.
template <typename Kernel>
void note_launch(Kernel kernel) {
  launched_kernels().insert(reinterpret_cast<AnyKernel>(kernel));
}

// What points.hpp asks of XCORR_POINT_CHOICE.
template <bool kAll, std::uint64_t kSeed>
struct PointChoice {
  template <std::size_t kPoints, std::size_t kAxes>
  static constexpr std::array<bool, kPoints> of(const std::array<std::size_t, kAxes>& sizes) {
    std::array<bool, kPoints> all = {};
    for (bool& chosen : all) chosen = true;
    return kAll ? all : pairwise_sample<kPoints>(sizes, kSeed);
  }
  template <typename Kernel>
  static void made(const char* variant, const std::vector<int>& point, Kernel kernel) {
    compiled_points()[variant][point] = reinterpret_cast<AnyKernel>(kernel);
  }
  static void left_out(const char* variant, const std::vector<int>& point) {
    compiled_points()[variant][point] = nullptr;
  }
  static void wanted(const char* variant, const std::vector<int>& point) {
    const auto& points = compiled_points()[variant];
    const auto found = points.find(point);
    if (found != points.end() && found->second == nullptr) throw NotInSample{};
  }
};

}  // namespace xcorr::emulation
