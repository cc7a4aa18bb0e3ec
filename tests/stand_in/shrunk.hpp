// A small problem of the same kind as a large one.
#pragma once

#include "harness/problem/problem.hpp"

namespace xcorr::stand_in {

// Same form, fields, kind of window and relation of the shapes; a few small matrices. Problems with views
// stay as they are, since their offsets are made for the whole problem.
Problem shrunk(const Problem& problem);

// Whether plans and truth are made for the shrunk problem: in xcorr-bench alone.
bool shrinks();

// What plans and truth are made for.
inline Problem computed(const Problem& problem) { return shrinks() ? shrunk(problem) : problem; }

}  // namespace xcorr::stand_in
