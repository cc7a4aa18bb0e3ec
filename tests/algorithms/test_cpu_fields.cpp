// The CPU variants with the fields of a problem (docs/design.md, Fields of a problem), beside loops
// over pixels that are written here. Conformance asks the same of every variant, with wider bounds;
// these variants work in float64 and are held to that.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstdint>
#include <functional>
#include <limits>
#include <numbers>
#include <string>
#include <vector>

#include "harness/problem/inputs.hpp"
#include "harness/problem/views.hpp"
#include "harness/registry.hpp"

namespace xcorr {
namespace {

constexpr std::uint64_t kSeed = 7;
const char* const kVariants[] = {"cpu_definition", "cpu_row_streaming", "cpu_fft"};

// Value of an element of the array of a side.
using Fill = std::function<double(Side, Index)>;

double noise(Side side, Index index) {
  const std::uint64_t bits = mix(mix(index) ^ (side == Side::left ? 11u : 12u));
  return static_cast<double>(bits >> 43) * 0x1p-20 - 1;  // [-1, 1), exact in float32
}
bool three_of_four(Side side, Index index) { return mask_value(kSeed, side, index); }

// Multiples of 2^-10, which float32 has near 1e4.
double offset(Side side, Index index) {
  return 1e4 + std::floor(noise(side, index) * 0x1p10) * 0x1p-10;
}

// One side of a problem in memory, as a call gets it.
struct Input {
  ViewLayout layout;
  Shape shape;
  std::vector<double> array;
  std::vector<std::uint8_t> mask;  // empty: none

  Index at(Index i, Index y, Index x) const {
    if (layout.offsets.empty()) return (i * shape.rows + y) * shape.cols + x;
    return layout.row(i, y, shape.rows) + x;
  }
  double value(Index i, Index y, Index x) const {
    return array[static_cast<std::size_t>(at(i, y, x))];
  }
  bool valid(Index i, Index y, Index x) const {
    return mask.empty() || mask[static_cast<std::size_t>((i * shape.rows + y) * shape.cols + x)];
  }
};

Input make_input(const Problem& q, Side side, const Fill& fill,
                 bool (*mask)(Side, Index) = three_of_four) {
  const bool left = side == Side::left;
  Input input{view_layout(q, side, kSeed), left ? q.left : q.right, {}, {}};
  for (Index k = 0; k < input.layout.elements; ++k) input.array.push_back(fill(side, k));
  if (!(left ? masks_left(q.fields.masks) : masks_right(q.fields.masks))) return input;
  for (Index k = 0; k < (left ? q.left_elements() : q.right_elements()); ++k) {
    input.mask.push_back(mask(side, k));
  }
  return input;
}

template <typename T>
std::vector<double> run_in(const Variant& variant, const Params& params, const Problem& q,
                           const Input& left, const Input& right) {
  PlanRequest request{q, params, sizeof(T) == 4 ? Precision::fp32 : Precision::fp64};
  EXPECT_TRUE(variant.supports(request)) << variant.supports(request).reason;
  const std::size_t lines = variant.workspace_bytes(request) / 256 + 1;
  struct alignas(256) Line {
    unsigned char bytes[256];
  };
  std::vector<Line> workspace(lines);
  std::fill_n(workspace[0].bytes, lines * 256, 0xff);  // NaN
  request.workspace = workspace.data();
  const std::vector<T> left_array(left.array.begin(), left.array.end());
  const std::vector<T> right_array(right.array.begin(), right.array.end());
  std::vector<T> out(q.out_elements());
  Call call;
  call.left = left_array.data();
  call.right = right_array.data();
  call.out = out.data();
  call.left_mask = left.mask.empty() ? nullptr : left.mask.data();
  call.right_mask = right.mask.empty() ? nullptr : right.mask.data();
  if (q.fields.views != Views::dense) {
    call.left_view = {left.layout.offsets.data(), left.layout.pitch};
    call.right_view = {right.layout.offsets.data(), right.layout.pitch};
  }
  const std::unique_ptr<Plan> plan = variant.plan(request);
  for (int round = 0; round < 2; ++round) {  // nothing may be left over from a call
    std::fill(out.begin(), out.end(), std::numeric_limits<T>::quiet_NaN());
    plan->compute(call);
  }
  return {out.begin(), out.end()};
}

std::vector<double> run(const std::string& id, const Problem& q, Precision precision,
                        const Input& left, const Input& right, std::size_t point = 0) {
  const Variant& variant = find_variant(id);
  const Params params = grid_points(variant)[point];
  return precision == Precision::fp32 ? run_in<float>(variant, params, q, left, right)
                                      : run_in<double>(variant, params, q, left, right);
}

long double mean(const Input& input, Index i) {
  long double sum = 0, count = 0;
  for (Index y = 0; y < input.shape.rows; ++y) {
    for (Index x = 0; x < input.shape.cols; ++x) {
      if (!input.valid(i, y, x)) continue;
      sum += input.value(i, y, x);
      ++count;
    }
  }
  return count > 0 ? sum / count : 0;
}

// One pair: the pixels that meet at a shift, then the score of them.
struct Reference {
  const Problem& q;
  const Input &left, &right;
  Pair pair;
  long double left_mean = mean(left, pair.left), right_mean = mean(right, pair.right);

  struct Pixels {
    std::vector<long double> left, right;
  };
  Pixels meeting(Index sy, Index sx) const {
    Pixels pixels;
    const bool wraps = q.fields.boundary == Boundary::circular;
    for (Index y = 0; y < q.left.rows; ++y) {
      for (Index x = 0; x < q.left.cols; ++x) {
        const Index v = wraps ? (y + sy + q.right.rows) % q.right.rows : y + sy;
        const Index u = wraps ? (x + sx + q.right.cols) % q.right.cols : x + sx;
        if (v < 0 || v >= q.right.rows || u < 0 || u >= q.right.cols) continue;
        if (!left.valid(pair.left, y, x) || !right.valid(pair.right, v, u)) continue;
        pixels.left.push_back(left.value(pair.left, y, x));
        pixels.right.push_back(right.value(pair.right, v, u));
      }
    }
    return pixels;
  }

  double value(Index sy, Index sx, std::size_t most) const {
    const Score& score = q.fields.score;
    if (score.kind == ScoreKind::phase) return phase(sy, sx);
    auto [l, r] = meeting(sy, sx);
    const std::size_t n = l.size();
    const bool covariance = score.kind == ScoreKind::covariance;
    for (std::size_t k = 0; covariance && k < n; ++k) l[k] -= left_mean, r[k] -= right_mean;
    if (!is_normalised(score.kind)) return static_cast<double>(sum_of(l, r));
    if (n == 0 || static_cast<double>(n) < score.min_overlap * static_cast<double>(most)) return 0;
    const long double limit = limit_of(l) * limit_of(r);
    if (limit == 0) return 0;
    if (score.kind == ScoreKind::zncc) centre(l), centre(r);
    const long double ll = sum_of(l, l), rr = sum_of(r, r);
    if (constant(ll, meeting(sy, sx).left) || constant(rr, meeting(sy, sx).right)) return 0;
    return static_cast<double>(sum_of(l, r) / std::sqrt(ll * rr));
  }

  static long double sum_of(const std::vector<long double>& a, const std::vector<long double>& b) {
    long double sum = 0;
    for (std::size_t k = 0; k < a.size(); ++k) sum += a[k] * b[k];
    return sum;
  }
  static void centre(std::vector<long double>& values) {
    const long double mean = sum_of(values, std::vector<long double>(values.size(), 1)) /
                             static_cast<long double>(values.size());
    for (long double& value : values) value -= mean;
  }
  static long double limit_of(const std::vector<long double>& values) {
    long double largest = 0;
    for (const long double value : values) largest = std::max(largest, std::abs(value));
    return largest;
  }
  // Of zncc; ncc has only zeros to fear, for which limit_of is 0.
  bool constant(long double squares, const std::vector<long double>& values) const {
    const long double deviation = 8 * 0x1p-24L * limit_of(values);
    return q.fields.score.kind == ScoreKind::zncc &&
           squares <= deviation * deviation * static_cast<long double>(values.size());
  }

  double norm(const Input& input, Index i, long double mean) const {
    long double sum = 0;
    for (Index y = 0; y < q.left.rows; ++y) {
      for (Index x = 0; x < q.left.cols; ++x) {
        const long double value = input.value(i, y, x) - mean;
        sum += value * value;
      }
    }
    return static_cast<double>(std::sqrt(sum));
  }
  using Spectrum = std::vector<std::complex<double>>;
  double angle(Index ky, Index kx, Index y, Index x) const {
    const double turns =
        static_cast<double>(ky * y % q.left.rows) / static_cast<double>(q.left.rows) +
        static_cast<double>(kx * x % q.left.cols) / static_cast<double>(q.left.cols);
    return 2 * std::numbers::pi * turns;
  }
  Spectrum spectrum(const Input& input, Index i, long double mean) const {
    Spectrum result;
    for (Index ky = 0; ky < q.left.rows; ++ky) {
      for (Index kx = 0; kx < q.left.cols; ++kx) {
        std::complex<double> sum = 0;
        for (Index y = 0; y < q.left.rows; ++y) {
          for (Index x = 0; x < q.left.cols; ++x) {
            sum += std::polar(1.0, -angle(ky, kx, y, x)) *
                   static_cast<double>(input.value(i, y, x) - mean);
          }
        }
        result.push_back(sum);
      }
    }
    return result;
  }
  mutable Spectrum phases = {};
  double phase(Index sy, Index sx) const {
    if (phases.empty()) {
      phases = spectrum(right, pair.right, right_mean);
      const Spectrum of_left = spectrum(left, pair.left, left_mean);
      const double points = static_cast<double>(q.left.size());
      const double floor = 4 * 0x1p-24 * std::log2(points) * norm(left, pair.left, left_mean) *
                           norm(right, pair.right, right_mean);
      for (std::size_t k = 0; k < phases.size(); ++k) {
        phases[k] *= std::conj(of_left[k]);
        const double by = std::max(std::abs(phases[k]), floor);
        phases[k] *= k == 0 || floor == 0 ? 0 : std::pow(by, q.fields.score.exponent - 1);
      }
    }
    double sum = 0;
    const Index y = sy + q.left.rows, x = sx + q.left.cols;
    for (Index ky = 0; ky < q.left.rows; ++ky) {
      for (Index kx = 0; kx < q.left.cols; ++kx) {
        const auto bin = phases[static_cast<std::size_t>(ky * q.left.cols + kx)];
        sum += (bin * std::polar(1.0, angle(ky, kx, y, x))).real();
      }
    }
    return sum / static_cast<double>(q.left.size());
  }
};

struct Expected {
  std::vector<double> values;
  std::vector<double> norms;  // of each pair: of the inputs for products, else 1
};

Expected expected(const Problem& q, const Input& left, const Input& right) {
  Expected result;
  for (Index p = 0; p < q.pairs(); ++p) {
    const Reference reference{q, left, right, q.pair(p)};
    const bool normalised = is_normalised(q.fields.score.kind);
    std::size_t most = 0;
    const auto each = [&](const auto& use) {
      for (Index sy = q.window.sy.first; sy <= q.window.sy.last; ++sy) {
        for (Index sx = q.window.sx.first; sx <= q.window.sx.last; ++sx) use(sy, sx);
      }
    };
    each([&](Index sy, Index sx) {
      if (normalised) most = std::max(most, reference.meeting(sy, sx).left.size());
    });
    each([&](Index sy, Index sx) { result.values.push_back(reference.value(sy, sx, most)); });
    double squares[2] = {0, 0};
    const bool covariance = q.fields.score.kind == ScoreKind::covariance;
    for (const Side side : {Side::left, Side::right}) {
      const bool of_left = side == Side::left;
      const Input& input = of_left ? left : right;
      const Index i = of_left ? reference.pair.left : reference.pair.right;
      const double pivot = covariance ? static_cast<double>(mean(input, i)) : 0;
      for (Index y = 0; y < input.shape.rows; ++y) {
        for (Index x = 0; x < input.shape.cols; ++x) {
          squares[of_left] += std::pow(input.value(i, y, x) - pivot, 2);
        }
      }
    }
    const bool product = covariance || q.fields.score.kind == ScoreKind::product;
    result.norms.push_back(product ? std::sqrt(squares[0] * squares[1]) : 1);
  }
  return result;
}

// Every output of every variant, point and precision beside the loops. `error` is in units of the
// norms, beside the rounding of the result.
void compare(const Problem& q, const Fill& fill, double error = 1e-11,
             bool (*mask)(Side, Index) = three_of_four) {
  const Input left = make_input(q, Side::left, fill, mask);
  const Input right = q.fields.same ? left : make_input(q, Side::right, fill, mask);
  const Expected truth = expected(q, left, right);
  for (const std::string id : kVariants) {
    const bool phase = q.fields.score.kind == ScoreKind::phase;
    if (phase && id == "cpu_row_streaming") continue;
    for (std::size_t point = 0; point < grid_points(find_variant(id)).size(); ++point) {
      for (const Precision precision : {Precision::fp32, Precision::fp64}) {
        const std::vector<double> out = run(id, q, precision, left, right, point);
        const double unit = precision == Precision::fp32 ? 0x1p-24 : 0x1p-53;
        for (std::size_t k = 0; k < out.size(); ++k) {
          const double bound = 2 * unit * std::abs(truth.values[k]) +
                               error * truth.norms[k / static_cast<std::size_t>(q.out_size())];
          ASSERT_LE(std::abs(out[k] - truth.values[k]), bound)
              << id << " " << q.id() << " point " << point << ", " << to_string(precision)
              << ", output " << k << ": " << out[k] << " instead of " << truth.values[k];
        }
      }
    }
  }
}

const std::string kZero[] = {"one-to-one/1x1/1x1/1:1/full",
                             "n-to-m/5x8/5x8/2:3/full",
                             "one-to-many/3x7/9x4/1:3/full",
                             "n-to-mn/9x4/3x7/2:4/full",
                             "n-to-m/3x5/11x9/2:2/valid",
                             "one-to-one/11x9/3x5/1:1/valid",
                             "n-to-m/7x6/7x6/2:1/sy:-2..4,sx:-5..-1",
                             "n-to-m/1x16/1x90/2:1/valid",
                             "one-to-one/17x1/5x1/1:1/sy:-3..-3,sx:0..0"};
const std::string kCircular[] = {"one-to-one/1x1/1x1/1:1/full", "n-to-m/5x8/5x8/2:3/full",
                                 "n-to-mn/9x7/9x7/2:4/sy:-4..1,sx:2..3",
                                 "one-to-many/1x26/1x26/1:2/full",
                                 "n-to-m/11x3/11x3/3:1/sy:-5..5,sx:-1..-1"};

TEST(CpuFields, ZeroBoundary) {
  for (const std::string& plain : kZero) {
    for (const std::string score :
         {"/score=covariance", "/score=ncc:0.3", "/score=zncc:0.3", "/score=zncc:0.01"}) {
      compare(parse_problem(plain + score), noise);
    }
  }
}

TEST(CpuFields, Masks) {
  for (const std::string& plain : kZero) {
    for (const std::string score : {"/score=ncc:0.3", "/score=zncc:0.5"}) {
      for (const std::string masks : {"/masks=left", "/masks=right", "/masks=both"}) {
        compare(parse_problem(plain + score + masks), noise);
      }
    }
  }
}

TEST(CpuFields, CircularBoundary) {
  for (const std::string& plain : kCircular) {
    for (const std::string score : {"", "/score=covariance"}) {
      compare(parse_problem(plain + "/boundary=circular" + score), noise);
    }
  }
}

TEST(CpuFields, Phase) {
  for (const std::string& plain : kCircular) {
    for (const std::string score : {"/score=phase:0", "/score=phase:0.5"}) {
      compare(parse_problem(plain + "/boundary=circular" + score), noise, 1e-9);
      compare(parse_problem(plain + "/boundary=circular" + score), offset, 1e-9);  // small bins
    }
  }
}

TEST(CpuFields, Views) {
  for (const std::string views : {"/views=windows", "/views=channels"}) {
    for (const std::string& plain : kZero) {
      compare(parse_problem(plain + views), noise);
      compare(parse_problem(plain + "/score=zncc:0.3/masks=both" + views), noise);
    }
    compare(parse_problem(kCircular[1] + "/boundary=circular/score=phase:0" + views), noise, 1e-9);
  }
}

TEST(CpuFields, OneArrayTwice) {
  compare(parse_problem("n-to-m/5x8/5x8/2:2/full/score=zncc:0.3/same=yes"), noise);
}

TEST(CpuFields, AnOffsetIsNoError) {
  const std::string shapes = "n-to-m/19x23/19x23/1:2/full";
  compare(parse_problem(shapes + "/score=ncc:0.3"), offset, 1e-12);
  compare(parse_problem(shapes + "/score=zncc:0.3"), offset, 1e-12);
  compare(parse_problem(shapes + "/score=zncc:0.3/masks=both"), offset, 1e-12);
  // A mean that is rounded once gives 1e-12.
  compare(parse_problem(shapes + "/score=covariance"), offset, 2e-14);
}

// One pixel is so large that sums about the mean of the matrix lose the noise of overlaps without
// that pixel.
TEST(CpuFields, OnePixelDoesNotSpoilTheOthers) {
  const Fill outlier = [](Side side, Index k) { return k == 3 ? 1e6 : noise(side, k); };
  for (const std::string masks : {"", "/masks=both"}) {
    compare(parse_problem("one-to-one/6x9/13x17/1:1/full/score=zncc:0.3" + masks), outlier, 1e-9);
  }
}

// A part that is constant up to 8 roundings of float32 of its values.
TEST(CpuFields, FlatPartsScoreZero) {
  const Fill flat = [](Side side, Index k) {
    return side == Side::right && k % 17 < 9 ? 1e3 + 1e-6 * noise(side, k) : noise(side, k);
  };
  const Problem q = parse_problem("one-to-one/6x7/13x17/1:1/valid/score=zncc:0.3");
  compare(q, flat, 1e-9);
  const Input left = make_input(q, Side::left, flat), right = make_input(q, Side::right, flat);
  for (const std::string id : kVariants) {
    const std::vector<double> out = run(id, q, Precision::fp64, left, right);
    EXPECT_EQ(out[0], 0) << id;
    EXPECT_EQ(out[2], 0) << id;
    EXPECT_NE(out[3], 0) << id;
  }
}

// What a mask hides has no influence, NaN included.
TEST(CpuFields, HiddenPixelsAreNotRead) {
  const Problem q = parse_problem("n-to-m/6x9/7x5/2:1/full/score=zncc:0.3/masks=both");
  const Input left = make_input(q, Side::left, noise), right = make_input(q, Side::right, noise);
  Input spoilt = left;
  for (std::size_t k = 0; k < spoilt.mask.size(); ++k) {
    if (!spoilt.mask[k]) spoilt.array[k] = std::numeric_limits<double>::quiet_NaN();
  }
  for (const std::string id : kVariants) {
    EXPECT_EQ(run(id, q, Precision::fp32, left, right), run(id, q, Precision::fp32, spoilt, right))
        << id;
  }
}

TEST(CpuFields, APowerOfTwoChangesNoBit) {
  for (const std::string fields :
       {"5x8/7x6/1:2/full/score=zncc:0.3", "5x8/7x6/1:2/full/score=ncc:0.3",
        "5x8/7x6/1:2/full/score=zncc:0.3/masks=both",
        "6x9/6x9/1:2/full/boundary=circular/score=phase:0"}) {
    const Problem q = parse_problem("n-to-m/" + fields);
    const bool phase = q.fields.score.kind == ScoreKind::phase;
    for (const std::string id : kVariants) {
      if (phase && id == "cpu_row_streaming") continue;
      for (const Precision precision : {Precision::fp32, Precision::fp64}) {
        const auto scaled = [&](int of_left, int of_right) {
          const Fill fill = [&](Side side, Index k) {
            return std::ldexp(offset(side, k), side == Side::left ? of_left : of_right);
          };
          return run(id, q, precision, make_input(q, Side::left, fill),
                     make_input(q, Side::right, fill));
        };
        // The spectrum of a phase is not scaled first.
        const int far = precision == Precision::fp32 || phase ? 100 : 1000;
        EXPECT_EQ(scaled(0, 0), scaled(far, -1)) << id << " " << q.id();
        EXPECT_EQ(scaled(0, 0), scaled(-far, -far)) << id << " " << q.id();
      }
    }
  }
}

TEST(CpuFields, ConstantsAndHiddenMatricesScoreZero) {
  const Fill constant = [](Side side, Index k) {
    return side == Side::left ? 1.2345678 : offset(side, k);
  };
  const Fill zero = [](Side side, Index k) { return side == Side::left ? 0 : noise(side, k); };
  const auto all_zero = [](const std::string& fields, const Fill& fill, bool (*mask)(Side, Index)) {
    const Problem q = parse_problem("n-to-m/6x9/7x5/2:1/full" + fields);
    const Input left = make_input(q, Side::left, fill, mask);
    const Input right = make_input(q, Side::right, fill, mask);
    for (const std::string id : kVariants) {
      for (const Precision precision : {Precision::fp32, Precision::fp64}) {
        const std::vector<double> zeros(static_cast<std::size_t>(q.out_elements()));
        EXPECT_EQ(run(id, q, precision, left, right), zeros) << id << fields;
      }
    }
  };
  all_zero("/score=zncc:0.3", constant, three_of_four);
  all_zero("/score=zncc:0.3/masks=both", constant, three_of_four);
  all_zero("/score=ncc:0.3", zero, three_of_four);
  const auto none = [](Side, Index) { return false; };
  for (const std::string score : {"/score=zncc:0.3", "/score=ncc:0.3"}) {
    for (const std::string masks : {"/masks=left", "/masks=right", "/masks=both"}) {
      all_zero(score + masks, noise, none);
    }
  }
}

TEST(CpuFields, OnlyTheDefinitionLimitsTheSizeOfAPhase) {
  const auto supported = [](const std::string& id, const std::string& shape) {
    PlanRequest request;
    request.problem = parse_problem("one-to-one/" + shape + "/" + shape +
                                    "/1:1/full/boundary=circular/score=phase:0");
    request.params = grid_points(find_variant(id))[0];
    return static_cast<bool>(find_variant(id).supports(request));
  };
  EXPECT_TRUE(supported("cpu_definition", "64x64"));
  EXPECT_FALSE(supported("cpu_definition", "64x65"));
  EXPECT_TRUE(supported("cpu_fft", "64x65"));
}

}  // namespace
}  // namespace xcorr
