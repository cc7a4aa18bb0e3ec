// Faults of scores, boundaries and masks. The right answer is that of the float64 definition.
#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>
#include <type_traits>
#include <utility>
#include <vector>

#include "harness/truth/phase.hpp"
#include "harness/truth/score.hpp"
#include "tests/negative/broken.hpp"

namespace xcorr::broken {
namespace {

// The right answer; a fault spoils the inputs, the shift or what is made of the sums.
class SoundScore : public Plan {
 public:
  explicit SoundScore(const PlanRequest& request) : problem_(request.problem) {}

  void compute(const Call& call) override {
    const Problem& q = problem_;
    const auto stack = [](const auto* from, Index count) {
      return from ? std::vector<std::remove_cvref_t<decltype(*from)>>(from, from + count)
                  : std::vector<std::remove_cvref_t<decltype(*from)>>();
    };
    const std::vector<float> left = stack(call.lefts<float>(), q.left_elements()),
                             right = stack(call.rights<float>(), q.right_elements());
    ScoreInputs inputs{{left.begin(), left.end()},
                       {right.begin(), right.end()},
                       stack(call.left_mask, q.left_elements()),
                       stack(call.right_mask, q.right_elements()),
                       {},
                       {}};
    spoil(inputs);
    inputs.find_facts(q);
    for (Index p = 0; p < q.pairs(); ++p) {
      surface(inputs, p, call.outs<float>() + p * q.out_size());
    }
  }

 protected:
  virtual void spoil(ScoreInputs&) {}

  virtual void surface(const ScoreInputs& inputs, Index p, float* out) {
    const ScorePair pair = inputs.pair(problem_, p);
    std::vector<ScoreElement> elements;
    each_shift(problem_, [&](Index sy, Index sx) { elements.push_back(element(pair, sy, sx)); });
    if (is_normalised(problem_.fields.score.kind)) least_overlap(elements);
    for (const ScoreElement& e : elements) *out++ = static_cast<float>(e.value);
  }

  virtual ScoreElement element(const ScorePair& pair, Index sy, Index sx) {
    return score_element(problem_, pair, sy, sx);
  }

  virtual void least_overlap(std::vector<ScoreElement>& elements) {
    double most = 0;
    for (const ScoreElement& e : elements) most = std::max(most, e.terms);
    for (ScoreElement& e : elements) {
      apply_least_overlap(e, problem_.fields.score.min_overlap, most);
    }
  }

  Problem problem_;
};

// The value F(problem, pair, sy, sx, element) takes the place of the right one where the score is not 0 by rule.
template <typename F>
struct WrongValue : SoundScore {
  using SoundScore::SoundScore;
  ScoreElement element(const ScorePair& pair, Index sy, Index sx) override {
    ScoreElement e = score_element(problem_, pair, sy, sx);
    if (e.zero != ZeroRule::zero) {
      e.value = static_cast<double>(F{}(problem_, pair, sy, sx, std::as_const(e)));
    }
    return e;
  }
};

struct Moments {
  double n = 0, left = 0, right = 0;
};
Moments moments(const Problem& q, const ScorePair& pair, Index sy, Index sx) {
  Moments found;
  each_product(q, pair, sy, sx,
               [&](double l, double r) { found.n += 1, found.left += l, found.right += r; });
  return found;
}

double zncc_about(const Problem& q, const ScorePair& pair, Index sy, Index sx, double l_mean,
                  double r_mean) {
  double products = 0, left = 0, right = 0;
  each_product(q, pair, sy, sx, [&](double l, double r) {
    products += (l - l_mean) * (r - r_mean);
    left += (l - l_mean) * (l - l_mean);
    right += (r - r_mean) * (r - r_mean);
  });
  return left * right > 0 ? products / std::sqrt(left * right) : 0;
}

// Values are rounded to float32 after the mean of the whole matrix is subtracted.
struct PivotOfTheMatrix : SoundScore {
  using SoundScore::SoundScore;
  void spoil(ScoreInputs& inputs) override {
    inputs.find_facts(problem_);
    const auto shift = [](std::vector<double>& stack, const std::vector<MatrixFacts>& facts) {
      const std::size_t size = stack.size() / facts.size();
      for (std::size_t i = 0; i < stack.size(); ++i) {
        stack[i] = static_cast<float>(stack[i] - facts[i / size].mean);
      }
    };
    shift(inputs.left, inputs.left_facts);
    shift(inputs.right, inputs.right_facts);
  }
};

struct MaskIgnored : SoundScore {
  using SoundScore::SoundScore;
  void spoil(ScoreInputs& inputs) override { inputs.left_mask.clear(); }
};

struct OverlapIgnored : SoundScore {
  using SoundScore::SoundScore;
  void least_overlap(std::vector<ScoreElement>&) override {}
};

struct SoundPhase : SoundScore {
  using SoundScore::SoundScore;
  void surface(const ScoreInputs& inputs, Index p, float* out) override {
    const ScorePair pair = inputs.pair(problem_, p);
    std::vector<double> values(static_cast<std::size_t>(problem_.out_size()));
    const Problem asked = spoiled();
    PhaseReference(asked, true).pair(pair.left, pair.right, 0, 0, values.data());
    std::copy(values.begin(), values.end(), out);
  }
  virtual Problem spoiled() const { return problem_; }
};

struct ExponentIgnored : SoundPhase {
  using SoundPhase::SoundPhase;
  Problem spoiled() const override {
    Problem asked = problem_;
    asked.fields.score.exponent = 0;
    return asked;
  }
};

// The bin of frequency 0 is 1, as every other one is.
struct BrightnessKept : SoundPhase {
  using SoundPhase::SoundPhase;
  void surface(const ScoreInputs& inputs, Index p, float* out) override {
    SoundPhase::surface(inputs, p, out);
    const double points = static_cast<double>(problem_.left.size());
    each_shift(problem_, [&](Index, Index) { *out++ += static_cast<float>(1 / points); });
  }
};

// Every bin is divided by its own size, without the floor.
struct Unguarded : SoundPhase {
  using SoundPhase::SoundPhase;
  void surface(const ScoreInputs& inputs, Index p, float* out) override {
    const ScorePair pair = inputs.pair(problem_, p);
    const Shape shape = problem_.left;
    constexpr double kTurn = 2 * std::numbers::pi;
    const auto each = [&](auto&& f) {
      for (Index y = 0; y < shape.rows; ++y) {
        for (Index x = 0; x < shape.cols; ++x) f(y, x);
      }
    };
    const auto root = [&](Index v, Index y, Index u, Index x) {
      return std::polar(
          1.0, kTurn * (static_cast<double>(v * y % shape.rows) / static_cast<double>(shape.rows) +
                        static_cast<double>(u * x % shape.cols) / static_cast<double>(shape.cols)));
    };
    std::vector<std::complex<double>> bins;
    each([&](Index v, Index u) {
      std::complex<double> l = 0, r = 0;
      each([&](Index y, Index x) {
        l += (pair.left[y * shape.cols + x] - pair.left_mean) * root(v, y, u, x);  // conjugated
        r += (pair.right[y * shape.cols + x] - pair.right_mean) * std::conj(root(v, y, u, x));
      });
      const std::complex<double> cross = l * r;
      const double by = std::pow(std::abs(cross), problem_.fields.score.exponent - 1);
      bins.push_back(v == 0 && u == 0 ? 0 : cross * by);
    });
    each_shift(problem_, [&](Index sy, Index sx) {
      std::complex<double> sum = 0;
      each([&](Index v, Index u) {
        sum += bins[static_cast<std::size_t>(v * shape.cols + u)] *
               root(v, wrapped(0, sy, shape.rows), u, wrapped(0, sx, shape.cols));
      });
      *out++ = static_cast<float>(sum.real() / static_cast<double>(shape.size()));
    });
  }
};

bool add_score(const char* id, const char* summary, decltype(Variant::plan) plan) {
  Variant variant;
  variant.boundaries = {Boundary::zero, Boundary::circular};
  variant.scores = {ScoreKind::product, ScoreKind::covariance, ScoreKind::ncc, ScoreKind::zncc,
                    ScoreKind::phase};
  variant.masks = true;
  return add_variant(id, summary, plan, std::move(variant));
}
template <typename F>
bool add_value(const char* id, const char* summary, F) {
  return add_score(id, summary, make_plan<WrongValue<F>>);
}

using Element = const ScoreElement&;

const bool kAdded[] = {
    add_score("broken_no_score", "Right, the control of scores", make_plan<SoundScore>),
    add_score("broken_no_phase", "Right, the control of phase correlation", make_plan<SoundPhase>),
    add_value("broken_deviation", "zncc divides by the variance of the left",
              [](const Problem& q, const ScorePair& pair, Index sy, Index sx, Element e) {
                const Moments of = moments(q, pair, sy, sx);
                double squares = 0;
                each_product(q, pair, sy, sx, [&](double l, double) {
                  squares += (l - of.left / of.n) * (l - of.left / of.n);
                });
                return std::clamp(e.value / (e.scale * squares), -1.0, 1.0);
              }),
    add_value("broken_count", "Means over a row too many",
              [](const Problem& q, const ScorePair& pair, Index sy, Index sx, Element) {
                const Moments of = moments(q, pair, sy, sx);
                const Index row = overlap(q.left.cols, q.right.cols, sx).count;
                const double n = of.n + static_cast<double>(row);
                return zncc_about(q, pair, sy, sx, of.left / n, of.right / n);
              }),
    add_value("broken_whole_mean", "Mean of the whole template over a partial overlap",
              [](const Problem& q, const ScorePair& pair, Index sy, Index sx, Element) {
                const Moments of = moments(q, pair, sy, sx);
                return zncc_about(q, pair, sy, sx, pair.left_mean, of.right / of.n);
              }),
    // float32 sums of squares and products, whose means are subtracted afterwards.
    add_value("broken_uncentred", "Differences of large float32 sums",
              [](const Problem& q, const ScorePair& pair, Index sy, Index sx, Element) {
                float n = 0, l1 = 0, r1 = 0, l2 = 0, r2 = 0, lr = 0;
                each_product(q, pair, sy, sx, [&](double left, double right) {
                  const auto l = static_cast<float>(left), r = static_cast<float>(right);
                  n += 1, l1 += l, r1 += r, l2 += l * l, r2 += r * r, lr += l * r;
                });
                const float squares = (l2 - l1 * l1 / n) * (r2 - r1 * r1 / n);
                if (!(squares > 0)) return 0.0f;
                return std::clamp((lr - l1 * r1 / n) / std::sqrt(squares), -1.0f, 1.0f);
              }),
    add_value("broken_constant", "Sides are constant beside the spread of their matrix",
              [](const Problem& q, const ScorePair& pair, Index sy, Index sx, Element e) {
                double left = 0, right = 0;
                each_product(q, pair, sy, sx, [&](double l, double r) {
                  left = std::max(left, std::abs(l - pair.left_mean));
                  right = std::max(right, std::abs(r - pair.right_mean));
                });
                const bool constant = zero_rule(e.left_squares, left, e.terms) != ZeroRule::no ||
                                      zero_rule(e.right_squares, right, e.terms) != ZeroRule::no;
                return constant ? 0 : e.value;
              }),
    add_score("broken_pivot", "One pivot for a matrix, in float32", make_plan<PivotOfTheMatrix>),
    add_score("broken_mask", "The mask of the left is not used", make_plan<MaskIgnored>),
    add_score("broken_least_overlap", "No least overlap", make_plan<OverlapIgnored>),
    // Columns are taken modulo one less than their number.
    add_value("broken_modulo", "Columns wrap one too early",
              [](const Problem& q, const ScorePair& pair, Index sy, Index sx, Element) {
                const Index rows = q.left.rows, cols = q.left.cols;
                double sum = 0;
                for (Index y = 0; y < rows; ++y) {
                  for (Index x = 0; x < cols; ++x) {
                    const Index column = x + sx >= cols ? x + sx - (cols - 1) : x + sx;
                    sum += pair.left[y * cols + x] *
                           pair.right[wrapped(y, sy, rows) * cols + wrapped(column, 0, cols)];
                  }
                }
                return sum;
              }),
    add_value("broken_covariance", "Covariance about the means of the overlap",
              [](const Problem& q, const ScorePair& pair, Index sy, Index sx, Element) {
                const Moments of = moments(q, pair, sy, sx);
                ScorePair local = pair;
                local.left_mean = of.left / of.n;
                local.right_mean = of.right / of.n;
                return score_element(q, local, sy, sx).value;
              }),
    add_score("broken_exponent", "Phase correlation with p = 0", make_plan<ExponentIgnored>),
    add_score("broken_brightness", "Phase correlation of matrices with means",
              make_plan<BrightnessKept>),
    add_score("broken_unguarded", "Phase correlation divides by the smallest bins",
              make_plan<Unguarded>),
};

}  // namespace
}  // namespace xcorr::broken
