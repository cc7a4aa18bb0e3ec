#include "tests/conformance/random.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "harness/problem/error.hpp"
#include "harness/registry.hpp"
#include "tests/conformance/problems.hpp"

namespace xcorr::conformance {
namespace {

Index largest_prime(Index up_to) {
  for (Index n = up_to; n > 2; --n) {
    bool prime = n % 2 != 0;
    for (Index d = 3; prime && d * d <= n; d += 2) prime = n % d != 0;
    if (prime) return n;
  }
  return std::min<Index>(up_to, 2);
}

// Log-uniform, with a weight on 1, primes, powers of two and their neighbours.
Index draw_size(Rng& rng, Index largest) {
  const Index size = rng.log_uniform(1, largest);
  const Index power = Index{1} << static_cast<int>(std::log2(static_cast<double>(size)));
  switch (rng.below(9)) {
    case 0:
      return 1;
    case 1:
      return largest_prime(size);
    case 2:
      return power;
    case 3:
      return std::max<Index>(1, power - 1);
    case 4:
      return std::min(largest, power + 1);
    default:
      return size;
  }
}

struct Shapes {
  Shape left, right;
};

Shapes draw_shapes(Rng& rng, Index largest, int plainness) {
  const auto size = [&] { return draw_size(rng, largest); };
  if (plainness >= 2) {
    const Index power = Index{1} << static_cast<int>(std::log2(static_cast<double>(size())));
    return {{power, power}, {power, power}};
  }
  const Shape left{size(), size()}, other{size(), size()};
  const Shape square{left.rows, left.rows};
  switch (rng.below(plainness == 1 ? 4 : 10)) {
    case 0:
      return {square, square};
    case 1:
    case 2:
    case 3:
      return {left, left};
    case 4:
      return {left, {left.rows, other.cols}};
    case 5:
      return {left, {other.rows, left.cols}};
    case 6:
      return {{1, left.cols}, {1, other.cols}};
    case 7:  // one inside the other
      return {{std::min(left.rows, other.rows), std::min(left.cols, other.cols)},
              {std::max(left.rows, other.rows), std::max(left.cols, other.cols)}};
    default:
      return {left, other};
  }
}

std::string range(Shifts shifts) {
  return std::to_string(shifts.first) + ".." + std::to_string(shifts.last);
}

Shifts draw_range(Rng& rng, Shifts full) {
  const Index first = full.first + rng.below(full.count());
  const Index last = std::min(full.last, first + rng.log_uniform(1, full.count()) - 1);
  const Index zero = std::clamp<Index>(0, full.first, full.last);
  switch (rng.below(6)) {
    case 0:
      return full;
    case 1:
      return {first, first};
    case 2:
      return {full.first, std::min(full.last, full.first + rng.below(5))};
    case 3:
      return {std::max(full.first, full.last - rng.below(5)), full.last};
    case 4:
      return {zero, rng.chance(0.5) ? zero : full.last};
    default:
      return {first, last};
  }
}

std::string draw_window(Rng& rng, const Shapes& shapes, int plainness) {
  const auto& [l, r] = shapes;
  const bool nested =
      (l.rows <= r.rows && l.cols <= r.cols) || (r.rows <= l.rows && r.cols <= l.cols);
  const Index choice = plainness >= 2 ? 0 : rng.below(20);
  if (choice < 8) return "full";
  if (choice < 11 && nested) return "valid";
  const Problem full = make_problem(Form::one_to_one, l, r, 1, 1, "full");
  return "sy:" + range(draw_range(rng, full.window.sy)) +
         ",sx:" + range(draw_range(rng, full.window.sx));
}

Problem with_peak(const Problem& p) {
  Fields fields = p.fields;
  set_field(fields, "result", "peak");
  return make_problem(p.form, p.left, p.right, p.lefts, p.rights, to_string(p.window), fields);
}

}  // namespace

Index Rng::log_uniform(Index first, Index last) {
  const double share = static_cast<double>(next() >> 11) * 0x1p-53;
  const double low = static_cast<double>(first), high = static_cast<double>(last) + 1;
  return std::clamp(static_cast<Index>(low * std::pow(high / low, share)), first, last);
}

Limits default_limits(Backend backend) {
  if (backend == Backend::cpu) {
    return {160, std::size_t{1} << 22, Index{1} << 21, Index{1} << 20, 2000, 40000};
  }
  return {3000, std::size_t{1} << 27, Index{1} << 31, Index{1} << 18, 100000, 4000000};
}

Problem draw_problem(Rng& rng, const std::vector<Form>& forms, const Limits& limits,
                     int plainness) {
  constexpr Index kBytes = sizeof(double);
  const Form form = rng.of(forms);
  const auto elements = static_cast<Index>(limits.bytes) / kBytes;
  // Halved for as long as the draws of one pair are too large.
  for (Index largest = limits.side;; largest = std::max<Index>(1, largest * 3 / 4)) {
    const Shapes shapes = draw_shapes(rng, largest, plainness);
    const auto& [left, right] = shapes;
    const std::string window = draw_window(rng, shapes, plainness);
    const Problem one = make_problem(Form::one_to_one, left, right, 1, 1, window);
    const bool fits =
        limits.hold_work_of(one) && left.size() + right.size() + one.out_size() <= elements;
    if (!fits && largest > 1) continue;

    // So that inputs and outputs each stay within a third.
    const Index pairs = std::clamp<Index>(
        std::min({limits.fmas / std::max<Index>(1, one.fmas()), elements / 3 / one.out_size(),
                  elements / 3 / right.size(), elements / 3 / left.size(), limits.pairs}),
        1, limits.pairs);
    const auto count = [&](Index most) {
      return draw_size(rng, rng.chance(0.4) ? std::min<Index>(most, 12) : most);
    };
    Index lefts = 1, rights = 1;
    switch (form) {
      case Form::one_to_one:
        break;
      case Form::one_to_many:
        rights = count(pairs);
        break;
      case Form::n_to_mn:
        lefts = count(pairs);
        rights = lefts * count(pairs / lefts);
        break;
      case Form::n_to_m:
        lefts = count(pairs);
        rights = count(pairs / lefts);
        if (rng.chance(0.5)) std::swap(lefts, rights);
        break;
    }
    return make_problem(form, left, right, lefts, rights, window);
  }
}

Problem draw_series(Rng& rng, const Limits& limits) {
  const Index channels = rng.chance(0.7) ? 1 : 1 + rng.below(4);
  const auto most = static_cast<Index>(limits.bytes) / static_cast<Index>(3 * sizeof(double));
  const Index longest = std::clamp<Index>(std::min(most / channels, limits.signal), 1,
                                          std::max<Index>(1, limits.fmas / channels));
  const auto step = [&](Index length) {  // near a multiple of what kernels take at once
    const Index whole = length / 32 * 32;
    return rng.chance(0.5) ? std::clamp<Index>(whole - 1 + rng.below(3), 1, length) : length;
  };
  const Index most_samples = std::min({limits.overlap / channels, longest, Index{5000}});
  const Index samples = step(draw_size(rng, std::max<Index>(1, most_samples)));
  const Index products = samples * channels;
  const Index outputs = step(std::clamp<Index>(
      rng.log_uniform(1, longest), 1,
      std::max<Index>(1, std::min(longest - samples + 1, limits.fmas / products))));
  const Index templates =
      draw_size(rng, std::clamp<Index>(std::min({limits.fmas / products / outputs, most / outputs,
                                                 most / products, limits.pairs}),
                                       1, 300));
  const Shape left{channels, samples}, right{channels, samples + outputs - 1};
  std::string window = "valid";
  if (rng.chance(0.2)) window = "sy:0..0,sx:" + range(draw_range(rng, {0, outputs - 1}));
  return make_problem(Form::n_to_m, left, right, templates, 1, window);
}

Problem draw_templates(Rng& rng, const std::vector<Form>& forms, const Limits& limits) {
  constexpr Index kBytes = sizeof(double);
  const auto elements = static_cast<Index>(limits.bytes) / (3 * kBytes);
  for (Index largest = limits.side;; largest = std::max<Index>(1, largest * 3 / 4)) {
    // Templates are smaller than frames on both axes, often by much.
    const Shape frame{std::min(largest, 1 + draw_size(rng, largest)),
                      std::min(largest, 1 + draw_size(rng, largest))};
    const Shape of_template{draw_size(rng, std::max<Index>(1, frame.rows - 1)),
                            draw_size(rng, std::max<Index>(1, frame.cols - 1))};
    std::string window = "valid";
    if (rng.chance(0.3)) {
      window = "sy:" + range(draw_range(rng, {0, frame.rows - of_template.rows})) +
               ",sx:" + range(draw_range(rng, {0, frame.cols - of_template.cols}));
    }
    const Problem one = make_problem(Form::one_to_one, of_template, frame, 1, 1, window);
    const bool fits = limits.hold_work_of(one) && frame.size() <= elements;
    if (!fits && largest > 1) continue;
    const Index pairs = std::clamp<Index>(std::min({limits.fmas / std::max<Index>(1, one.fmas()),
                                                    elements / frame.size(), Index{24}}),
                                          1, limits.pairs);
    const Form form = rng.of(forms);
    const Index first = form == Form::n_to_mn || form == Form::n_to_m ? 1 + rng.below(pairs) : 1;
    const Index second = form == Form::one_to_one ? 1 : 1 + rng.below(pairs / first);
    return make_problem(form, of_template, frame, first,
                        form == Form::n_to_mn ? first * second : second, window);
  }
}

Problem with_one_array(Rng& rng, const Problem& plain, const Limits& limits) {
  const Shape image = plain.left;
  const Index count = plain.form == Form::one_to_many ? 1 : plain.lefts;
  std::string window = draw_window(rng, {image, image}, 0);
  if (rng.chance(0.6)) {
    const Index y = rng.log_uniform(1, image.rows) - 1, x = rng.log_uniform(1, image.cols) - 1;
    window = "sy:" + range({rng.chance(0.5) ? 0 : -y, y}) + ",sx:" + range({-x, x});
  }
  Fields fields;
  fields.same = true;
  const Problem problem = make_problem(plain.form, image, image, count, count, window, fields);
  const bool fits = std::max(image.rows, image.cols) <= limits.side &&
                    limits.hold_work_of(problem) && limits.hold_bytes_of(problem) &&
                    problem.pairs() <= limits.pairs;
  return fits ? problem : plain;
}

Draws::Draws(std::uint64_t seed, std::vector<const Variant*> variants,
             std::optional<Precision> precision, Limits limits)
    : seed_(seed), limits_(limits) {
  for (const Variant* variant : variants) {
    std::vector<Precision> precisions = variant->precisions;
    if (precision) std::erase_if(precisions, [&](Precision p) { return p != *precision; });
    if (!precisions.empty()) choices_.push_back({variant, grid_points(*variant), precisions});
  }
  if (choices_.empty()) {
    throw UserError("nothing to draw from: no variant of this device and precision; see --help");
  }
}

std::optional<Case> Draws::draw(std::uint64_t number, const Supported& supported) {
  constexpr int kVariants = 5, kProblems = 60;
  // Templates are for variants with ncc or zncc. Of other draws of these one in a hundred is a template
  // in a larger frame, and hardly any has such a score and peaks.
  constexpr double kWithFields = 0.4, kSeries = 0.06, kTemplates = 0.15;
  // Series are drawn more often after many refusals: some variants take nothing else.
  constexpr int kSeriesFrom = 12;
  // A sequence of its own, so that the other draws do not depend on it.
  Rng rng(seed_, number), series(~seed_, number), one_array(~seed_, ~number),
      templates(seed_, ~number);
  Case c;
  c.seed = rng.next() >> 40;  // short to type
  for (int v = 0; v < kVariants; ++v) {
    const Choice& choice = rng.of(choices_);
    c.variant = choice.variant;
    c.inputs = {kInputKinds[rng.below(std::size(kInputKinds))]};
    for (int i = 0; i < kProblems; ++i) {
      c.params = rng.of(choice.points);
      c.precision = rng.of(choice.precisions);
      if (!holds(c.precision, c.inputs.front())) c.inputs = {InputKind::zero_mean};
      // Plainer ones where the variant refused many: some take a few shapes only.
      c.problem = draw_problem(rng, c.variant->forms, limits_, i * 3 / kProblems);
      if (limits_.fields && rng.chance(kWithFields)) {
        c.problem = with_drawn_fields(rng, *c.variant, c.problem, limits_);
      }
      const std::vector<Form>& forms = c.variant->forms;
      if (std::count(forms.begin(), forms.end(), Form::n_to_m) > 0 &&
          series.chance(i < kSeriesFrom ? kSeries : 0.5)) {
        c.problem = draw_series(series, limits_);
      }
      const std::vector<ScoreKind>& scores = c.variant->scores;
      if (limits_.fields && std::any_of(scores.begin(), scores.end(), is_normalised) &&
          templates.chance(kTemplates)) {
        c.problem = with_drawn_fields(templates, *c.variant,
                                      draw_templates(templates, forms, limits_), limits_);
        if (templates.chance(0.4)) c.problem = with_peak(c.problem);
      }
      const bool same_only = c.variant->same_only;
      if (same_only || (i >= kSeriesFrom && one_array.chance(0.4))) {
        c.problem = with_one_array(one_array, c.problem, limits_);
      }
      if (same_only && !c.problem.fields.same) continue;  // one array is larger than the limits
      std::string reason;
      try {
        reason = supported(c).reason;
      } catch (...) {
      }
      if (reason.empty()) return c;
      refuse(*c.variant, reason);
    }
    refuse(*c.variant, "gave up: each of " + std::to_string(kProblems) + " draws was refused");
  }
  return std::nullopt;
}

void Draws::refuse(const Variant& variant, const std::string& reason) {
  std::string kind = variant.id + ": ";
  for (const char c : reason) {
    const bool digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
    if (!digit) {
      kind += c;
    } else if (kind.back() != 'N') {
      kind += 'N';
    }
  }
  ++refused_[kind];
}

}  // namespace xcorr::conformance
