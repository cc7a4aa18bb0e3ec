#include "tests/conformance/properties.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "harness/measure/operands.hpp"
#include "harness/problem/error.hpp"
#include "harness/reduce/reduce.hpp"
#include "tests/conformance/random.hpp"

namespace xcorr::conformance {
namespace {

constexpr double kExactSums = 0x1p24;
// Limits of the full output where a case is a window of it.
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

// What the variant makes of inputs, and how far each output may be from the exact sum.
struct Computed {
  Computed(const Case& c, const Problem& problem, const Matrices& inputs, Device& device)
      : q(problem),
        out(compute(c, problem, inputs, device)),
        algorithm_class(c.variant->algorithm_class),
        u(unit_roundoff(c.precision)),
        left_norms(norms(inputs.left, problem.left.size())),
        right_norms(norms(inputs.right, problem.right.size())) {}
  double tolerance(Index pair) const {
    if (is_definition(algorithm_class)) return 0;
    const auto [l, r] = q.pair(pair);
    const double left = algorithm_class == AlgorithmClass::fft_of_both
                            ? *std::max_element(left_norms.begin(), left_norms.end())
                            : left_norms[static_cast<std::size_t>(l)];
    return fft_bound(log2_transform_points(q), left, right_norms[static_cast<std::size_t>(r)], u);
  }

  Problem q;
  Values out;
  AlgorithmClass algorithm_class;
  double u;
  Values left_norms, right_norms;
};

std::string linearity(const Case& c, Device& device) {
  const Problem& p = c.problem;
  const Index amplitude = amplitude_of(c, 3);
  const Matrices one = matrices(c, p, amplitude);
  const Matrices two{integers(c.seed + 1, Side::left, p.left_elements(), amplitude), one.right};
  Matrices sum = one;
  for (std::size_t i = 0; i < sum.left.size(); ++i) sum.left[i] += 2 * two.left[i];
  const Computed a(c, p, one, device), b(c, p, two, device), both(c, p, sum, device);
  for (std::size_t i = 0; i < both.out.size(); ++i) {
    const auto at = static_cast<Index>(i);
    const Index pair = at / p.out_size();
    const double tolerance = a.tolerance(pair) + 2 * b.tolerance(pair) + both.tolerance(pair);
    const std::string wrong =
        differ(p, pair, at % p.out_size(), both.out[i], a.out[i] + 2 * b.out[i], tolerance);
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

struct Place {
  Index pair, sy, sx;
};

// Compares out of `from` at (pair, sy, sx) with out of `to` at map(pair, sy, sx).
template <typename Map>
std::string compare_mapped(const Computed& from, const Computed& to, Map&& map) {
  std::size_t at = 0;
  for (Index pair = 0; pair < from.q.pairs(); ++pair) {
    for (Index sy = from.q.window.sy.first; sy <= from.q.window.sy.last; ++sy) {
      for (Index sx = from.q.window.sx.first; sx <= from.q.window.sx.last; ++sx, ++at) {
        const Place place = map(pair, sy, sx);
        const Index element = element_at(to.q, place.sy, place.sx);
        if (element < 0) continue;
        const double want =
            to.out[static_cast<std::size_t>(place.pair * to.q.out_size() + element)];
        const std::string wrong = differ(from.q, pair, element_at(from.q, sy, sx), from.out[at],
                                         want, from.tolerance(pair) + to.tolerance(place.pair));
        if (!wrong.empty()) return wrong;
      }
    }
  }
  return "";
}

// Each pair has the opposite shifts in `to`, which has the sides of `from` exchanged.
std::string compare_opposite(const Computed& from, const Computed& to) {
  return compare_mapped(from, to, [&](Index pair, Index sy, Index sx) {
    const auto [l, r] = from.q.pair(pair);
    return Place{from.q.form == Form::n_to_m ? r * from.q.lefts + l : pair, -sy, -sx};
  });
}

std::string opposite(Window window) {
  const auto turned = [](Shifts s) -> Shifts { return {-s.last, -s.first}; };
  window.sy = turned(window.sy);
  window.sx = turned(window.sx);
  return to_string(window);
}

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
      {c, p, before, device}, {c, p, after, device},
      [&](Index pair, Index sy, Index sx) { return Place{pair, sy + dy, sx + dx}; });
}

std::string swap(const Case& c, Device& device) {
  Problem p = c.problem;
  // One left for each right, so that each right has one left.
  if (p.form == Form::n_to_mn) p.rights = p.lefts;
  const Form form = p.form == Form::one_to_many ? Form::n_to_m : p.form;
  const Problem mirrored =
      make_problem(form, p.right, p.left, p.rights, p.lefts, opposite(p.window));
  const Matrices inputs = matrices(c, p, amplitude_of(c, 1));
  return compare_opposite({c, p, inputs, device},
                          {c, mirrored, {inputs.right, inputs.left}, device});
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
  return compare_mapped({c, part, inputs, device}, {c, full, inputs, device},
                        [](Index pair, Index sy, Index sx) { return Place{pair, sy, sx}; });
}

std::string symmetry(const Case& c, Device& device) {
  Problem p = c.problem;
  if (!p.fields.same) {
    if (p.left != p.right || p.lefts != p.rights) throw Refused{"two arrays"};
    p.fields.same = true;
  }
  Window turned = p.window;
  turned.kind = Window::Kind::explicit_ranges;
  const Problem other =
      make_problem(p.form, p.left, p.right, p.lefts, p.rights, opposite(turned), p.fields);
  const Matrices inputs = matrices(c, p, amplitude_of(c, 1));
  return compare_opposite({c, p, inputs, device}, {c, other, inputs, device});
}

using Property = std::string (*)(const Case&, Device&);

Property property_of(const std::string& name) {
  static const std::map<std::string, Property> all = {{"linearity", linearity},
                                                      {"shift", shift},
                                                      {"swap", swap},
                                                      {"window", window},
                                                      {"symmetry", symmetry}};
  const auto found = all.find(name);
  if (found != all.end()) return found->second;
  throw UserError("property '" + name +
                  "': unknown; use linearity, shift, swap, window or symmetry");
}

}  // namespace

Outcome run_property(const std::string& name, const Case& c, Device& device) {
  const Property property = property_of(name);
  return judged([&] {
    const bool apart = name != "symmetry" && name != "window";
    if (c.problem.fields.same && apart) throw Refused{"one array: its sides do not change apart"};
    return property(c, device);
  });
}

}  // namespace xcorr::conformance
