// Templates by the transform theorem on FFTW, with integral images in float64. Derived from
// cpu_fft, which computes every score in float64, pair by pair, by transforms of the whole frame.
//
// - The mean of the window cancels in the numerator, so that the sliding-window paper's "prevents
//   an efficient frequency domain implementation" does not hold: a score is one product of spectra
//   and one inverse transform.
// - The frame is divided into tiles, each with its own pivot (cpu_tiles.hpp), so that transforms
//   may be float32 and stay in a cache. The spectrum of a tile serves all templates, and that of a
//   template serves all tiles and frames. A tile has the sides for which the predicted time of the
//   whole frame is smallest.
// - With masks each sum is a product of spectra too, in float64.
//
// Covariance, at any shifts and with either boundary, is one transform of the whole matrices, as
// particle image velocimetry needs. Plans are FFTW_ESTIMATE, so that all plans of a problem give
// the same bits. threads=all spreads over tiles, and over templates if there are few tiles.
// Limits: zncc and ncc need the template inside the frame at every shift (window `valid` or a part
// of it). Templates along one signal are refused (family time_series).
#include <fftw3.h>

#include <bit>
#include <complex>
#include <mutex>

#include "algorithms/blocks/conjugate_product.hpp"
#include "algorithms/blocks/fftw.hpp"
#include "algorithms/blocks/padding.hpp"
#include "algorithms/blocks/precision.hpp"
#include "algorithms/template_matching/cpu_tiles.hpp"
#include "harness/variant.hpp"

namespace xcorr::template_matching {
namespace {

template <typename C>
struct Transforms {
  static constexpr auto plan_forward = device::pick<C>(fftwf_plan_dft_r2c_2d, fftw_plan_dft_r2c_2d);
  static constexpr auto plan_inverse = device::pick<C>(fftwf_plan_dft_c2r_2d, fftw_plan_dft_c2r_2d);
};

// Shape of the transforms of a tile.
Shape points_of(const Problem& q, const TileGrid& grid) {
  if (q.fields.boundary == Boundary::circular) return q.right;
  if (grid.inside) return {device::smooth_size(grid.rows), device::smooth_size(grid.cols)};
  return {device::smooth_size(device::padded_size(q.left.rows, q.right.rows, q.window.sy)),
          device::smooth_size(device::padded_size(q.left.cols, q.right.cols, q.window.sx))};
}

}  // namespace

// The Correlator of cpu_tiles.hpp.
// Outside of the unnamed namespace, since a member of TilesPlan, which is in a header, has this
// type.
template <typename C>
class TileTransforms {
 public:
  static constexpr Index kSlackRows = 0, kSlack = 0;
  static constexpr double kLargestOffset = std::numeric_limits<double>::infinity();
  // A transform spreads its errors over the tile. In float32 they are about 0.6 log2(N) roundings
  // of the norm of the tile, so a score of a window with 2^-18 of its squares is off by up to 3e-4.
  static constexpr double kLeastShare = sizeof(C) == sizeof(float) ? 0x1p-18 : 0;

  static Index pitch(const TileGrid& grid) { return grid.out_cols; }
  static Index template_doubles(const PlanRequest& request, const TileGrid& grid) {
    return planes(request) * Sizes(request, grid).spectrum;
  }
  static Index doubles(const PlanRequest& request, const TileGrid& grid, Index slots,
                       Index threads) {
    const Sizes sizes(request, grid);
    return slots * planes(request) * sizes.spectrum +
           threads * ((planes(request) + 1) * sizes.spectrum + sizes.image);
  }

  TileTransforms(const PlanRequest& request, const TileGrid& grid, Index slots, int threads,
                 double* memory)
      : problem_(request.problem),
        points_(points_of(problem_, grid)),
        sizes_(request, grid),
        planes_(planes(request)),
        cols_(pitch(grid)),
        inside_(grid.inside),
        lefts_(memory),
        rights_(lefts_ + slots * planes_ * sizes_.spectrum),
        products_(rights_ + threads * planes_ * sizes_.spectrum),
        images_(products_ + threads * sizes_.spectrum) {
    const std::lock_guard lock(device::fftw_planner);
    const int rows = static_cast<int>(points_.rows), cols = static_cast<int>(points_.cols);
    forward_.reset(
        Transforms<C>::plan_forward(rows, cols, image(0), raw(products_), FFTW_ESTIMATE));
    inverse_.reset(
        Transforms<C>::plan_inverse(rows, cols, raw(products_), image(0), FFTW_ESTIMATE));
  }

  void left(Index slot, Plane plane, const double* values) {
    forward(values, problem_.left, spectrum(lefts_, slot, plane));
  }
  void right(Index thread, Plane plane, const double* values, const Part& part) {
    forward(values, {part.rows, part.cols}, spectrum(rights_, thread, plane));
  }
  void correlate(Index thread, Index slot, Plane left, Plane right, const Tile& tile,
                 C* out) const {
    double* product = products_ + thread * sizes_.spectrum;
    multiply_(real(spectrum(lefts_, slot, left)), real(spectrum(rights_, thread, right)),
              real(product), 2 * points_.rows * (points_.cols / 2 + 1));
    C* at = image(thread);
    device::Fftw<C>::c2r(inverse_.get(), raw(product), at);
    const C scale = C{1} / static_cast<C>(points_.size());
    // In a tile shift 0 is the first output; otherwise shifts below 0 lie at the end.
    const Index sy = inside_ ? 0 : problem_.window.sy.first;
    const Index sx = inside_ ? 0 : problem_.window.sx.first;
    const Index cols = tile.outputs.cols, negative = std::clamp<Index>(-sx, 0, cols);
    for (Index y = 0; y < tile.outputs.rows; ++y) {
      const C* row = at + wrapped(y, sy, points_.rows) * points_.cols;
      C* to = out + y * cols_;
      for (Index x = 0; x < negative; ++x) to[x] = scale * row[points_.cols + sx + x];
      for (Index x = negative; x < cols; ++x) to[x] = scale * row[sx + x];
    }
  }
  void correlate_in_double(const Planes&, const Planes&, const Tile&, double*) const {}

 private:
  // Sizes in doubles.
  struct Sizes {
    Index spectrum, image;
    Sizes(const PlanRequest& request, const TileGrid& grid) {
      const Shape points = points_of(request.problem, grid);
      const auto lines = [](Index scalars) {
        return (scalars * Index{sizeof(C)} + 255) / 256 * 32;
      };
      spectrum = lines(2 * points.rows * (points.cols / 2 + 1));
      image = lines(points.size());
    }
  };
  static Index planes(const PlanRequest& request) {
    return request.problem.fields.masks == Masks::none ? 1 : kPlanes;
  }
  static typename device::Fftw<C>::Complex raw(double* at) {
    return reinterpret_cast<typename device::Fftw<C>::Complex>(at);
  }
  static C* real(double* at) { return reinterpret_cast<C*>(at); }
  C* image(Index thread) const { return real(images_ + thread * sizes_.image); }
  double* spectrum(double* of, Index i, Plane plane) const {
    return of + (i * planes_ + (planes_ == 1 ? 0 : plane)) * sizes_.spectrum;
  }

  void forward(const double* values, Shape shape, double* to) const {
    C* at = image(omp_get_thread_num());
    for (Index y = 0; y < shape.rows; ++y) {
      std::copy_n(values + y * shape.cols, shape.cols, at + y * points_.cols);
      std::fill_n(at + y * points_.cols + shape.cols, points_.cols - shape.cols, C{0});
    }
    std::fill(at + shape.rows * points_.cols, at + points_.size(), C{0});
    device::Fftw<C>::r2c(forward_.get(), at, raw(to));
  }

  Problem problem_;
  Shape points_;
  Sizes sizes_;
  Index planes_, cols_;
  bool inside_;
  double *lefts_, *rights_, *products_, *images_;
  void (*multiply_)(const C*, const C*, C*, Index) = device::choose_multiply<C>();
  device::OwnedPlan<C> forward_, inverse_;
};

namespace {

// The sides of a tile with the smallest predicted time for the frame. A transform that does not fit
// the second-level cache takes about 1.5 times as long per point.
TileGrid grid(const PlanRequest& request) {
  const Problem& q = request.problem;
  const TileGrid whole = make_grid(q, q.out_rows(), q.out_cols());
  if (!whole.inside) return whole;
  constexpr Index kSides[] = {16, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024};
  const Index bytes = q.fields.masks == Masks::none ? 8 : 32;
  TileGrid best = whole;
  const auto cost = [&](const TileGrid& made) {
    const Shape points = points_of(q, made);
    const double n = static_cast<double>(points.size());
    const double cache = points.size() * bytes > (Index{3} << 19) ? 1.5 : 1.0;
    return static_cast<double>(made.tiles()) * n * (std::log2(n) + 8) * cache;
  };
  double least = cost(whole);
  for (const Index rows : kSides) {
    for (const Index cols : kSides) {
      if (rows < q.left.rows || cols < q.left.cols) continue;
      const TileGrid made = make_grid(q, rows - q.left.rows + 1, cols - q.left.cols + 1);
      if (const double own = cost(made); own < least) best = made, least = own;
    }
  }
  return best;
}

bool is_masked(const Problem& q) { return q.fields.masks != Masks::none; }

using Tiles = TilesVariant<TileTransforms, grid, is_masked>;

XCORR_VARIANT({
    .summary = "Scores of templates on FFTW: float32 tiles with pivots of their own, float64 "
               "integral images, spectra used again; covariance of any windows",
    .parent = "cpu_fft",
    .source = "Adaptable sliding window; section 3.1",
    .algorithm_class = AlgorithmClass::fft,
    .precisions = {Precision::fp32, Precision::fp64},
    .axes = {{"threads", {"1", "all"}}},
    .boundaries = {Boundary::zero, Boundary::circular},
    .scores = {ScoreKind::covariance, ScoreKind::ncc, ScoreKind::zncc},
    .masks = true,
    .views = {Views::dense, Views::windows, Views::channels},
    .supports = [](const PlanRequest& request) { return takes(request, true); },
    .workspace_bytes = Tiles::workspace_bytes,
    .plan = Tiles::plan,
});

}  // namespace
}  // namespace xcorr::template_matching
