// One problem computed by one variant under the emulation and compared with float64 truth.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/problem/problem.hpp"
#include "harness/variant.hpp"

namespace xcorr::emulation {

// "" or what went wrong first: an element, an overwritten input, or a fault of synchronisation.
// Global memory is exact in size, so that AddressSanitizer sees an access beyond it. Thorough:
// integer inputs (to the bit, twice, in two orders of threads) and zero-mean ones. Brief: integer
// inputs once. Thorough of few: brief where that starts many threads. Variants whose workers are
// warps start 32 times the threads of others, and would take minutes each.
enum class Effort { thorough, brief, thorough_of_few };
std::string failure(const Variant& variant, const Params& params, Precision precision,
                    const Problem& problem, std::uint64_t seed, Effort effort = Effort::thorough);
// How many computations were left out since their kernel is not in the sample, and how many times
// `thorough_of_few` was brief, since the process started.
std::uint64_t not_in_sample();
std::uint64_t were_brief();

// Every form with odd shapes, equal and not, and full, valid and partial windows.
std::vector<Problem> odd_problems();

// Every form with rows or columns that, with those above, need every length of a transform on each
// axis (tests/algorithms/test_transform_lengths.py).
std::vector<Problem> length_problems();

// Of the family time_series: odd lengths, channels, several segments of a transform with a part of one
// at the end, a window inside `valid`.
std::vector<Problem> time_series_problems();
// Templates in frames: every form, windows inside `valid` of frames that contain the template, several
// tiles of a transform, one shift. The last ones take panels of shared memory.
std::vector<Problem> template_problems();
// Whether a variant takes templates in frames that contain them, and no other shifts.
bool takes_templates_only(const Variant& variant);
// One array against itself (same=yes).
std::vector<Problem> autocorrelation_problems();
// Those of equal shapes, as problems of one array.
std::vector<Problem> of_one_array(const std::vector<Problem>& problems);

// Every form with shapes that no tile of several rows, columns or matrices divides.
std::vector<Problem> remainder_problems();
// Every form of several matrices with more than any kernel takes at once.
std::vector<Problem> many_matrices_problems();
// Every form with matrices that need several panels in a small shared memory, at few shifts.
std::vector<Problem> panel_problems();
// One-to-one, larger than a warp and than any tile in both directions; after the first, what is
// large for variants of few shapes. A variant is to take one of them.
std::vector<Problem> large_problems();

}  // namespace xcorr::emulation
