// The kernels of cufft_normalised around transforms by their definition: scores against those of the harness, for every
// kind of mask.
#include "algorithms/fft/cufft_normalised/pipeline.hpp"
#include "harness/truth/score.hpp"
#include "tests/emulation/support.hpp"

namespace xcorr::fft {
namespace {

// Rows of planes in place, then columns; of products columns, then the rows of the window. Rounded as often as by a
// library.
struct Definition {
  const NormalisedLayout& at;

  void forward(float* planes, Bin* spectra, void*) const {
    auto* const from = reinterpret_cast<std::complex<float>*>(planes);
    auto* const to = reinterpret_cast<std::complex<float>*>(spectra);
    const Index row = at.slots * at.cols;
    rows(from, at.padded_rows * at.slots, true);
    std::copy(from, from + at.rows * row, to);
    columns(to, row, true);
  }
  void inverse(Bin* products, void*) const {
    auto* const in = reinterpret_cast<std::complex<float>*>(products);
    const Index row = at.product_slots * at.cols;
    columns(in, row, false);
    rows(in + at.first_row * row, at.window_rows * at.product_slots, false);
  }

  void forward_rows(float* planes, void*) const {
    rows(reinterpret_cast<std::complex<float>*>(planes), at.padded_rows * at.slots, true);
  }
  void inverse_rows(Bin* products, void*) const {
    rows(reinterpret_cast<std::complex<float>*>(products), at.window_rows * at.product_slots,
         false);
  }

  void rows(std::complex<float>* first, Index count, bool is_forward) const {
    for (Index i = 0; i < count; ++i) {
      emulation::transform_line(first + i * at.cols, 1, at.cols, is_forward);
    }
  }
  void columns(std::complex<float>* first, Index count, bool is_forward) const {
    for (Index i = 0; i < count; ++i) {
      emulation::transform_line(first + i, count, at.rows, is_forward);
    }
  }
};

unsigned next(unsigned& seed) { return seed = seed * 1664525u + 1013904223u; }

struct Inputs {
  explicit Inputs(const Problem& problem, double offset = 0)
      : q(problem),
        left(values(q.left_elements(), 1, offset)),
        right(values(q.right_elements(), 2, offset)),
        left_mask(mask(q.left_elements(), 3)),
        right_mask(mask(q.right_elements(), 4)) {}

  static std::vector<float> values(Index count, unsigned seed, double offset) {
    std::vector<float> made;
    for (Index i = 0; i < count; ++i) {
      made.push_back(
          static_cast<float>(offset + static_cast<double>(next(seed) >> 8) * 0x1p-23 - 1));
    }
    return made;
  }
  static std::vector<std::uint8_t> mask(Index count, unsigned seed) {
    std::vector<std::uint8_t> made;
    for (Index i = 0; i < count; ++i) made.push_back(next(seed) >> 30 ? 1 : 0);
    return made;
  }
  std::vector<float> outputs(Index chunk_bytes) {
    const NormalisedLayout at(q, chunk_bytes);
    std::vector<char> workspace(NormalisedMemory(at, 0, Workspace(nullptr)).bytes, '\xff');
    const NormalisedMemory memory(at, 0, Workspace(workspace.data()));
    std::fill_n(workspace.begin(), memory.zeroed, '\0');
    store_roots(at, memory, nullptr);
    std::vector<float> out(static_cast<std::size_t>(q.out_elements()), NAN);
    Definition transforms{at};
    const Call call{.left = left.data(),
                    .right = right.data(),
                    .out = out.data(),
                    .left_mask = masks_left(q.fields.masks) ? left_mask.data() : nullptr,
                    .right_mask = masks_right(q.fields.masks) ? right_mask.data() : nullptr};
    correlate_normalised(at, memory, call, transforms);
    const std::vector<float> first = out;
    std::fill(out.begin(), out.end(), NAN);
    correlate_normalised(at, memory, call, transforms);
    EXPECT_EQ(out, first) << q.id() << ": the second call";
    return out;
  }

  // The error is at most half of the bound of scores by transforms plus the rounding of the score. Returns the largest
  // error relative to the former.
  double check(Index chunk_bytes) {
    ScoreInputs inputs;
    inputs.left.assign(left.begin(), left.end());
    inputs.right.assign(right.begin(), right.end());
    if (masks_left(q.fields.masks)) inputs.left_mask = left_mask;
    if (masks_right(q.fields.masks)) inputs.right_mask = right_mask;
    inputs.find_facts(q);
    const NormalisedLayout at(q, chunk_bytes);
    const double log2_points = std::log2(static_cast<double>(at.rows * at.cols) + 1);
    const bool centred = q.fields.score.kind == ScoreKind::zncc;
    const auto norm = [&](const MatrixFacts& of) { return centred ? of.centred_norm : of.norm; };

    const std::vector<float> out = outputs(chunk_bytes);
    std::vector<ScoreElement> expected(out.size());
    score_definition(q, inputs, 0, q.pairs(), expected.data());
    double largest = 0;
    for (Index p = 0; p < q.pairs(); ++p) {
      ScoreElement* const of = expected.data() + p * q.out_size();
      apply_least_overlap(of, q.out_size(), q.fields.score.min_overlap);
      const Pair pair = q.pair(p);
      const double norms = norm(inputs.left_facts[static_cast<std::size_t>(pair.left)]) *
                           norm(inputs.right_facts[static_cast<std::size_t>(pair.right)]);
      for (Index i = 0; i < q.out_size(); ++i) {
        const float score = out[static_cast<std::size_t>(p * q.out_size() + i)];
        if (of[i].zero == ZeroRule::either && score == 0) continue;
        if (of[i].zero == ZeroRule::zero) {
          EXPECT_EQ(score, 0) << q.id() << " pair " << p << " output " << i;
        }
        const double allowed = 0x1p-23 * log2_points * norms * of[i].scale;
        largest = std::max(largest, std::abs(score - of[i].value) / allowed);
        EXPECT_NEAR(score, of[i].value, 0x1p-21 + allowed)
            << q.id() << " chunk of " << chunk_bytes << " bytes, pair " << p << " output " << i;
      }
    }
    return largest;
  }

  Problem q;
  std::vector<float> left, right;
  std::vector<std::uint8_t> left_mask, right_mask;
};

const char* const kProblems[] = {
    "one-to-one/1x1/1x1/1:1/full/score=zncc:0.3",
    "one-to-one/6x5/7x9/1:1/full/score=zncc:0.05",
    "one-to-many/4x6/5x5/1:3/sy:-2..3,sx:-4..1/score=ncc:0.3/masks=left",
    "n-to-m/5x4/6x7/2:3/valid/score=zncc:0.01/masks=right",
    "n-to-mn/5x5/5x5/2:4/full/score=zncc:0.3/masks=both",
    "one-to-one/11x12/12x11/1:1/full/score=zncc:0.5/masks=both",
    "one-to-many/1x30/1x40/1:2/full/score=ncc:0.1/masks=both",
    "n-to-m/4x6/5x5/2:3/full/score=zncc:0.3/masks=left",
    "one-to-many/4x3/7x5/1:2/sy:1..3,sx:0..2/score=ncc:0.3",
    // Several bands of rows and chunks of columns, and shifts of one thread that are a left matrix apart.
    "one-to-one/35x3/41x131/1:1/sy:-30..34,sx:125..128/score=zncc:0.01/masks=right",
    "n-to-mn/2x33/3x33/2:2/full/score=zncc:0.1",
    // Columns that are transformed here: of 64, 96, 128, 192, 256, 384 and 512, of even and odd widths, several pairs of a slot.
    "n-to-m/30x5/31x6/2:3/full/score=zncc:0.3/masks=both",
    "one-to-many/40x3/41x4/1:3/full/score=ncc:0.2/masks=left",
    "one-to-one/64x20/65x2/1:1/full/score=zncc:0.1/masks=right",
    "n-to-mn/90x2/100x3/2:4/sy:3..60,sx:-1..1/score=zncc:0.3/masks=both",
    "one-to-many/120x3/130x2/1:2/full/score=zncc:0.3",
    "one-to-one/180x2/200x2/1:1/sy:-179..150,sx:0..1/score=zncc:0.3/masks=both",
    "one-to-one/3x2/500x3/1:1/valid/score=zncc:0.01/masks=both",
};

TEST(Normalised, ScoresAreThoseOfTheDefinition) {
  for (const char* const problem : kProblems) {
    Inputs in(parse_problem(problem));
    for (const Index chunk_bytes : {1, 1 << 20}) in.check(chunk_bytes);
  }
}

TEST(Normalised, AnOffsetCostsNoDigits) {
  for (const char* const problem : kProblems) {
    const Problem q = parse_problem(problem);
    if (q.fields.score.kind == ScoreKind::zncc) Inputs(q, 1e4).check(1 << 20);
  }
}

// The squares of these values and of their transforms are beyond float32.
TEST(Normalised, ValuesOfAnySizeHaveScores) {
  for (const char* const problem : kProblems) {
    for (const float of_left : {1e18f, 1e-18f, 1e-30f}) {
      for (const float of_right : {1e18f, 1e-18f}) {
        Inputs in(parse_problem(problem));
        for (float& value : in.left) value *= of_left;
        for (float& value : in.right) value *= of_right;
        in.check(1 << 20);
      }
    }
  }
}

// No side has rounding errors of the size of the other side: a transform holds planes of one side alone.
TEST(Normalised, ALargeMatrixCostsASmallOneNoDigits) {
  for (const char* const problem : {"one-to-one/3x3/60x61/1:1/full/score=zncc:0.3",
                                    "one-to-one/60x61/3x3/1:1/full/score=zncc:0.3",
                                    "one-to-many/3x3/60x61/1:3/full/score=zncc:0.3/masks=both"}) {
    EXPECT_LT(Inputs(parse_problem(problem)).check(1 << 20), 0.01) << problem;
  }
}

// A left and a right plane in one complex transform leave what rounding makes of each in the spectrum of the other. With
// itself this makes a score near shift 0, where all of it gathers.
TEST(Normalised, NoTransformHasPlanesOfBothSides) {
  for (const char* const problem :
       {"one-to-one/3x3/60x61/1:1/full/score=zncc:0.3", "n-to-m/3x3/20x21/3:3/full/score=zncc:0.3",
        "one-to-many/40x3/41x4/1:3/full/score=ncc:0.2/masks=left",
        "n-to-mn/5x5/5x5/3:3/full/score=zncc:0.3/masks=both"}) {
    const NormalisedLayout at(parse_problem(problem), 1 << 20);
    EXPECT_EQ((at.q.lefts * at.planes_of_matrix + at.gap) % 2, 0) << problem;
    EXPECT_GE(2 * at.slots, at.matrices * at.planes_of_matrix + at.gap) << problem;
  }
}

// A window is judged by its own values: outliers and fills elsewhere make it neither constant nor another one.
TEST(Normalised, WhatLiesElsewhereMakesNoWindowConstant) {
  for (const char* const problem : {"one-to-one/5x5/20x21/1:1/valid/score=zncc:0.3",
                                    "one-to-one/5x5/20x21/1:1/full/score=zncc:0.3",
                                    "one-to-one/5x5/20x21/1:1/valid/score=zncc:0.3/masks=right"}) {
    for (const float fill : {1e11f, -3.4e38f, 1e20f, -2147483648.0f}) {
      for (const Index rows : {0, 14}) {
        Inputs in(parse_problem(problem));
        in.right_mask[200] = 1;
        for (Index i = 0; i < std::max<Index>(1, rows * 21); ++i) {
          in.right[static_cast<std::size_t>(rows == 0 ? 200 : i)] = fill;
        }
        in.check(1 << 20);
      }
    }
  }
}

// Constant windows of any value, and windows that vary by more than rounding, beside others of another brightness.
TEST(Normalised, WindowsAreConstantByTheirOwnValues) {
  struct Part {
    float value, noise;
  };
  for (const Part part : {Part{0, 0}, Part{255, 0}, Part{0.1f, 0}, Part{1e6f, 4}, Part{1, 1e-7f},
                          Part{1e-3f, 4e-9f}, Part{0, 1e-20f}, Part{-1e20f, 0}}) {
    for (const double offset : {0.0, 100.0, 1e4}) {
      Inputs in(parse_problem("one-to-one/5x5/40x41/1:1/valid/score=zncc:0.3"), offset);
      for (Index i = 0; i < 20 * 41; ++i) {
        float& value = in.right[static_cast<std::size_t>(i)];
        value = part.value + part.noise * (value - static_cast<float>(offset));
      }
      in.check(1 << 20);
    }
  }
}

TEST(Normalised, AConstantSideHasNoScore) {
  Inputs in(parse_problem("one-to-one/6x6/8x8/1:1/full/score=zncc:0.05/masks=both"));
  for (float& value : in.left) value = 0.1f;
  in.check(1 << 20);
}

TEST(Normalised, AnOutlierCostsDigitsAsInEveryTransform) {
  Inputs in(parse_problem("one-to-one/6x6/8x8/1:1/full/score=zncc:0.05/masks=right"));
  in.right_mask[0] = 1;
  in.right[0] = 1e5f;
  in.check(1 << 20);
  in.right[0] = 1e30f;  // its square is no float
  in.check(1 << 20);
}

}  // namespace
}  // namespace xcorr::fft
