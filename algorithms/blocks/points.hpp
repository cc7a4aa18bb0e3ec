// Compile-time parameters. The values of a parameter are listed once, in a type. The axis of the
// registration and the kernels of all points come from it:
//
//   using RightMats = PointAxis<Values<1, 2, 4, 8>, Values<2, 8>>;  // all, and those of grid=quick
//   const bool kKernels =
//       add_kernels<RightMats>(XCORR_ID, [](auto rights) { return kernel<rights>; });
//
//   .axes = {RightMats::axis("right_mats")}                   in the registration
//   find_kernel<Kernel>(XCORR_ID, {right_mats})               in the plan
//
// A variant that is compiled in parts (XCORR_COMPILE_IN_PARTS) adds every XCORR_PARTS-th point in
// each part. All parts fill one table.
#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "harness/variant.hpp"

namespace xcorr::device {

template <int... kValues>
struct Values {
  static constexpr std::array<int, sizeof...(kValues)> all = {kValues...};
};

// Calls use(std::integral_constant<int, value>()) if `value` is one of the values.
template <int... kValues, typename Use>
void with_value(Values<kValues...>, int value, const Use& use) {
  ((kValues == value ? use(std::integral_constant<int, kValues>()) : void()), ...);
}

// Values in ascending order. `Quick` is the subset that the option grid=quick builds.
template <typename Paper, typename Quick = Paper>
struct PointAxis {
#ifdef XCORR_GRID_QUICK
  using Built = Quick;
#else
  using Built = Paper;
#endif

  static Axis axis(const std::string& name) {
    const auto words = [](const auto& values) {
      std::vector<std::string> result;
      for (const int value : values) result.push_back(std::to_string(value));
      return result;
    };
    return {name, words(Paper::all), true, words(Built::all)};
  }

  // The built value for `present` items if groups of `asked` are requested. Groups are not larger
  // than needed, because missing items cost as much as existing items.
  static int fitting(int asked, Index present) {
    for (const int value : Built::all) {
      if (value >= present || value >= asked) return value;
    }
    return asked;
  }
};

namespace points_detail {

// All points, unless the translation unit selects some: the emulation does
// (tests/emulation/sample.hpp).
#ifndef XCORR_POINT_CHOICE
#define XCORR_POINT_CHOICE points_detail::EveryPoint
struct EveryPoint {
  template <std::size_t kPoints>
  static constexpr std::array<bool, kPoints> of(const auto& /*sizes*/) {
    std::array<bool, kPoints> all = {};
    for (bool& chosen : all) chosen = true;
    return all;
  }
  static void made(const char* /*variant*/, const auto& /*point*/, auto /*kernel*/) {}
  static void left_out(const char* /*variant*/, const auto& /*point*/) {}
  static void wanted(const char* /*variant*/, const auto& /*point*/) {}
};
#endif

// Tables by variant, then by point; filled before main.
template <typename Kernel>
std::map<std::string, std::map<std::vector<int>, Kernel>>& tables() {
  static std::map<std::string, std::map<std::vector<int>, Kernel>> all;
  return all;
}

// Point i of the product of axes, the last axis fastest.
template <typename... Axes>
constexpr std::array<int, sizeof...(Axes)> point(std::size_t i) {
  constexpr std::size_t kAxes = sizeof...(Axes);
  const std::array<std::size_t, kAxes> sizes = {Axes::Built::all.size()...};
  std::array<std::size_t, kAxes> digits = {};
  for (std::size_t axis = kAxes; axis-- > 0; i /= sizes[axis]) digits[axis] = i % sizes[axis];
  std::size_t axis = 0;
  return {Axes::Built::all[digits[axis++]]...};
}

template <typename... Axes>
constexpr std::size_t kPoints = (Axes::Built::all.size() * ...);

template <typename... Axes>
constexpr auto kChosen = XCORR_POINT_CHOICE::of<kPoints<Axes...>>(
    std::array<std::size_t, sizeof...(Axes)>{Axes::Built::all.size()...});

template <typename... Axes, typename Make, std::size_t... kAxis>
void add_point(auto index, const char* variant, const Make& make, std::index_sequence<kAxis...>) {
  constexpr std::size_t kIndex = decltype(index)::value;
  if constexpr (kIndex % XCORR_PARTS == XCORR_PART) {
    constexpr auto kPoint = point<Axes...>(kIndex);
    const std::vector<int> key(kPoint.begin(), kPoint.end());
    if constexpr (kChosen<Axes...>[kIndex]) {
      const auto kernel = make(std::integral_constant<int, kPoint[kAxis]>{}...);
      tables<std::decay_t<decltype(kernel)>>()[variant][key] = kernel;
      XCORR_POINT_CHOICE::made(variant, key, kernel);
    } else {
      XCORR_POINT_CHOICE::left_out(variant, key);
    }
  }
}

}  // namespace points_detail

// Adds the kernels make(values...) of all points of this part to the table of `variant`; the values
// are std::integral_constant.
template <typename... Axes, typename Make>
bool add_kernels(const char* variant, const Make& make) {
  [&]<std::size_t... kIndex>(std::index_sequence<kIndex...>) {
    (points_detail::add_point<Axes...>(std::integral_constant<std::size_t, kIndex>{}, variant, make,
                                       std::index_sequence_for<Axes...>{}),
     ...);
  }(std::make_index_sequence<points_detail::kPoints<Axes...>>{});
  return true;
}

template <typename Kernel>
Kernel find_kernel(const char* variant, const std::vector<int>& point) {
  XCORR_POINT_CHOICE::wanted(variant, point);
  return points_detail::tables<Kernel>().at(variant).at(point);
}

}  // namespace xcorr::device
