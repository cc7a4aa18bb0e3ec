// Scores, boundaries, masks and views of the emulated variants that declare them, against loops
// over the definition in long double.
#include "tests/emulation/support.hpp"
#include "tests/support/field_reference.hpp"

namespace xcorr::emulation {
namespace {

const Variant& overlap_wise() { return find_variant("emulated.overlap_wise"); }

class Fields : public OfVariant {
 protected:
  Fields() : OfVariant("overlap_wise") {}
};

// Both sides of a problem in numbers of type T.
template <typename T>
struct Sides {
  template <typename Value>
  Sides(const Problem& q, const Value& value)
      : left(q, Side::left, [&](Side, Index i) { return T(value(i)); }),
        right(q, Side::right, [&](Side, Index i) { return T(value(i + 1000)); }) {}
  FieldInput left, right;
};

// Plans once and computes for each of `operands` in turn: nothing of a call may reach the next.
template <typename T>
std::vector<std::vector<T>> computed(const Problem& q, const std::vector<Sides<T>>& operands) {
  Planned planned(overlap_wise(), q, {}, sizeof(T) == 4 ? Precision::fp32 : Precision::fp64);
  std::vector<std::vector<T>> outs;
  for (const auto& [left, right] : operands) {
    const std::vector<T> lefts(left.array.begin(), left.array.end()),
        rights(right.array.begin(), right.array.end());
    const auto* const out =
        static_cast<const T*>(planned.compute(call_of(left, lefts.data(), right, rights.data())));
    outs.emplace_back(out, out + q.out_elements());
  }
  return outs;
}

template <typename T>
void expect_right(const Problem& q, const Sides<T>& of, const std::vector<T>& out) {
  const std::vector<FieldValue> want = field_reference(q, of.left, of.right);
  ASSERT_EQ(out.size(), want.size());
  const double rounding = sizeof(T) == sizeof(float) ? 0x1p-23 : 0x1p-44;
  // What the reference loses of unit noise at an offset of 1e4.
  const double lost = 1e-14;
  for (std::size_t i = 0; i < out.size(); ++i) {
    ASSERT_NEAR(out[i], want[i].value, rounding * want[i].scale + lost)
        << q.id() << " output " << i << " of " << out.size();
  }
}

double drawn(Index i) { return noise(kFieldSeed, i); }
double far_noise(Index i) { return 1e4 + drawn(i); }

template <typename T>
void expect_right(const Problem& q) {
  const std::vector<Sides<T>> operands = {{q, drawn}, {q, far_noise}, {q, drawn}};
  const auto outs = computed<T>(q, operands);
  for (std::size_t i = 0; i < outs.size(); ++i) {
    expect_right(q, operands[i], outs[i]);
    if (testing::Test::HasFatalFailure()) return;
  }
  EXPECT_EQ(outs[0], outs[2]) << q.id() << ": other bits for the same inputs";
}

void expect_right(const Texts& ids, const Texts& fields) {
  for (const Problem& q : problems_of(ids, fields)) {
    expect_right<float>(q);
    expect_right<double>(q);
  }
}

// Shapes, counts and windows; of the first ones left and right have one shape.
const Texts kEqual = {
    "one-to-one/1x1/1x1/1:1/full",
    "one-to-one/1x7/1x7/1:1/full",
    "one-to-many/5x1/5x1/1:3/full",
    "n-to-mn/3x4/3x4/2:4/full",
    "n-to-m/4x35/4x35/2:3/sy:-2..1,sx:-3..17",
};
const Texts kAll = [] {
  Texts all = kEqual;
  all.insert(all.end(),
             {"one-to-one/3x5/6x9/1:1/valid", "n-to-m/6x9/3x5/3:2/full", "n-to-mn/2x6/6x2/2:6/full",
              // More rows of blocks and more pairs than a grid has here.
              "n-to-m/40x1/40x1/5:4/full",
              // More shifts than the warps that count valid elements take at once.
              "one-to-one/9x9/9x9/1:1/full"});
  return all;
}();

TEST_F(Fields, every_score_on_odd_shapes) {
  expect_right(kAll, {"/score=covariance", "/score=ncc:0.3", "/score=zncc:0.3", "/score=zncc:1",
                      "/score=ncc:0.01"});
}

TEST_F(Fields, circular_boundary) {
  expect_right(kEqual, {"/boundary=circular", "/boundary=circular/score=covariance"});
}

TEST_F(Fields, masks_of_either_side) {
  for (const std::string masks : {"left", "right", "both"}) {
    expect_right(kAll, {"/score=ncc:0.5/masks=" + masks, "/score=zncc:0.3/masks=" + masks});
  }
}

TEST_F(Fields, views_of_larger_arrays) {
  for (const std::string views : {"/views=windows", "/views=channels"}) {
    expect_right(kAll, {views, "/score=covariance" + views, "/score=zncc:0.3/masks=both" + views});
  }
  expect_right({"n-to-m/3x4/3x4/2:3/full"}, {"/boundary=circular/views=windows"});
}

TEST_F(Fields, masks_without_a_valid_pixel_give_zero) {
  const Problem q = parse_problem("n-to-m/3x4/3x5/2:2/full/score=zncc:0.3/masks=both");
  std::vector<Sides<float>> operands = {{q, drawn}, {q, drawn}};
  // The masks of all left matrices, and of the second right matrix.
  std::fill(operands[0].left.mask.begin(), operands[0].left.mask.end(), 0);
  std::fill(operands[1].right.mask.begin() + 15, operands[1].right.mask.end(), 0);
  const auto outs = computed<float>(q, operands);
  EXPECT_EQ(std::count(outs[0].begin(), outs[0].end(), 0.0f), q.out_elements());
  expect_right(q, operands[1], outs[1]);
}

// No sum may read what a mask hides, not even the mean of the matrix.
TEST_F(Fields, hidden_pixels_may_be_not_a_number) {
  const Problem q = parse_problem("one-to-many/4x6/4x6/1:2/full/score=zncc:0.3/masks=left");
  std::vector<Sides<float>> operands = {{q, drawn}};
  FieldInput& left = operands[0].left;
  for (std::size_t i = 0; i < left.mask.size(); ++i) {
    if (!left.mask[i]) left.array[i] = std::numeric_limits<float>::quiet_NaN();
  }
  expect_right(q, operands[0], computed<float>(q, operands)[0]);
}

TEST_F(Fields, constants_score_zero) {
  for (const Problem& q :
       problems_of({"one-to-one/5x6/7x8/1:1/full/score=zncc:0.1"}, {"", "/masks=both"})) {
    // A third in float32 is no whole number of anything.
    const std::vector<Sides<float>> operands = {{q, [](Index) { return 1e4 + 1.0 / 3; }}};
    const auto outs = computed<float>(q, operands);
    EXPECT_EQ(std::count(outs[0].begin(), outs[0].end(), 0.0f), q.out_elements()) << q.id();
  }
}

// The lowest float32, faults, the smallest int32: in the first element and in the first rows.
TEST_F(Fields, a_fault_elsewhere_changes_no_bit_of_a_score) {
  for (const Problem& q :
       problems_of({"one-to-one/4x5/14x16/1:1/valid/score="},
                   {"zncc:0.3", "ncc:0.3", "zncc:0.3/masks=left", "zncc:0.3/views=windows"})) {
    for (const float fault : {-0x1.fffffep127f, 1e11f, 1e20f, -2147483648.0f, 65535.0f}) {
      std::vector<Sides<float>> operands = {{q, drawn}, {q, drawn}, {q, drawn}};
      const auto put = [&](FieldInput& of, Index rows, Index cols) {
        for (Index y = 0; y < rows; ++y) {
          const auto row = static_cast<std::ptrdiff_t>(of.at(0, y * of.shape.cols));
          std::fill_n(of.array.begin() + row, cols, fault);
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
  const auto bimodal = [](Index i) { return (i >= 1000 && i % 16 < 8 ? 1e4 : 0) + 0.1 * drawn(i); };
  const std::vector<Sides<float>> operands = {{q, bimodal}};
  const auto outs = computed<float>(q, operands);
  expect_right(q, operands[0], outs[0]);
  EXPECT_EQ(std::count(outs[0].begin(), outs[0].end(), 0.0f), 0);
}

TEST_F(Fields, powers_of_two_change_no_bit_of_a_score) {
  for (const Problem& q : problems_of({"n-to-mn/5x6/7x8/2:2/full/masks=right"},
                                      {"/score=ncc:0.3", "/score=zncc:0.3"})) {
    const auto scaled = [](double by) { return [by](Index i) { return by * drawn(i); }; };
    const auto outs = computed<float>(q, {{q, drawn}, {q, scaled(0x1p60)}, {q, scaled(0x1p-60)}});
    EXPECT_EQ(outs[0], outs[1]) << q.id();
    EXPECT_EQ(outs[0], outs[2]) << q.id();
  }
}

TEST_F(Fields, a_plain_problem_needs_no_workspace) {
  const PlanRequest request{parse_problem("n-to-m/3x4/3x5/2:2/full"), {}, Precision::fp32};
  EXPECT_EQ(overlap_wise().workspace_bytes(request), 0u);
}

}  // namespace
}  // namespace xcorr::emulation
