// What tests of variants for templates in frames ask of them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "harness/registry.hpp"
#include "tests/emulation/conformance.hpp"
#include "tests/emulation/sample.hpp"

namespace xcorr::emulation {

template <typename T>
bool has(const std::vector<T>& list, T value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

// Variants with scores that take valid windows and no others.
inline std::vector<Variant> for_templates() {
  std::vector<Variant> found;
  for (const Variant& v : variants()) {
    if (v.source_hash != "emulated" || !has(v.scores, ScoreKind::zncc)) continue;
    if (takes_templates_only(v)) found.push_back(v);
  }
  return found;
}

// All points of a variant that take a problem.
inline std::vector<Params> points_that_take(const Variant& v, const Problem& q) {
  if (!has(v.scores, q.fields.score.kind) || !has(v.results, q.fields.result.kind)) return {};
  std::vector<Params> points = emulated_points(v);
  std::erase_if(points, [&](const Params& p) { return !v.supports({q, p}); });
  return points;
}

inline std::size_t floats(Index elements) {
  return static_cast<std::size_t>(elements) * sizeof(float);
}

}  // namespace xcorr::emulation
