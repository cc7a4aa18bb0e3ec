#include "tests/conformance/properties.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "harness/measure/operands.hpp"
#include "harness/problem/error.hpp"
#include "harness/reduce/reduce.hpp"
#include "tests/conformance/random.hpp"

namespace xcorr::conformance {
namespace {

constexpr double kExactSums = 0x1p24;
// Of the full output where a case is a window of it.
constexpr Index kMostElements = Index{1} << 24;
constexpr Index kMostFmas = Index{1} << 33;

using Values = std::vector<double>;

struct Matrices {
  Values left, right;
};

Values integers(std::uint64_t seed, Side side, Index count, Index amplitude) {
  Values values(static_cast<std::size_t>(count));
  fill_inputs(values.data(), {InputKind::integer, seed, side, amplitude}, 0, count);
  return values;
}

Values norms(const Values& matrices, Index size) {
  Values result(matrices.size() / static_cast<std::size_t>(size));
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    result[i / static_cast<std::size_t>(size)] += matrices[i] * matrices[i];
  }
  for (double& v : result) v = std::sqrt(v);
  return result;
}

template <typename T>
void upload_as(Device& device, void* to, const Values& values) {
  const std::vector<T> converted(values.begin(), values.end());
  device.upload(to, converted.data(), converted.size() * sizeof(T));
}

template <typename T>
Values download_as(Device& device, const Banded& from) {
  std::vector<T> values(from.bytes / sizeof(T));
  device.download(values.data(), from.data(), from.bytes);
  return {values.begin(), values.end()};
}

// The output of the case's variant for a problem and its inputs.
Values compute(const Case& c, const Problem& problem, const Matrices& inputs, Device& device) {
  Case other = c;
  other.problem = problem;
  if (const Support support = supported(other, device); !support) throw Refused{support.reason};
  const std::size_t scalar = scalar_bytes(c.precision);
  const bool wide = scalar == sizeof(double);
  Operands operands(problem, c.precision, device, c.seed);
  Banded out(device, static_cast<std::size_t>(problem.out_elements()) * scalar);
  PlanRequest request{problem, c.params, c.precision, nullptr, device.stream()};
  Banded workspace(device, std::max<std::size_t>(plan_workspace_bytes(*c.variant, request), 1));
  request.workspace = workspace.data();
  operands.poison(device);
  for (Banded* buffer : {&out, &workspace}) buffer->poison(device);
  const auto upload = [&](void* to, const Values& values) {
    wide ? upload_as<double>(device, to, values) : upload_as<float>(device, to, values);
  };
  upload(operands.left(), inputs.left);
  if (!problem.fields.same) upload(operands.right(), inputs.right);
  const std::unique_ptr<Plan> plan = make_plan(*c.variant, request);
  plan->compute(operands.call(out.data(), device));
  device.synchronize();
  return wide ? download_as<double>(device, out) : download_as<float>(device, out);
}

// How far an output of a pair may be from the exact sum.
class Tolerance {
 public:
  Tolerance(const Case& c, const Problem& problem, const Matrices& inputs)
      : problem_(problem),
        exact_(is_definition(c.variant->algorithm_class)),
        of_both_(c.variant->algorithm_class == AlgorithmClass::fft_of_both),
        u_(unit_roundoff(c.precision)),
        left_(norms(inputs.left, problem.left.size())),
        right_(norms(inputs.right, problem.right.size())) {}
  double of(Index pair) const {
    if (exact_) return 0;
    const Pair lr = problem_.pair(pair);
    const double left = left_[static_cast<std::size_t>(lr.left)],
                 right = right_[static_cast<std::size_t>(lr.right)];
    const double largest = *std::max_element(left_.begin(), left_.end());
    return fft_bound(log2_transform_points(problem_), of_both_ ? largest : left, right, u_);
  }

 private:
  Problem problem_;
  bool exact_, of_both_;
  double u_;
  Values left_, right_;
};

std::string differ(const Problem& problem, Index pair, Index element, double got, double want,
                   double tolerance) {
  return std::abs(got - want) <= tolerance  // false for NaN
             ? ""
             : describe_element(problem, pair, element, got, want, tolerance);
}

// Integers small enough for every sum of products to be exact, with lefts up to `factor` larger.
Index amplitude_of(const Case& c, Index factor) {
  const AlgorithmClass of = c.variant->algorithm_class;
  const Index widest = exact_amplitude(c.problem, c.precision, of);
  const Index amplitude = std::max<Index>(1, widest / factor);
  const double largest = static_cast<double>(factor * amplitude * amplitude) *
                         static_cast<double>(c.problem.max_overlap());
  if (is_definition(of) && largest > kExactSums) {
    throw Refused{"sums of so many products are not exact"};
  }
  return amplitude;
}

Matrices matrices(const Case& c, const Problem& problem, Index amplitude) {
  Values left = integers(c.seed, Side::left, problem.left_elements(), amplitude);
  if (problem.fields.same) return {left, left};
  return {std::move(left), integers(c.seed, Side::right, problem.right_elements(), amplitude)};
}

std::string linearity(const Case& c, Device& device) {
  const Problem& p = c.problem;
  const Index amplitude = amplitude_of(c, 3);
  const Matrices one = matrices(c, p, amplitude);
  const Matrices two{integers(c.seed + 1, Side::left, p.left_elements(), amplitude), one.right};
  Matrices sum = one;
  for (std::size_t i = 0; i < sum.left.size(); ++i) sum.left[i] += 2 * two.left[i];
  const Values a = compute(c, p, one, device), b = compute(c, p, two, device);
  const Values both = compute(c, p, sum, device);
  const Tolerance of_a(c, p, one), of_b(c, p, two), of_both(c, p, sum);
  for (std::size_t i = 0; i < both.size(); ++i) {
    const auto at = static_cast<Index>(i);
    const Index pair = at / p.out_size();
    const double tolerance = of_a.of(pair) + 2 * of_b.of(pair) + of_both.of(pair);
    const std::string wrong =
        differ(p, pair, at % p.out_size(), both[i], a[i] + 2 * b[i], tolerance);
    if (!wrong.empty()) return wrong;
  }
  return "";
}

// Element of an output at a shift; -1 outside the window.
Index element_at(const Problem& p, Index sy, Index sx) {
  const Window& w = p.window;
  if (sy < w.sy.first || sy > w.sy.last || sx < w.sx.first || sx > w.sx.last) return -1;
  return (sy - w.sy.first) * p.out_cols() + sx - w.sx.first;
}

// Compares out of `from` at (sy, sx) with other of `to` at map(pair, sy, sx) = (pair, sy, sx).
template <typename Map>
std::string compare_mapped(const Problem& from, const Values& out, const Tolerance& of_out,
                           const Problem& to, const Values& other, const Tolerance& of_other,
                           Map&& map) {
  std::size_t at = 0;
  for (Index pair = 0; pair < from.pairs(); ++pair) {
    for (Index sy = from.window.sy.first; sy <= from.window.sy.last; ++sy) {
      for (Index sx = from.window.sx.first; sx <= from.window.sx.last; ++sx, ++at) {
        const auto [p, y, x] = map(pair, sy, sx);
        const Index element = element_at(to, y, x);
        if (element < 0) continue;
        const double want = other[static_cast<std::size_t>(p * to.out_size() + element)];
        const std::string wrong = differ(from, pair, element_at(from, sy, sx), out[at], want,
                                         of_out.of(pair) + of_other.of(p));
        if (!wrong.empty()) return wrong;
      }
    }
  }
  return "";
}

struct Place {
  Index pair, sy, sx;
};

std::string shift(const Case& c, Device& device) {
  const Problem& p = c.problem;
  Rng rng(c.seed, 1);
  const auto drawn = [&](Index size) { return size < 2 ? 0 : rng.below(size) - size / 2; };
  const Index dy = drawn(p.right.rows), dx = drawn(p.right.cols);
  const Matrices all = matrices(c, p, amplitude_of(c, 1));
  Matrices before = all, after = all;
  std::fill(before.right.begin(), before.right.end(), 0.0);
  std::fill(after.right.begin(), after.right.end(), 0.0);
  for (std::size_t i = 0; i < all.right.size(); ++i) {
    const auto at = static_cast<Index>(i);
    const Index y = at / p.right.cols % p.right.rows + dy, x = at % p.right.cols + dx;
    if (y < 0 || y >= p.right.rows || x < 0 || x >= p.right.cols) continue;
    before.right[i] = all.right[i];
    after.right[static_cast<std::size_t>(at + dy * p.right.cols + dx)] = all.right[i];
  }
  return compare_mapped(
      p, compute(c, p, before, device), {c, p, before}, p, compute(c, p, after, device),
      {c, p, after}, [&](Index pair, Index sy, Index sx) { return Place{pair, sy + dy, sx + dx}; });
}

Shifts turned(Shifts s) { return {-s.last, -s.first}; }

std::string swap(const Case& c, Device& device) {
  Problem p = c.problem;
  // One left for each right, so that each right has one left.
  if (p.form == Form::n_to_mn) p.rights = p.lefts;
  const Form form = p.form == Form::one_to_many ? Form::n_to_m : p.form;
  Window window = p.window;
  window.sy = turned(p.window.sy);
  window.sx = turned(p.window.sx);
  const Problem mirrored =
      make_problem(form, p.right, p.left, p.rights, p.lefts, to_string(window));
  const Matrices inputs = matrices(c, p, amplitude_of(c, 1));
  const Matrices swapped{inputs.right, inputs.left};
  return compare_mapped(p, compute(c, p, inputs, device), {c, p, inputs}, mirrored,
                        compute(c, mirrored, swapped, device), {c, mirrored, swapped},
                        [&](Index pair, Index sy, Index sx) {
                          const auto [l, r] = p.pair(pair);
                          const Index of = form == Form::n_to_m ? r * p.lefts + l : pair;
                          return Place{of, -sy, -sx};
                        });
}

std::string window(const Case& c, Device& device) {
  const Problem& p = c.problem;
  const Problem full = make_problem(p.form, p.left, p.right, p.lefts, p.rights, "full", p.fields);
  if (full.out_elements() > kMostElements || full.fmas() > kMostFmas) {
    throw Refused{"the full output is too large"};
  }
  Case of_full = c;
  of_full.problem = full;
  Problem part = p;
  if (p.window.kind == Window::Kind::full) {
    Rng rng(c.seed, 2);
    const auto drawn = [&](Shifts s) {
      const Index first = s.first + rng.below(s.count());
      return std::to_string(first) + ".." + std::to_string(first + rng.below(s.last - first + 1));
    };
    const std::string text = "sy:" + drawn(full.window.sy) + ",sx:" + drawn(full.window.sx);
    part = make_problem(p.form, p.left, p.right, p.lefts, p.rights, text, p.fields);
  }
  const Matrices inputs = matrices(c, p, amplitude_of(of_full, 1));
  return compare_mapped(part, compute(c, part, inputs, device), {c, part, inputs}, full,
                        compute(c, full, inputs, device), {c, full, inputs},
                        [](Index pair, Index sy, Index sx) { return Place{pair, sy, sx}; });
}

std::string symmetry(const Case& c, Device& device) {
  Problem p = c.problem;
  if (!p.fields.same) {
    if (p.left != p.right || p.lefts != p.rights) throw Refused{"two arrays"};
    p.fields.same = true;
  }
  Window window = p.window;
  window.kind = Window::Kind::explicit_ranges;
  window.sy = turned(p.window.sy);
  window.sx = turned(p.window.sx);
  const Problem opposite =
      make_problem(p.form, p.left, p.right, p.lefts, p.rights, to_string(window), p.fields);
  const Matrices inputs = matrices(c, p, amplitude_of(c, 1));
  return compare_mapped(p, compute(c, p, inputs, device), {c, p, inputs}, opposite,
                        compute(c, opposite, inputs, device), {c, opposite, inputs},
                        [&](Index pair, Index sy, Index sx) {
                          const auto [l, r] = p.pair(pair);
                          const Index of = p.form == Form::n_to_m ? r * p.lefts + l : pair;
                          return Place{of, -sy, -sx};
                        });
}

}  // namespace

const std::vector<Property>& properties() {
  static const std::vector<Property> all = {Property::linearity, Property::shift, Property::swap,
                                            Property::window, Property::symmetry};
  return all;
}

std::string_view to_string(Property property) {
  switch (property) {
    case Property::linearity:
      return "linearity";
    case Property::shift:
      return "shift";
    case Property::swap:
      return "swap";
    case Property::symmetry:
      return "symmetry";
    default:
      return "window";
  }
}

Property parse_property(const std::string& text) {
  for (const Property property : properties()) {
    if (to_string(property) == text) return property;
  }
  throw UserError("property '" + text +
                  "': unknown; use linearity, shift, swap, window or "
                  "symmetry");
}

Outcome run_property(Property property, const Case& c, Device& device) {
  return judged([&] {
    const bool apart = property != Property::symmetry && property != Property::window;
    if (c.problem.fields.same && apart) throw Refused{"one array: its sides do not change apart"};
    const auto of = property == Property::linearity ? linearity
                    : property == Property::shift   ? shift
                    : property == Property::swap    ? swap
                    : property == Property::window  ? window
                                                    : symmetry;
    return of(c, device);
  });
}

}  // namespace xcorr::conformance
