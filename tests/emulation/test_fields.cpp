// Scores, boundaries, masks and views of the emulated variants that declare them, against loops
// over the definition in long double.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "harness/problem/inputs.hpp"
#include "harness/problem/views.hpp"
#include "harness/registry.hpp"
#include "tests/emulation/emulation.hpp"
#include "tests/emulation/global_memory.hpp"

namespace xcorr::emulation {
namespace {

constexpr std::uint64_t kSeed = 7;

const Variant& overlap_wise() { return find_variant("emulated.overlap_wise"); }

// A program of one other unit has no such variant (tests/mutants).
class Fields : public testing::Test {
 protected:
  void SetUp() override {
    const auto& all = variants();
    if (std::none_of(all.begin(), all.end(),
                     [](const Variant& v) { return v.id == "emulated.overlap_wise"; })) {
      GTEST_SKIP() << "overlap_wise is not in this program";
    }
  }
};

// One side of a problem in memory: what its matrices are, whatever the view.
template <typename T>
struct Operand {
  Operand(const Problem& q, Side of, const std::function<double(Index)>& value)
      : shape(of == Side::left ? q.left : q.right), layout(view_layout(q, of, kSeed)) {
    const Index matrices = of == Side::left ? q.lefts : q.rights;
    for (Index i = 0; i < layout.elements; ++i) values.push_back(static_cast<T>(value(i)));
    if (of == Side::left ? !masks_left(q.fields.masks) : !masks_right(q.fields.masks)) return;
    for (Index i = 0; i < matrices * shape.size(); ++i) mask.push_back(mask_value(kSeed, of, i));
  }

  long double at(Index matrix, Index y, Index x) const {
    const Index row = layout.offsets.empty() ? (matrix * shape.rows + y) * shape.cols
                                             : layout.row(matrix, y, shape.rows);
    return values.at(static_cast<std::size_t>(row + x));
  }
  bool valid(Index matrix, Index y, Index x) const {
    return mask.empty() ||
           mask[static_cast<std::size_t>((matrix * shape.rows + y) * shape.cols + x)] != 0;
  }
  // Of the valid elements of a matrix.
  long double mean(Index matrix) const {
    long double sum = 0, count = 0;
    for (Index y = 0; y < shape.rows; ++y) {
      for (Index x = 0; x < shape.cols; ++x) {
        if (!valid(matrix, y, x)) continue;
        sum += at(matrix, y, x);
        ++count;
      }
    }
    return count > 0 ? sum / count : 0;
  }
  View view() const {
    return {layout.offsets.empty() ? nullptr : layout.offsets.data(), layout.pitch};
  }

  Shape shape;
  ViewLayout layout;
  std::vector<T> values;
  std::vector<std::uint8_t> mask;
};

template <typename T>
struct Sides {
  Sides(const Problem& q, const std::function<double(Index)>& value)
      : left(q, Side::left, value),
        right(q, Side::right, [&](Index i) { return value(i + 1000); }) {}
  Operand<T> left, right;
};

// The elements of an overlap that are valid on both sides.
struct Products {
  std::vector<long double> left, right;
};

template <typename T>
Products products(const Problem& q, const Sides<T>& of, Pair pair, Index sy, Index sx) {
  Products found;
  for (Index y = 0; y < q.left.rows; ++y) {
    for (Index x = 0; x < q.left.cols; ++x) {
      Index ry = y + sy, rx = x + sx;
      if (q.fields.boundary == Boundary::circular) {
        ry = (ry + 2 * q.right.rows) % q.right.rows;
        rx = (rx + 2 * q.right.cols) % q.right.cols;
      }
      if (ry < 0 || ry >= q.right.rows || rx < 0 || rx >= q.right.cols) continue;
      if (!of.left.valid(pair.left, y, x) || !of.right.valid(pair.right, ry, rx)) continue;
      found.left.push_back(of.left.at(pair.left, y, x));
      found.right.push_back(of.right.at(pair.right, ry, rx));
    }
  }
  return found;
}

long double mean(const std::vector<long double>& of) {
  long double sum = 0;
  for (const long double value : of) sum += value;
  return sum / static_cast<long double>(of.size());
}

// The sum of squares about `centre`, or 0 where it is no more than rounding of a constant.
long double squares(const std::vector<long double>& of, long double centre) {
  long double sum = 0, farthest = 0;
  for (const long double value : of) {
    sum += (value - centre) * (value - centre);
    farthest = std::max(farthest, std::abs(value));
  }
  const long double rounding = 8 * 0x1p-24L * farthest;
  return sum <= rounding * rounding * static_cast<long double>(of.size()) ? 0 : sum;
}

struct Value {
  long double value, scale;  // sum of the absolute products; 1 for a ratio
};

template <typename T>
Value value_at(const Problem& q, const Sides<T>& of, Pair pair, const Products& at,
               std::size_t largest) {
  const ScoreKind kind = q.fields.score.kind;
  const std::size_t count = at.left.size();
  const auto sum = [&](long double left, long double right) {
    Value result{0, 0};
    for (std::size_t i = 0; i < count; ++i) {
      result.value += (at.left[i] - left) * (at.right[i] - right);
      result.scale += std::abs((at.left[i] - left) * (at.right[i] - right));
    }
    return result;
  };
  if (kind == ScoreKind::product) return sum(0, 0);
  const long double left = of.left.mean(pair.left), right = of.right.mean(pair.right);
  if (kind == ScoreKind::covariance) return sum(left, right);
  const double least = q.fields.score.min_overlap * static_cast<double>(largest);
  if (count == 0 || static_cast<double>(count) < least) return {0, 1};
  const bool centred = kind == ScoreKind::zncc;
  const long double left_centre = centred ? mean(at.left) : 0;
  const long double right_centre = centred ? mean(at.right) : 0;
  const long double norms = squares(at.left, left_centre) * squares(at.right, right_centre);
  return {norms == 0 ? 0 : sum(left_centre, right_centre).value / std::sqrt(norms), 1};
}

template <typename T>
std::vector<Value> expected(const Problem& q, const Sides<T>& of) {
  std::vector<Value> values;
  for (Index p = 0; p < q.pairs(); ++p) {
    std::vector<Products> all;
    std::size_t largest = 0;
    for (Index sy = q.window.sy.first; sy <= q.window.sy.last; ++sy) {
      for (Index sx = q.window.sx.first; sx <= q.window.sx.last; ++sx) {
        all.push_back(products(q, of, q.pair(p), sy, sx));
        largest = std::max(largest, all.back().left.size());
      }
    }
    for (const Products& at : all) values.push_back(value_at(q, of, q.pair(p), at, largest));
  }
  return values;
}

template <typename T>
constexpr Precision kPrecision = sizeof(T) == sizeof(float) ? Precision::fp32 : Precision::fp64;

// Plans once and computes for each of `operands` in turn: nothing of a call may reach the next.
template <typename T>
std::vector<std::vector<T>> computed(const Problem& q, const std::vector<Sides<T>>& operands) {
  PlanRequest request{q, {}, kPrecision<T>};
  const GlobalMemory workspace(overlap_wise().workspace_bytes(request));
  request.workspace = workspace.get();
  const auto plan = overlap_wise().plan(request);
  std::vector<std::vector<T>> outs;
  for (const Sides<T>& of : operands) {
    set_order(outs.size() + 1);
    outs.emplace_back(static_cast<std::size_t>(q.out_elements()),
                      std::numeric_limits<T>::quiet_NaN());
    Call call;
    call.left = of.left.values.data();
    call.right = of.right.values.data();
    call.out = outs.back().data();
    call.left_mask = of.left.mask.empty() ? nullptr : of.left.mask.data();
    call.right_mask = of.right.mask.empty() ? nullptr : of.right.mask.data();
    call.left_view = of.left.view();
    call.right_view = of.right.view();
    plan->compute(call);
  }
  return outs;
}

template <typename T>
void expect_right(const Problem& q, const Sides<T>& of, const std::vector<T>& out) {
  const std::vector<Value> want = expected(q, of);
  ASSERT_EQ(out.size(), want.size());
  const double rounding = sizeof(T) == sizeof(float) ? 0x1p-23 : 0x1p-44;
  // What the reference itself loses of unit noise at an offset of 1e4.
  const double lost = 1e-14;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto value = static_cast<double>(want[i].value);
    ASSERT_NEAR(out[i], value, rounding * static_cast<double>(want[i].scale) + lost)
        << q.id() << " output " << i << " of " << out.size();
  }
}

// Uniform in (-1, 1).
double noise(Index i) {
  return static_cast<double>(mix(kSeed ^ static_cast<std::uint64_t>(i)) >> 40) * 0x1p-23 - 1;
}
double far_noise(Index i) { return 1e4 + noise(i); }

template <typename T>
void expect_right(const std::string& id) {
  const Problem q = parse_problem(id);
  const std::vector<Sides<T>> operands = {{q, noise}, {q, far_noise}, {q, noise}};
  const auto outs = computed<T>(q, operands);
  for (std::size_t i = 0; i < outs.size(); ++i) {
    expect_right(q, operands[i], outs[i]);
    if (testing::Test::HasFatalFailure()) return;
  }
  EXPECT_EQ(outs[0], outs[2]) << id << ": other bits for the same inputs";
}

void expect_right(const std::string& id) {
  expect_right<float>(id);
  expect_right<double>(id);
}

// Shapes, counts and windows; of the first ones left and right have one shape.
const std::vector<std::string> kEqual = {
    "one-to-one/1x1/1x1/1:1/full",
    "one-to-one/1x7/1x7/1:1/full",
    "one-to-many/5x1/5x1/1:3/full",
    "n-to-mn/3x4/3x4/2:4/full",
    "n-to-m/4x35/4x35/2:3/sy:-2..1,sx:-3..17",
};
const std::vector<std::string> kShapes = {
    "one-to-one/3x5/6x9/1:1/valid",
    "n-to-m/6x9/3x5/3:2/full",
    "n-to-mn/2x6/6x2/2:6/full",
    // More rows of blocks and more pairs than a grid has here.
    "n-to-m/40x1/40x1/5:4/full",
    // More shifts than the warps that count valid elements take at once.
    "one-to-one/9x9/9x9/1:1/full",
};

std::vector<std::string> all_shapes() {
  std::vector<std::string> all = kEqual;
  all.insert(all.end(), kShapes.begin(), kShapes.end());
  return all;
}

TEST_F(Fields, every_score_on_odd_shapes) {
  for (const std::string& shapes : all_shapes()) {
    for (const char* score : {"score=covariance", "score=ncc:0.3", "score=zncc:0.3", "score=zncc:1",
                              "score=ncc:0.01"}) {
      expect_right(shapes + "/" + score);
    }
  }
}

TEST_F(Fields, circular_boundary) {
  for (const std::string& shapes : kEqual) {
    expect_right(shapes + "/boundary=circular");
    expect_right(shapes + "/boundary=circular/score=covariance");
  }
}

TEST_F(Fields, masks_of_either_side) {
  for (const std::string& shapes : all_shapes()) {
    for (const char* masks : {"left", "right", "both"}) {
      expect_right(shapes + "/score=ncc:0.5/masks=" + masks);
      expect_right(shapes + "/score=zncc:0.3/masks=" + masks);
    }
  }
}

TEST_F(Fields, views_of_larger_arrays) {
  for (const std::string& shapes : all_shapes()) {
    for (const char* views : {"windows", "channels"}) {
      expect_right(shapes + "/views=" + views);
      expect_right(shapes + "/score=covariance/views=" + views);
      expect_right(shapes + "/score=zncc:0.3/masks=both/views=" + views);
    }
  }
  expect_right("n-to-m/3x4/3x4/2:3/full/boundary=circular/views=windows");
}

TEST_F(Fields, masks_without_a_valid_pixel_give_zero) {
  const Problem q = parse_problem("n-to-m/3x4/3x5/2:2/full/score=zncc:0.3/masks=both");
  std::vector<Sides<float>> operands = {{q, noise}, {q, noise}};
  // All left ones; of the right ones the second.
  std::fill(operands[0].left.mask.begin(), operands[0].left.mask.end(), 0);
  std::fill(operands[1].right.mask.begin() + 15, operands[1].right.mask.end(), 0);
  const auto outs = computed<float>(q, operands);
  EXPECT_EQ(std::count(outs[0].begin(), outs[0].end(), 0.0f), q.out_elements());
  expect_right(q, operands[1], outs[1]);
}

// No sum may read what a mask hides, not even the mean of the matrix.
TEST_F(Fields, hidden_pixels_may_be_not_a_number) {
  const Problem q = parse_problem("one-to-many/4x6/4x6/1:2/full/score=zncc:0.3/masks=left");
  std::vector<Sides<float>> operands = {{q, noise}};
  Operand<float>& left = operands[0].left;
  for (std::size_t i = 0; i < left.mask.size(); ++i) {
    if (!left.mask[i]) left.values[i] = std::numeric_limits<float>::quiet_NaN();
  }
  expect_right(q, operands[0], computed<float>(q, operands)[0]);
}

TEST_F(Fields, constants_score_zero) {
  for (const char* masks : {"none", "both"}) {
    const Problem q = parse_problem(std::string("one-to-one/5x6/7x8/1:1/full/score=zncc:0.1") +
                                    (masks == std::string("none") ? "" : "/masks=both"));
    // A third in float32 is no whole number of anything.
    const std::vector<Sides<float>> operands = {{q, [](Index) { return 1e4 + 1.0 / 3; }}};
    const auto outs = computed<float>(q, operands);
    EXPECT_EQ(std::count(outs[0].begin(), outs[0].end(), 0.0f), q.out_elements()) << q.id();
  }
}

// The lowest float32, faults, the smallest int32: in the first element and in the first rows.
TEST_F(Fields, a_fault_elsewhere_changes_no_bit_of_a_score) {
  for (const std::string fields :
       {"zncc:0.3", "ncc:0.3", "zncc:0.3/masks=left", "zncc:0.3/views=windows"}) {
    const Problem q = parse_problem("one-to-one/4x5/14x16/1:1/valid/score=" + fields);
    for (const double fault : {-0x1.fffffep127, 1e11, 1e20, -2147483648.0, 65535.0}) {
      std::vector<Sides<float>> operands = {{q, noise}, {q, noise}, {q, noise}};
      const auto put = [&](Operand<float>& of, Index rows, Index cols) {
        for (Index y = 0; y < rows; ++y) {
          const Index row =
              of.layout.offsets.empty() ? y * of.shape.cols : of.layout.row(0, y, of.shape.rows);
          std::fill_n(of.values.begin() + row, cols, static_cast<float>(fault));
        }
      };
      put(operands[1].right, 1, 1);
      put(operands[2].right, 3, 16);
      const auto outs = computed<float>(q, operands);
      const auto outputs = [&](std::size_t i, Index first) {
        return std::vector<float>(outs[i].begin() + first, outs[i].end());
      };
      EXPECT_EQ(outputs(1, 1), outputs(0, 1)) << q.id() << " " << fault;
      EXPECT_EQ(outputs(2, 3 * q.out_cols()), outputs(0, 3 * q.out_cols())) << q.id() << fault;
      for (std::size_t i = 0; i < outs.size(); ++i) expect_right(q, operands[i], outs[i]);
    }
  }
}

TEST_F(Fields, both_modes_of_a_bimodal_matrix_have_scores) {
  const Problem q = parse_problem("one-to-one/4x5/14x16/1:1/valid/score=zncc:0.3");
  const auto bimodal = [](Index i) { return (i >= 1000 && i % 16 < 8 ? 1e4 : 0) + 0.1 * noise(i); };
  const std::vector<Sides<float>> operands = {{q, bimodal}};
  const auto outs = computed<float>(q, operands);
  expect_right(q, operands[0], outs[0]);
  EXPECT_EQ(std::count(outs[0].begin(), outs[0].end(), 0.0f), 0);
}

TEST_F(Fields, powers_of_two_change_no_bit_of_a_score) {
  for (const char* score : {"ncc:0.3", "zncc:0.3"}) {
    const Problem q =
        parse_problem(std::string("n-to-mn/5x6/7x8/2:2/full/score=") + score + "/masks=right");
    const auto scaled = [](double by) { return [by](Index i) { return by * noise(i); }; };
    const auto outs = computed<float>(q, {{q, noise}, {q, scaled(0x1p60)}, {q, scaled(0x1p-60)}});
    EXPECT_EQ(outs[0], outs[1]) << score;
    EXPECT_EQ(outs[0], outs[2]) << score;
  }
}

TEST_F(Fields, a_plain_problem_needs_no_workspace) {
  const PlanRequest request{parse_problem("n-to-m/3x4/3x5/2:2/full"), {}, Precision::fp32};
  EXPECT_EQ(overlap_wise().workspace_bytes(request), 0u);
}

}  // namespace
}  // namespace xcorr::emulation
