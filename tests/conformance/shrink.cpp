#include <algorithm>
#include <optional>

#include "harness/problem/error.hpp"
#include "tests/conformance/case.hpp"

namespace xcorr::conformance {
namespace {

// One pair of these shapes, with every shift of the boundary.
Problem full_of(const Problem& p, Shape left, Shape right) {
  Fields boundary;
  boundary.boundary = p.fields.boundary;
  return make_problem(Form::one_to_one, left, right, 1, 1, "full", boundary);
}
Problem full_of(const Problem& p) { return full_of(p, p.left, p.right); }

// The problem with other shapes and counts; a window is cut to what is there. Nothing where that
// is no problem.
std::optional<Problem> changed(const Problem& p, Shape left, Shape right, Index lefts, Index rights,
                               const Window& window) {
  try {
    if (window.kind != Window::Kind::explicit_ranges) {
      return make_problem(p.form, left, right, lefts, rights, to_string(window), p.fields);
    }
    const Window full = full_of(p, left, right).window;
    const auto cut = [](Shifts s, Shifts all) -> Shifts {
      const Index first = std::clamp(s.first, all.first, all.last);
      return {first, std::clamp(s.last, first, all.last)};
    };
    Window inside = window;
    inside.sy = cut(window.sy, full.sy);
    inside.sx = cut(window.sx, full.sx);
    return make_problem(p.form, left, right, lefts, rights, to_string(inside), p.fields);
  } catch (const UserError&) {
    return std::nullopt;
  }
}

// Smaller values of a size, the smallest first.
std::vector<Index> smaller(Index size) {
  std::vector<Index> values;
  for (const Index value : {Index{1}, size / 4, size / 2, size * 3 / 4, size - 1}) {
    if (value >= 1 && value < size) values.push_back(value);
  }
  return values;
}

// The problem with one field less, where that is a problem.
std::vector<Problem> with_fewer_fields(const Problem& p) {
  std::vector<Problem> found;
  for (const std::string_view name : kFieldNames) {
    Fields fields = p.fields;
    set_field(fields, name, field_text({}, name));
    if (fields == p.fields) continue;
    try {
      found.push_back(
          make_problem(p.form, p.left, p.right, p.lefts, p.rights, to_string(p.window), fields));
    } catch (const UserError&) {  // as phase without circular
    }
  }
  return found;
}

std::vector<Problem> smaller_problems(const Problem& p) {
  std::vector<Problem> found = with_fewer_fields(p);
  const auto add = [&](Shape left, Shape right, Index lefts, Index rights, const Window& window) {
    const auto problem = changed(p, left, right, lefts, rights, window);
    if (problem && problem->id() != p.id()) found.push_back(*problem);
  };
  const Index per_left = p.rights / p.lefts;
  for (const Index n : smaller(p.lefts)) {
    add(p.left, p.right, n, p.form == Form::n_to_mn ? n * per_left : p.rights, p.window);
  }
  for (const Index n : smaller(p.form == Form::n_to_mn ? per_left : p.rights)) {
    add(p.left, p.right, p.lefts, p.form == Form::n_to_mn ? n * p.lefts : n, p.window);
  }
  // Sides that are equal shrink together, since some variants take equal shapes only.
  const auto sides = [&](Index Shape::* side) {
    for (const Index n : smaller(std::max(p.left.*side, p.right.*side))) {
      Shape left = p.left, right = p.right;
      left.*side = std::min(left.*side, n);
      right.*side = std::min(right.*side, n);
      add(left, right, p.lefts, p.rights, p.window);
    }
    for (const Index n : smaller(p.left.*side)) {
      Shape left = p.left;
      left.*side = n;
      add(left, p.right, p.lefts, p.rights, p.window);
    }
    for (const Index n : smaller(p.right.*side)) {
      Shape right = p.right;
      right.*side = n;
      add(p.left, right, p.lefts, p.rights, p.window);
    }
  };
  sides(&Shape::rows);
  sides(&Shape::cols);
  // Square shapes, of variants that take no others.
  for (const Index n : smaller(std::max({p.left.rows, p.left.cols, p.right.rows, p.right.cols}))) {
    const auto least = [&](Shape s) { return Shape{std::min(s.rows, n), std::min(s.cols, n)}; };
    add(least(p.left), least(p.right), p.lefts, p.rights, p.window);
  }
  if (p.window.kind != Window::Kind::full) {
    Window window = full_of(p).window;
    if (full_of(p).out_size() <= 4 * p.out_size()) add(p.left, p.right, p.lefts, p.rights, window);
  }
  const auto halves = [&](Shifts Window::* axis) {
    const Shifts s = p.window.*axis;
    if (s.count() < 2) return;
    const Index middle = s.first + s.count() / 2;
    for (const Shifts half : {Shifts{s.first, middle - 1}, Shifts{middle, s.last}}) {
      Window window = p.window;
      window.kind = Window::Kind::explicit_ranges;
      window.*axis = half;
      add(p.left, p.right, p.lefts, p.rights, window);
    }
  };
  halves(&Window::sy);
  halves(&Window::sx);
  return found;
}

// Simpler ones first.
std::vector<InputKind> simpler_inputs(const Case& c) {
  std::vector<InputKind> kinds;
  for (const InputKind kind : {InputKind::integer, InputKind::zero_mean, InputKind::uniform}) {
    if (kind == c.inputs.front()) break;
    kinds.push_back(kind);
  }
  return kinds;
}

// Whether a reader of the command has less to look at. A full window is simpler than half of one.
bool simpler(const Problem& a, const Problem& b) {
  const auto fields = [](const Problem& p) {
    return std::count_if(
        std::begin(kFieldNames), std::end(kFieldNames),
        [&](std::string_view name) { return field_text(p.fields, name) != field_text({}, name); });
  };
  if (fields(a) != fields(b)) return fields(a) < fields(b);
  const auto weight = [](const Problem& p) {
    return p.surface().bytes(1) + (p.window.kind == Window::Kind::full ? 0 : p.out_elements() / 2);
  };
  return weight(a) < weight(b) || (weight(a) == weight(b) && a.window.kind < b.window.kind);
}

}  // namespace

Case shrink(Case failing, const std::function<bool(const Case&)>& fails, int attempts) {
  for (bool shrunk = true; shrunk && attempts > 0;) {
    shrunk = false;
    for (const InputKind kind : simpler_inputs(failing)) {
      Case candidate = failing;
      candidate.inputs = {kind};
      if (attempts-- > 0 && fails(candidate)) {
        failing = candidate;
        break;
      }
    }
    for (const Problem& problem : smaller_problems(failing.problem)) {
      if (!simpler(problem, failing.problem)) continue;
      Case candidate = failing;
      candidate.problem = problem;
      if (attempts-- <= 0) break;
      if (fails(candidate)) {
        failing = candidate;
        shrunk = true;
        break;
      }
    }
  }
  return failing;
}

}  // namespace xcorr::conformance
