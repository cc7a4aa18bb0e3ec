// The problems at which kernels break, and problems with fields: boundaries, scores, masks, results, one array twice, views.
#pragma once

#include <vector>

#include "harness/problem/inputs.hpp"
#include "harness/problem/problem.hpp"
#include "harness/variant.hpp"
#include "tests/conformance/random.hpp"

namespace xcorr::conformance {

// Odd shapes, counts and windows in every form; on a GPU larger ones too.
std::vector<Problem> fixed_problems(Backend backend);

// Every value of every field on odd shapes. Both kinds of scores, ncc and zncc on one side and all
// others on the other, meet every one of `field_places`.
std::vector<Problem> field_problems();

// Every odd shape in every form and each of its windows, without fields.
std::vector<Problem> field_places();

// The inputs that a problem is judged with where none are named.
std::vector<InputKind> usual_inputs(const Problem& problem);

// The problem with fields that are drawn among those of the variant. The window changes where the
// boundary does. The problem itself where the drawn fields do not fit it or the limits.
Problem with_drawn_fields(Rng& rng, const Variant& variant, const Problem& plain,
                          const Limits& limits);

}  // namespace xcorr::conformance
