#include "harness/problem/problem.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <vector>

#include "harness/problem/names.hpp"
#include "harness/problem/results.hpp"

namespace xcorr {
namespace {

constexpr std::pair<Form, std::string_view> kForms[] = {{Form::one_to_one, "one-to-one"},
                                                        {Form::one_to_many, "one-to-many"},
                                                        {Form::n_to_mn, "n-to-mn"},
                                                        {Form::n_to_m, "n-to-m"}};

constexpr const char* kWindowExample =
    "; write full, valid or a range of shifts as sy:-3..3,sx:0..7";
constexpr const char* kShapeExample = "; write ROWSxCOLS, as 64x48";

// Reads an integer at the front of `text` and removes it.
Index take_index(std::string_view& text, std::string_view whole, std::string_view what) {
  Index value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{}) {
    const std::string why = code == std::errc::result_out_of_range ? "a number overflows 64 bits"
                                                                   : "a number was expected";
    refuse(what, whole, why + (what == "window" ? kWindowExample : kShapeExample));
  }
  text.remove_prefix(end - text.data());
  return value;
}

bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

Shifts full_shifts(Index left, Index right) { return {-(left - 1), right - 1}; }

// Circular: shifts s and s + length are equal; the one nearest to 0 stands for both.
Shifts circular_shifts(Index length) { return {-(length / 2), (length - 1) / 2}; }

Shifts valid_shifts(Index left, Index right) {
  return {std::min<Index>(0, right - left), std::max<Index>(0, right - left)};
}

Shifts take_range(std::string_view& text, std::string_view whole, std::string_view axis) {
  const std::string example = kWindowExample;
  if (!take(text, axis)) refuse("window", whole, "not understood" + example);
  const Index first = take_index(text, whole, "window");
  if (!take(text, "..")) refuse("window", whole, "'..' was expected" + example);
  return {first, take_index(text, whole, "window")};
}

void check_range(Shifts range, Shifts full, const std::string& axis, std::string_view whole) {
  if (range.first > range.last) {
    refuse("window", whole,
           axis + " is empty: its first shift is larger than its last; exchange the two");
  }
  if (range.first < full.first || range.last > full.last) {
    refuse("window", whole,
           axis + " leaves the full window; stay within " + std::to_string(full.first) + ".." +
               std::to_string(full.last));
  }
}

Window resolve_window(const Problem& problem, std::string_view text) {
  const Shape l = problem.left, r = problem.right;
  const bool wraps = problem.fields.boundary == Boundary::circular;
  const Shifts full_sy = wraps ? circular_shifts(l.rows) : full_shifts(l.rows, r.rows);
  const Shifts full_sx = wraps ? circular_shifts(l.cols) : full_shifts(l.cols, r.cols);
  if (text == "full") return {Window::Kind::full, full_sy, full_sx};
  if (text == "valid") {
    const bool left_inside = l.rows <= r.rows && l.cols <= r.cols;
    if (!left_inside && !(r.rows <= l.rows && r.cols <= l.cols)) {
      refuse("window", text,
             "neither " + to_string(l) + " nor " + to_string(r) +
                 " contains the other; use full or an explicit window");
    }
    return {Window::Kind::valid, valid_shifts(l.rows, r.rows), valid_shifts(l.cols, r.cols)};
  }
  std::string_view rest = text;
  Window window{Window::Kind::explicit_ranges, take_range(rest, text, "sy:"), {}};
  if (!take(rest, ",")) {
    refuse("window", text, std::string("',sx:' was expected") + kWindowExample);
  }
  window.sx = take_range(rest, text, "sx:");
  if (!rest.empty()) {
    refuse("window", text, "'" + std::string(rest) + "' follows the last shift; leave it out");
  }
  check_range(window.sy, full_sy, "sy", text);
  check_range(window.sx, full_sx, "sx", text);
  return window;
}

// a * b, or UserError where the product leaves 63 bits.
Index product(Index a, Index b, const char* what) {
  Index result = 0;
  if (__builtin_mul_overflow(a, b, &result)) {
    throw UserError(std::string(what) + ": " + std::to_string(a) + " x " + std::to_string(b) +
                    " overflows 64 bits; use fewer or smaller matrices");
  }
  return result;
}

// Sum of the overlap lengths along one axis, in closed form: sizes reach 2^32, sums 2^64.
Index overlap_sum(Index left, Index right, Shifts shifts) {
  using Wide = __int128;
  const auto up_to = [](Index n) { return n > 0 ? Wide{n} * (n + 1) / 2 : Wide{0}; };  // 1 + .. + n
  // The sum over -left < s <= last. The overlap grows to the smaller size, stays and shrinks: the
  // first term is unlimited growth, the others subtract what limit and shrinking take away.
  const auto sum_to = [&](Index last) {
    return up_to(left + last) - up_to(left + last - std::min(left, right)) -
           up_to(last - std::max<Index>(0, right - left));
  };
  const Wide sum = sum_to(shifts.last) - sum_to(shifts.first - 1);
  if (sum > std::numeric_limits<Index>::max()) {
    throw UserError("useful work: the overlaps of " + std::to_string(left) + " and " +
                    std::to_string(right) + " overflow 64 bits; use smaller matrices");
  }
  return static_cast<Index>(sum);
}

// Longest overlap along one axis: at the shift nearest to those where one axis contains the other.
Index longest_overlap(Index left, Index right, Shifts shifts) {
  const Shifts inside = valid_shifts(left, right);
  const Index contained = std::clamp(shifts.first, inside.first, inside.last);
  return overlap(left, right, std::clamp(contained, shifts.first, shifts.last)).count;
}

// Refuses fields that contradict each other, the shapes or the counts.
void check_fields(const Problem& p, std::string_view window) {
  const auto& [boundary, score, masks, result, same, views] = p.fields;
  const auto refuse_field = [&](const char* name, const std::string& why) {
    refuse(name, field_text(p.fields, name), why);
  };
  const bool circular = boundary == Boundary::circular;
  if (circular && !(p.left == p.right)) {
    refuse_field("boundary", "shapes " + to_string(p.left) + " and " + to_string(p.right) +
                                 " differ; use two equal shapes or boundary zero");
  }
  if (circular && is_normalised(score.kind)) {
    refuse_field("score", "has no meaning with boundary circular; use boundary zero");
  }
  if (score.kind == ScoreKind::phase && window == "valid") {
    refuse_field("score", "has no valid window; use full or a range of shifts");
  }
  if (score.kind == ScoreKind::phase && !circular) {
    refuse_field("score", "needs boundary circular; add it");
  }
  if (masks != Masks::none && !is_normalised(score.kind)) {
    refuse_field("masks", "only ncc and zncc use masks; add score zncc or leave the masks out");
  }
  if (same && !(p.left == p.right && p.lefts == p.rights)) {
    refuse_field("same",
                 "left and right are one array, so they need one shape and one count; got " +
                     to_string(p.left) + " and " + to_string(p.right) + ", " +
                     std::to_string(p.lefts) + ":" + std::to_string(p.rights));
  }
  if (result.sub_pixel == SubPixel::upsample && window != "full") {
    refuse_field("result", "interpolation needs all shifts; use window full");
  }
  // A record holds a shift in 32 bits.
  constexpr Index kLargestShift = (Index{1} << 31) - 1;
  const auto& [window_kind, sy, sx] = p.window;
  const bool has_shifts = result.kind != ResultKind::surface && result.kind != ResultKind::sum;
  for (const Index shift : {-sy.first, sy.last, -sx.first, sx.last}) {
    if (has_shifts && shift > kLargestShift) {
      refuse_field("result", "shifts beyond 2^31 - 1 do not fit a record; use a smaller window");
    }
  }
}

}  // namespace

Index Problem::fmas() const {
  if (fields.boundary == Boundary::circular) {
    return product(product(left.size(), out_size(), "useful work"), pairs(), "useful work");
  }
  const Index rows = overlap_sum(left.rows, right.rows, window.sy);
  const Index cols = overlap_sum(left.cols, right.cols, window.sx);
  return product(product(rows, cols, "useful work"), pairs(), "useful work");
}

Index Problem::max_overlap() const {
  if (fields.boundary == Boundary::circular) return left.size();
  return longest_overlap(left.rows, right.rows, window.sy) *
         longest_overlap(left.cols, right.cols, window.sx);
}

Index Problem::bytes(std::size_t scalar_bytes) const {
  const Index inputs = fields.same ? left_elements() : left_elements() + right_elements();
  const Index masks = (masks_left(fields.masks) ? left_elements() : 0) +
                      (masks_right(fields.masks) ? right_elements() : 0);
  return inputs * static_cast<Index>(scalar_bytes) + masks + result_bytes(scalar_bytes);
}

Index Problem::result_bytes(std::size_t scalar_bytes) const {
  switch (fields.result.kind) {
    case ResultKind::peak:
      return pairs() * static_cast<Index>(sizeof(Peak));
    case ResultKind::peaks:
      return pairs() * fields.result.count * static_cast<Index>(sizeof(Peak));
    case ResultKind::above:
      return static_cast<Index>(sizeof(AboveHeader)) +
             std::min(fields.result.capacity, out_elements()) *
                 static_cast<Index>(sizeof(Detection));
    case ResultKind::sum:
      return pairs() * static_cast<Index>(sizeof(double));
    default:
      return out_elements() * static_cast<Index>(scalar_bytes);
  }
}

bool Problem::is_plain() const {
  Fields plain;
  plain.same = fields.same;
  return fields == plain;
}

bool Problem::is_time_series() const {
  return is_plain() && !fields.same && left.rows == right.rows && left.rows <= kMostChannels &&
         window.sy == Shifts{0, 0} && window.sx.first >= 0 &&
         window.sx.last <= right.cols - left.cols;
}

Problem Problem::surface() const {
  Problem problem = *this;
  problem.fields.result = {};
  return problem;
}

std::string Problem::id() const {
  std::string text = std::string(to_string(form)) + "/" + to_string(left) + "/" + to_string(right) +
                     "/" + std::to_string(lefts) + ":" + std::to_string(rights) + "/" +
                     to_string(window);
  for (const std::string_view name : kFieldNames) {
    const std::string value = field_text(fields, name);
    if (value != field_text({}, name)) text.append("/").append(name).append("=").append(value);
  }
  return text;
}

Problem make_problem(Form form, Shape left, Shape right, Index lefts, Index rights,
                     std::string_view window, const Fields& fields) {
  // Keeps sums of two sizes and a shift far inside 64 bits.
  constexpr Index kLargestSide = Index{1} << 32;
  for (const auto& [name, value] : {std::pair{"left rows", left.rows},
                                    {"left cols", left.cols},
                                    {"right rows", right.rows},
                                    {"right cols", right.cols},
                                    {"lefts", lefts},
                                    {"rights", rights}}) {
    if (value < 1 || value > kLargestSide) {
      throw UserError(std::string(name) + " = " + std::to_string(value) +
                      ": out of range; use 1.." + std::to_string(kLargestSide));
    }
  }
  const std::string counts = std::to_string(lefts) + ":" + std::to_string(rights);
  if (form == Form::one_to_one && (lefts != 1 || rights != 1)) {
    throw UserError("counts " + counts + ": one-to-one means 1:1; use n-to-mn for several pairs");
  }
  if (form == Form::one_to_many && lefts != 1) {
    throw UserError("counts " + counts + ": one-to-many has one left; use n-to-mn or n-to-m");
  }
  if (form == Form::n_to_mn && rights % lefts != 0) {
    throw UserError("counts " + counts +
                    ": n-to-mn needs rights divisible by lefts (rights is the " +
                    "total number); the next is " + std::to_string((rights / lefts + 1) * lefts));
  }
  Problem problem{{form, left, right, lefts, rights, {}}, fields};
  product(product(left.rows, left.cols, "left matrix"), lefts * 16, "left matrices");
  product(product(right.rows, right.cols, "right matrix"), rights * 16, "right matrices");
  const Index pairs = form == Form::n_to_m ? product(lefts, rights, "pairs") : rights;
  if (fields.boundary == Boundary::zero || left == right) {
    problem.window = resolve_window(problem, window);
  }
  check_fields(problem, window);
  product(product(problem.out_rows(), problem.out_cols(), "output"), product(pairs, 16, "output"),
          "output");
  (void)problem.fmas();
  return problem;
}

Problem parse_problem(std::string_view id) {
  const auto refuse_id = [&] {
    refuse("problem", id,
           "not understood; write FORM/ROWSxCOLS/ROWSxCOLS/LEFTS:RIGHTS/WINDOW and then "
           "/NAME=VALUE for each field, as n-to-m/33x33/33x33/3:5/full/score=zncc");
  };
  std::vector<std::string_view> parts;
  for (std::string_view rest = id;; rest.remove_prefix(parts.back().size() + 1)) {
    parts.push_back(rest.substr(0, rest.find('/')));
    if (parts.back().size() == rest.size()) break;
  }
  if (parts.size() < 5) refuse_id();
  const char* at = parts[3].data();
  const char* const end = at + parts[3].size();
  Index lefts = 0, rights = 0;
  const auto colon = std::from_chars(at, end, lefts);
  if (colon.ec != std::errc{} || colon.ptr == end || *colon.ptr != ':') refuse_id();
  const auto last = std::from_chars(colon.ptr + 1, end, rights);
  if (last.ec != std::errc{} || last.ptr != end) refuse_id();
  Fields fields;
  for (std::size_t i = 5; i < parts.size(); ++i) {
    const std::size_t equals = parts[i].find('=');
    if (equals == std::string_view::npos) refuse_id();
    set_field(fields, parts[i].substr(0, equals), parts[i].substr(equals + 1));
  }
  return make_problem(parse_form(parts[0]), parse_shape(parts[1]), parse_shape(parts[2]), lefts,
                      rights, parts[4], fields);
}

std::string_view to_string(Form form) { return name_of(kForms, form); }
Form parse_form(std::string_view text) { return value_of(kForms, "form", text); }

Shape parse_shape(std::string_view text) {
  std::string_view rest = text;
  Shape shape;
  shape.rows = take_index(rest, text, "shape");
  const bool by = take(rest, "x");
  if (by) shape.cols = take_index(rest, text, "shape");
  if (!by || !rest.empty()) refuse("shape", text, "write ROWSxCOLS, as 64x48");
  return shape;
}

std::string to_string(const Shape& shape) {
  return std::to_string(shape.rows) + "x" + std::to_string(shape.cols);
}

std::string to_string(const Window& window) {
  if (window.kind == Window::Kind::full) return "full";
  if (window.kind == Window::Kind::valid) return "valid";
  const auto range = [](Shifts s) {
    return std::to_string(s.first) + ".." + std::to_string(s.last);
  };
  return "sy:" + range(window.sy) + ",sx:" + range(window.sx);
}

}  // namespace xcorr
