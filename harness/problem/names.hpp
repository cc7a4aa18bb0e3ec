// Names of enumerations: arrays of pairs, a value and its name.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "harness/problem/error.hpp"

namespace xcorr {

template <typename T, std::size_t N>
std::string_view name_of(const std::pair<T, std::string_view> (&all)[N], T value) {
  for (const auto& [candidate, name] : all) {
    if (candidate == value) return name;
  }
  return "?";
}

// The value with the name `text`. UserError that lists all names where there is none; `field` says what they name.
template <typename T, std::size_t N>
T value_of(const std::pair<T, std::string_view> (&all)[N], std::string_view field,
           std::string_view text) {
  std::string known;
  for (std::size_t i = 0; i < N; ++i) {
    if (all[i].second == text) return all[i].first;
    known.append(i == 0 ? "" : i + 1 == N ? " or " : ", ").append(all[i].second);
  }
  refuse(field, text, "unknown; use " + known);
}

}  // namespace xcorr
