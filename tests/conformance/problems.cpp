#include "tests/conformance/problems.hpp"

#include <algorithm>
#include <set>

#include "harness/problem/error.hpp"

namespace xcorr::conformance {
namespace {

struct ShapePair {
  const char *left, *right;
};
constexpr ShapePair kShapes[] = {
    {"1x1", "1x1"},     {"1x37", "1x37"},   {"37x1", "37x1"},   {"31x31", "31x31"},
    {"32x32", "32x32"}, {"33x33", "33x33"}, {"17x40", "17x40"}, {"40x17", "40x17"},
    {"8x9", "33x21"},   {"33x21", "8x9"},   {"12x40", "40x12"}, {"5x33", "33x33"},
    {"1x9", "1x300"},   {"70x1", "9x1"},    {"1x1", "12x7"},    {"12x7", "1x1"}};
// On a GPU only, with few pairs: every length of a transform written here, beyond one warp too.
constexpr ShapePair kLargeShapes[] = {
    {"60x60", "60x60"},     {"100x70", "100x70"}, {"140x190", "140x190"}, {"250x12", "250x12"},
    {"1x90", "1x90"},       {"90x1", "90x1"},     {"12x120", "12x120"},   {"12x250", "12x250"},
    {"140x130", "140x130"}, {"155x20", "155x20"}};
// These get every partial window: equal, left smaller, right smaller, crossing, single rows.
constexpr ShapePair kWindowShapes[] = {{"33x33", "33x33"}, {"17x40", "17x40"}, {"8x9", "33x21"},
                                       {"33x21", "8x9"},   {"12x40", "40x12"}, {"1x9", "1x70"},
                                       {"70x1", "9x1"}};

struct Counts {
  Form form;
  Index lefts, rights;
};
// On every shape.
constexpr Counts kCounts[] = {{Form::one_to_one, 1, 1},
                              {Form::one_to_many, 1, 7},
                              {Form::n_to_mn, 3, 12},
                              {Form::n_to_m, 3, 5}};
// On two shapes: one matrix on a side, m = 1, counts beyond a group of a kernel.
constexpr Counts kMoreCounts[] = {{Form::one_to_many, 1, 1}, {Form::one_to_many, 1, 33},
                                  {Form::n_to_mn, 1, 1},     {Form::n_to_mn, 5, 5},
                                  {Form::n_to_mn, 1, 4},     {Form::n_to_mn, 2, 18},
                                  {Form::n_to_m, 1, 1},      {Form::n_to_m, 1, 5},
                                  {Form::n_to_m, 5, 1},      {Form::n_to_m, 9, 17}};

constexpr Counts kLargeCounts[] = {
    {Form::one_to_one, 1, 1}, {Form::one_to_many, 1, 3}, {Form::n_to_m, 2, 2}};

// Templates along one signal: counts, channels, samples of a template, outputs of a template. The
// number of outputs lies at and beside borders of chunks, and the signal is odd and even.
struct Series {
  Index templates, channels, samples, outputs;
};
constexpr Series kSeries[] = {
    {1, 1, 1, 1},     {1, 1, 7, 64},      {5, 1, 8, 65},     {16, 1, 31, 257},
    {17, 1, 64, 96},  {16, 3, 255, 1023}, {5, 3, 256, 1025}, {17, 3, 257, 255},
    {1, 3, 31, 4097}, {16, 1, 256, 2047}, {17, 1, 1, 513},   {5, 1, 255, 2},
    {1, 1, 257, 128}, {16, 3, 8, 511},    {5, 1, 64, 2049},  {17, 1, 256, 97}};

std::string range(Index first, Index last) {
  return std::to_string(first) + ".." + std::to_string(last);
}

// Partial windows of one pair of shapes; `full` is its full window.
std::vector<std::string> partial_windows(const Problem& full) {
  const Shifts y = full.window.sy, x = full.window.sx;
  const auto text = [](const std::string& sy, const std::string& sx) {
    return "sy:" + sy + ",sx:" + sx;
  };
  return {
      "valid",
      text("0..0", "0..0"),
      text(range(y.first, y.first), range(x.first, x.first)),  // a single product
      text(range(std::max(y.first, y.last - 2), y.last),
           range(std::max(x.first, x.last - 4), x.last)),
      text(range(y.first, std::min(y.first + 3, y.last)),
           range(std::max(x.first, x.last - 1), x.last)),
      text(range(y.first / 2, y.last / 3), range(x.first / 3, x.last / 2)),
      text(range(std::min<Index>(1, y.last), y.last), range(x.first, std::max<Index>(-1, x.first))),
      text("0..0", range(x.first, x.last)),
      text(range(y.first, y.last), range(x.last, x.last)),
  };
}

}  // namespace

std::vector<Problem> fixed_problems(Backend backend) {
  std::vector<Problem> problems;
  std::set<std::string> ids;
  const auto add = [&](const Counts& counts, const ShapePair& shapes, const std::string& window) {
    const Shape left = parse_shape(shapes.left), right = parse_shape(shapes.right);
    const Problem problem =
        make_problem(counts.form, left, right, counts.lefts, counts.rights, window);
    if (ids.insert(problem.id()).second) problems.push_back(problem);
  };
  for (const ShapePair& shapes : kShapes) {
    for (const Counts& counts : kCounts) add(counts, shapes, "full");
  }
  for (const ShapePair& shapes : kLargeShapes) {
    if (backend == Backend::cpu) break;
    for (const Counts& counts : kLargeCounts) add(counts, shapes, "full");
  }
  // cufft_paper pads this to 19,901 = 7 x 2843 columns; large primes cost cuFFT digits.
  add({Form::one_to_one, 1, 1}, {"1x1", "1x19900"}, "sy:0..0,sx:0..309");
  // Forms take turns over the windows, so that each form meets each window on some shape.
  std::size_t turn = 0;
  for (const ShapePair& shapes : kWindowShapes) {
    const Problem full = make_problem(Form::one_to_one, parse_shape(shapes.left),
                                      parse_shape(shapes.right), 1, 1, "full");
    for (const std::string& window : partial_windows(full)) {
      try {
        add(kCounts[turn++ % std::size(kCounts)], shapes, window);
      } catch (const UserError&) {
        if (window != "valid") throw;  // neither contains the other
      }
    }
  }
  for (const Counts& counts : kMoreCounts) {
    add(counts, {"13x11", "13x11"}, "full");
    add(counts, {"4x5", "9x10"}, "sy:-2..1,sx:-1..3");
  }
  for (const auto& [templates, channels, samples, outputs] : kSeries) {
    problems.push_back(make_problem(Form::n_to_m, {channels, samples},
                                    {channels, samples + outputs - 1}, templates, 1, "valid"));
  }
  return problems;
}

}  // namespace xcorr::conformance
