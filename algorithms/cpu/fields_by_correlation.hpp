// All fields of a problem (docs/design.md, Fields of a problem) from plain correlations of one
// pair, for variants with a fast correlation. It uses float64 copies (dense_copy.hpp) and rounds
// the result.
//
// product, covariance, phase: one correlation of the copies. ncc, zncc: sums over the valid pixels
// of each overlap, each of which is a correlation (Padfield 2012). With l, r the copies and v, w
// their masks of 0 and 1:
//
//   n = v * w   S_l = l * w   S_r = v * r   S_ll = l^2 * w   S_rr = v * r^2   S_lr = l * r
//   score = (S_lr - S_l S_r / n) / sqrt((S_ll - S_l^2 / n) (S_rr - S_r^2 / n))
//
// and without the terms in S_l and S_r for ncc. Without masks n is known, and a variant may request
// integral images for the other sums of one side.
//
// Sums are relative to the mean of the matrix, so that an offset cancels before it is squared. If
// an outlier or a nodata fill is outside an overlap, its values may still differ little compared
// with the matrix. Then the sum of squares has lost digits. It is recognised by its size, and the
// score is computed from the original pixels (overlap_score.hpp).
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <memory>

#include "algorithms/blocks/integral_image.hpp"
#include "algorithms/blocks/precision.hpp"
#include "algorithms/cpu/dense_copy.hpp"
#include "algorithms/cpu/overlap_score.hpp"
#include "harness/variant.hpp"

namespace xcorr::cpu {

// How a variant correlates one pair of dense fp64 matrices, with any boundary, and score product or
// phase. The request contains this problem and the parameters of the variant's point.
struct PairCorrelation {
  std::size_t (*workspace_bytes)(const PlanRequest&);
  std::unique_ptr<Plan> (*plan)(const PlanRequest&);
  bool integral_images;  // for the sums of one side, where there are no masks
};

inline PlanRequest pair_request(const PlanRequest& request) {
  PlanRequest pair = request;
  const Problem& q = request.problem;
  pair.problem = {Geometry{Form::one_to_one, q.left, q.right, 1, 1, q.window}, Fields{}};
  pair.problem.fields.boundary = q.fields.boundary;
  if (q.fields.score.kind == ScoreKind::phase) pair.problem.fields.score = q.fields.score;
  pair.precision = Precision::fp64;
  pair.planning = Planning::once;  // so that all plans of a problem give the same bits
  return pair;
}

// Integral images: of the values of a matrix, and then of their squares.
enum Image { kLeftImage, kRightImage = 2, kImages = 4 };

// Offsets in the workspace, in doubles.
struct FieldsLayout {
  Index left, right, squares;           // copies; squares of one of them
  std::array<Index, kImages> image;     // integral images
  Index surfaces, surface;              // offset of the first, distance between surfaces
  Index pair;                           // workspace of the correlation
  std::size_t pair_bytes, total_bytes;  // of the correlation; of the whole workspace
  bool images;

  FieldsLayout(const PlanRequest& request, const PairCorrelation& correlation) {
    const Problem& q = request.problem;
    Index at = 0;
    const auto take = [&at](Index doubles) {
      const Index first = at;
      at += (doubles + 31) / 32 * 32;  // 256 bytes, the alignment of a workspace
      return first;
    };
    const bool normalised = is_normalised(q.fields.score.kind);
    images = normalised && q.fields.masks == Masks::none && correlation.integral_images;
    left = take(copy_doubles(q.left));
    right = take(copy_doubles(q.right));
    squares = take(normalised && !images ? std::max(q.left.size(), q.right.size()) : 0);
    for (int i = 0; i < kImages; ++i) {
      const Shape shape = i < kRightImage ? q.left : q.right;
      image[i] = take(images ? device::IntegralImage::doubles(shape.rows, shape.cols) : 0);
    }
    surface = whole_lines(q.out_size());
    surfaces = take(surface * (normalised && !images ? 6 : 1));
    pair = at;
    pair_bytes = correlation.workspace_bytes(pair_request(request));
    total_bytes = static_cast<std::size_t>(at) * sizeof(double) + pair_bytes;
  }
};

template <typename T>
class FieldsByCorrelation final : public Plan {
 public:
  FieldsByCorrelation(const PlanRequest& request, const PairCorrelation& correlation)
      : problem_(request.problem),
        at_(request, correlation),
        memory_(static_cast<double*>(request.workspace)),
        left_(copy_in(memory_ + at_.left, problem_.left)),
        right_(copy_in(memory_ + at_.right, problem_.right)) {
    for (int i = 0; i < kImages; ++i) images_[i] = device::IntegralImage(memory_ + at_.image[i]);
    PlanRequest pair = pair_request(request);
    pair.workspace = memory_ + at_.pair;
    correlation_ = correlation.plan(pair);
  }

  void compute(const Call& call) override {
    const Problem& q = problem_;
    const auto lefts = device::left_side<T>(call, q);
    const auto rights = device::right_side<T>(call, q);
    Pair copied{-1, -1};
    for (Index p = 0; p < q.pairs(); ++p) {
      const Pair pair = q.pair(p);
      if (pair.left != copied.left) {
        copy_matrix(lefts, pair.left, q.fields.score.kind, left_);
        make_images(left_, kLeftImage);
      }
      if (pair.right != copied.right) {
        copy_matrix(rights, pair.right, q.fields.score.kind, right_);
        make_images(right_, kRightImage);
      }
      copied = pair;
      correlate(left_.values, right_.values, kProducts);
      T* out = call.outs<T>() + p * q.out_size();
      if (is_normalised(q.fields.score.kind)) {
        if (!at_.images) correlate_sums();
        normalise(Matrix<T>{&lefts, pair.left}, Matrix<T>{&rights, pair.right}, out);
      } else {
        const double scale = phase_scale(q.fields.score, left_, right_);
        for (Index k = 0; k < q.out_size(); ++k) {
          out[k] = static_cast<T>(scale * surface(kProducts)[k]);
        }
      }
    }
  }

 private:
  enum Surface { kProducts, kCount, kLeft, kRight, kLeftSquares, kRightSquares };
  struct Sums {
    double count, left, right, left_squares, right_squares;
  };

  void make_images(const DenseCopy& copy, int first) {
    if (!at_.images) return;
    images_[first].make(copy.values, copy.shape.rows, copy.shape.cols);
    images_[first + 1].make_of_squares(copy.values, copy.shape.rows, copy.shape.cols);
  }

  double* surface(Surface which) const { return memory_ + at_.surfaces + which * at_.surface; }

  void correlate(const double* left, const double* right, Surface to) const {
    Call call;
    call.left = left;
    call.right = right;
    call.out = surface(to);
    correlation_->compute(call);
  }

  void correlate_sums() const {
    correlate(left_.valid, right_.valid, kCount);
    correlate(left_.values, right_.valid, kLeft);
    correlate(left_.valid, right_.values, kRight);
    correlate(squares_of(left_), right_.valid, kLeftSquares);
    correlate(left_.valid, squares_of(right_), kRightSquares);
  }
  const double* squares_of(const DenseCopy& copy) const {
    double* squares = memory_ + at_.squares;
    for (Index k = 0; k < copy.shape.size(); ++k) squares[k] = copy.values[k] * copy.values[k];
    return squares;
  }

  double count(Index k, Overlap y, Overlap x) const {
    return at_.images ? static_cast<double>(y.count * x.count) : std::nearbyint(surface(kCount)[k]);
  }

  // The sums of output k at shifts sy, sx.
  Sums sums(Index k, Index sy, Index sx) const {
    const Problem& q = problem_;
    const Overlap y = overlap(q.left.rows, q.right.rows, sy);
    const Overlap x = overlap(q.left.cols, q.right.cols, sx);
    if (!at_.images) {
      return {count(k, y, x), surface(kLeft)[k], surface(kRight)[k], surface(kLeftSquares)[k],
              surface(kRightSquares)[k]};
    }
    const auto sum = [&](int i, Index down, Index across) {
      return images_[i].sum(y.first + down, x.first + across, y.count, x.count);
    };
    return {count(k, y, x), sum(kLeftImage, 0, 0), sum(kRightImage, sy, sx),
            sum(kLeftImage + 1, 0, 0), sum(kRightImage + 1, sy, sx)};
  }

  template <typename Use>
  void each_shift(const Use& use) const {
    const Window& window = problem_.window;
    Index k = 0;
    for (Index sy = window.sy.first; sy <= window.sy.last; ++sy) {
      for (Index sx = window.sx.first; sx <= window.sx.last; ++sx) use(k++, sy, sx);
    }
  }

  void normalise(const Matrix<T>& of_left, const Matrix<T>& of_right, T* out) const {
    const Score& rule = problem_.fields.score;
    double most = 0;
    each_shift([&](Index k, Index sy, Index sx) {
      most = std::max(most, count(k, overlap(left_.shape.rows, right_.shape.rows, sy),
                                  overlap(left_.shape.cols, right_.shape.cols, sx)));
    });
    const double least = std::max(1.0, rule.min_overlap * most);
    // The rounding errors of a sum of squares are below 2^-46 of the largest square times the
    // pixels of the larger matrix, for every method: a transform adds all pixels. A sum that is at
    // least kLeastShare of that product has 20 correct bits, for float64 30. A side that may be
    // constant up to rounding is computed by the definition too.
    constexpr double kLeastShare = sizeof(T) == sizeof(float) ? 0x1p-26 : 0x1p-16;
    const double pixels = static_cast<double>(std::max(left_.shape.size(), right_.shape.size()));
    const auto least_squares = [&](const DenseCopy& of) {
      const double rounding = 8 * 0x1p-24 * of.largest_pixel;
      return pixels * std::max(kLeastShare * of.largest * of.largest, 4 * rounding * rounding);
    };
    const double left_least = least_squares(left_), right_least = least_squares(right_);
    each_shift([&](Index k, Index sy, Index sx) {
      const Sums s = sums(k, sy, sx);
      if (s.count < least) {
        out[k] = 0;
        return;
      }
      const double scale = rule.kind == ScoreKind::zncc ? 1 / s.count : 0;
      const double left = s.left_squares - s.left * s.left * scale;
      const double right = s.right_squares - s.right * s.right * scale;
      if (!(left > left_least && right > right_least)) {
        out[k] = static_cast<T>(overlap_score(rule.kind, of_left, of_right, sy, sx));
        return;
      }
      const double product = surface(kProducts)[k] - s.left * s.right * scale;
      out[k] =
          static_cast<T>(std::clamp(product / (std::sqrt(left) * std::sqrt(right)), -1.0, 1.0));
    });
  }

  Problem problem_;
  FieldsLayout at_;
  double* memory_;
  DenseCopy left_, right_;
  std::array<device::IntegralImage, kImages> images_;
  std::unique_ptr<Plan> correlation_;
};

// The .workspace_bytes and .plan of a variant. PlainOf<T> is its plan of plain problems, Circular
// that of one pair in float64 with boundary circular.
template <template <typename> class PlainOf, typename Circular, bool kIntegralImages>
struct FieldsVariant {
  static std::size_t workspace_bytes(const PlanRequest& request) {
    if (!request.problem.is_plain()) return FieldsLayout(request, pairs()).total_bytes;
    return device::with_scalar(request.precision,
                               [&]<typename T>(T) { return PlainOf<T>::workspace_bytes(request); });
  }
  static std::unique_ptr<Plan> plan(const PlanRequest& request) {
    if (request.problem.is_plain()) return device::plan_in_precision<PlainOf>(request);
    return device::with_scalar(request.precision, [&]<typename T>(T) -> std::unique_ptr<Plan> {
      return std::make_unique<FieldsByCorrelation<T>>(request, pairs());
    });
  }

 private:
  static PairCorrelation pairs() {
    return {.workspace_bytes =
                [](const PlanRequest& pair) {
                  return pair.problem.is_plain() ? PlainOf<double>::workspace_bytes(pair)
                                                 : Circular::workspace_bytes(pair);
                },
            .plan =
                [](const PlanRequest& pair) {
                  return pair.problem.is_plain() ? make_plan<PlainOf<double>>(pair)
                                                 : make_plan<Circular>(pair);
                },
            .integral_images = kIntegralImages};
  }
};

}  // namespace xcorr::cpu
