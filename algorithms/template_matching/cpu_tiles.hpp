// What both CPU variants of the family share. The surface of a pair is divided into tiles. Whatever
// a tile needs is computed once and serves all templates:
//
// - A tile of the right matrix is copied less its pivot, so that an offset of the frame costs no
//   digits. It has integral images of its values and squares in float64, and the correlator's data.
// - A template is copied less its mean, so that the mean of the window cancels in the numerator.
// - The score is numerator / sqrt(sum (l - mean l)^2 (sum r^2 - (sum r)^2 / n)).
// - If the sums of a window have lost digits, beside an outlier or in one mode of a bimodal tile,
//   its score is computed by the definition, from the unchanged pixels.
//
// A mask of one side replaces the two sums of the other side by correlations, in float64. With both
// masks the count of pixels is a correlation too: six with the numerator (Padfield 2012).
//
// A Correlator computes numerators:
//   Correlator<C>(request, grid, threads, memory); doubles(...)         C: float or double
//   left(slot, plane, values)           prepares a plane of a template
//   right(thread, plane, values, part)  prepares a plane of a tile
//   correlate(...)                      every output of a tile, for one template
//   correlate_in_double(...)            the same in float64, from the unprepared planes
//   kLeastShare                         share of the sum of squares of a tile below which a window
//                                       is computed by the definition
// A plane of a template has kSlackRows rows of zeros before and after it. Behind a plane of a tile
// as many rows and kSlack elements may be read, and behind the outputs as many rows may be written.
#pragma once

#include <omp.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

#include "algorithms/blocks/integral_image.hpp"
#include "algorithms/blocks/overlap_score.hpp"
#include "algorithms/blocks/precision.hpp"
#include "algorithms/template_matching/cpu_grid.hpp"
#include "algorithms/template_matching/cpu_planes.hpp"
#include "harness/variant.hpp"

namespace xcorr::template_matching {

template <typename T, typename C, template <typename> class CorrelatorOf>
class TilesPlan final : public Plan {
  using Correlator = CorrelatorOf<C>;
  // A prepared template.
  struct Template {
    Facts facts;
    double squares;
    bool constant;
    Index matrix;  // number of the matrix
  };

 public:
  TilesPlan(const PlanRequest& request, const TileGrid& grid)
      : problem_(request.problem),
        grid_(grid),
        terms_(terms_of(problem_.fields.masks)),
        at_(request, grid),
        threads_(device::thread_count(request)),
        memory_(static_cast<double*>(request.workspace)),
        correlator_(request, grid, at_.slots, threads_, memory_ + at_.correlator) {
    std::fill_n(memory_, at_.correlator, 0.0);
  }

  static std::size_t workspace_bytes(const PlanRequest& request, const TileGrid& grid) {
    return static_cast<std::size_t>(Layout(request, grid).total) * sizeof(double);
  }

  void compute(const Call& call) override {
    const Problem& q = problem_;
    const auto lefts = device::left_side<T>(call, q);
    const auto rights = device::right_side<T>(call, q);
    call.phase("forward");
    if (q.form == Form::n_to_mn) return each_tile(call, lefts, rights, 0, 0);
    for (Index first = 0; first < q.lefts; first += at_.slots) {
      const Index count = std::min(at_.slots, q.lefts - first);
#pragma omp parallel for num_threads(threads_) schedule(dynamic) if (threads_ > 1 && count > 1)
      for (Index l = 0; l < count; ++l) make_template(lefts, first + l, l);
      each_tile(call, lefts, rights, first, count);
    }
  }

 private:
  // Offsets in the workspace, in doubles.
  struct Layout {
    Index most = 0, templates = 0, slot = 0, threads = 0, thread = 0, correlator = 0;
    Index plane = 0, image = 0, surface = 0;  // per thread
    Index template_plane = 0;
    Index slots = 0;  // prepared templates at a time; in n-to-mn one per thread
    Index total = 0;

    Layout(const PlanRequest& request, const TileGrid& grid) {
      const Problem& q = request.problem;
      const Index threads_in_use = device::thread_count(request);
      const auto line = [](Index doubles) { return (doubles + 31) / 32 * 32; };
      const bool masked = q.fields.masks != Masks::none;
      template_plane = line((q.left.rows + 2 * Correlator::kSlackRows) * q.left.cols);
      slot = line(sizeof(Template) / sizeof(double) + 1) + (masked ? 3 : 1) * template_plane;
      constexpr Index kTemplateDoubles = Index{1} << 23;  // 64 MB of templates and their data
      const Index each = slot + Correlator::template_doubles(request, grid);
      slots = q.form == Form::n_to_mn ? threads_in_use
                                      : std::clamp<Index>(kTemplateDoubles / each,
                                                          std::min<Index>(q.lefts, 4), q.lefts);
      plane = line((grid.rows + Correlator::kSlackRows) * grid.cols + Correlator::kSlack);
      image = line(device::IntegralImage::doubles(grid.rows, grid.cols));
      surface = line((grid.out_rows + Correlator::kSlackRows) * Correlator::pitch(grid));
      const bool normalised = is_normalised(q.fields.score.kind);
      thread = (masked ? 3 : 1) * plane + (normalised ? (masked ? 3 : 2) * image : 0) +
               (masked ? kSums + 2 : 3) * surface;
      Index at = 0;
      const auto take = [&](Index doubles) {
        const Index first = at;
        at += line(doubles);
        return first;
      };
      most = take(masks_right(q.fields.masks) ? q.pairs() : 0);
      templates = take(slots * slot);
      threads = take(threads_in_use * thread);
      correlator = take(Correlator::doubles(request, grid, slots, threads_in_use));
      total = at;
    }
  };

  // The data of a tile that one thread holds.
  struct Scratch {
    Planes planes;
    std::array<device::IntegralImage, kPlanes> images;
    C* surface[kSums];
    double* exact;     // products in float64, if `offset`
    double* inverses;  // make_inverses
    bool offset;
    Facts facts;
    Tile tile;
    const device::CallSide<T>*lefts, *rights;
    Index right;  // number of the matrix that the tile is part of
  };

  bool masked() const { return problem_.fields.masks != Masks::none; }
  bool right_masked() const { return masks_right(problem_.fields.masks); }
  bool left_masked() const { return masks_left(problem_.fields.masks); }

  Scratch scratch(int thread) const {
    Scratch s{};
    double* at = memory_ + at_.threads + thread * at_.thread;
    const auto take = [&](Index doubles) { return std::exchange(at, at + doubles); };
    for (int p = 0; p < (masked() ? 3 : 1); ++p) s.planes.plane[p] = take(at_.plane);
    if (is_normalised(problem_.fields.score.kind)) {
      s.images[kValues] = device::IntegralImage(take(at_.image));
      s.images[kSquares] = device::IntegralImage(take(at_.image));
      if (masked()) s.images[kValid] = device::IntegralImage(take(at_.image));
    }
    for (int t = 0; t < (masked() ? kSums : 1); ++t) {
      s.surface[t] = reinterpret_cast<C*>(take(at_.surface));
    }
    s.exact = take(at_.surface);
    s.inverses = take(at_.surface);
    return s;
  }
  Template& ready(Index slot) const {
    return *reinterpret_cast<Template*>(memory_ + at_.templates + slot * at_.slot);
  }
  Planes template_planes(Index slot) const {
    double* first =
        memory_ + at_.templates + (slot + 1) * at_.slot - (masked() ? 3 : 1) * at_.template_plane;
    Planes planes{};
    for (int p = 0; p < (masked() ? 3 : 1); ++p) {
      planes.plane[p] =
          first + p * at_.template_plane + Correlator::kSlackRows * problem_.left.cols;
    }
    return planes;
  }

  void make_template(const device::CallSide<T>& lefts, Index i, Index slot) {
    const Problem& q = problem_;
    const Planes planes = template_planes(slot);
    const ScoreKind kind = q.fields.score.kind;
    Template& made = ready(slot);
    made.facts = copy_part(lefts, i, {0, 0, q.left.rows, q.left.cols}, kind, planes);
    made.matrix = i;
    made.squares = 0;
    for (Index k = 0; k < q.left.size(); ++k) {
      made.squares += planes.plane[kValues][k] * planes.plane[kValues][k];
    }
    made.constant = made.squares <= constant_limit(made.facts.largest_pixel, made.facts.count);
    std::array<bool, kPlanes> used{};
    for (const Term& term : terms_) used[term.left] |= term.wanted;
    for (int p = 0; p < kPlanes; ++p) {
      if (used[p]) correlator_.left(slot, Plane(p), planes.plane[p]);
    }
  }

  // Processes every tile of every right matrix with `count` templates from `first` on; in n-to-mn
  // with the template that belongs to the right matrix.
  void each_tile(const Call& call, const device::CallSide<T>& lefts,
                 const device::CallSide<T>& rights, Index first, Index count) {
    const Problem& q = problem_;
    const Index tiles = grid_.tiles(), tasks = q.rights * tiles;
    if (right_masked()) find_most(lefts, rights, first, count);
    // If there are few tiles, several threads share a tile, each with a part of the templates.
    const Index groups =
        q.form == Form::n_to_mn ? 1 : std::clamp<Index>(2 * threads_ / tasks, 1, count);
#pragma omp parallel num_threads(threads_) if (threads_ > 1 && tasks * groups > 1)
    {
      const int thread = omp_get_thread_num();
      Index made = -1;  // n-to-mn: the template in this thread's slot
#pragma omp for schedule(dynamic)
      for (Index task = 0; task < tasks * groups; ++task) {
        const Index r = task / groups / tiles, group = task % groups;
        const Tile tile = tile_of(q, grid_, task / groups % tiles);
        Scratch s = scratch(thread);
        s.lefts = &lefts;
        prepare(rights, r, tile, thread, s);
        if (q.form == Form::n_to_mn) {
          const Index l = q.pair(r).left;
          if (l != made) make_template(lefts, l, thread);
          made = l;
          score(call, thread, thread, r, s);
        } else {
          for (Index l = count * group / groups; l < count * (group + 1) / groups; ++l) {
            score(call, thread, l, q.form == Form::n_to_m ? (first + l) * q.rights + r : r, s);
          }
        }
      }
    }
  }

  // The largest number of valid pixels of each pair over all shifts.
  void find_most(const device::CallSide<T>& lefts, const device::CallSide<T>& rights, Index first,
                 Index count) {
    const Problem& q = problem_;
    double* most = memory_ + at_.most;
#pragma omp parallel num_threads(threads_) if (threads_ > 1 && q.rights > 1)
    {
      const int thread = omp_get_thread_num();
#pragma omp for schedule(dynamic)
      for (Index r = 0; r < q.rights; ++r) {
        const bool own = q.form == Form::n_to_mn;
        if (own) make_template(lefts, q.pair(r).left, thread);
        for (Index l = 0; l < (own ? 1 : count); ++l) {
          const Index slot = own ? thread : l;
          double largest = 0;
          for (Index t = 0; t < grid_.tiles(); ++t) {
            const Tile tile = tile_of(q, grid_, t);
            Scratch s = scratch(thread);
            s.tile = tile;
            s.facts = copy_part(rights, r, tile.input, q.fields.score.kind, s.planes);
            s.images[kValid].make(s.planes.plane[kValid], tile.input.rows, tile.input.cols);
            if (left_masked()) {
              correlator_.right(thread, kValid, s.planes.plane[kValid], tile.input);
              correlator_.correlate(thread, slot, kValid, kValid, tile, s.surface[kCount]);
            }
            for (Index y = 0; y < tile.outputs.rows; ++y) {
              for (Index x = 0; x < tile.outputs.cols; ++x) {
                largest = std::max(largest, count_at(s, y, x));
              }
            }
          }
          most[q.form == Form::n_to_m ? (first + l) * q.rights + r : r] = largest;
        }
      }
    }
  }

  double count_at(const Scratch& s, Index y, Index x) const {
    if (!right_masked()) return 0;
    if (!left_masked()) return s.images[kValid].sum(y, x, problem_.left.rows, problem_.left.cols);
    return std::nearbyint(static_cast<double>(s.surface[kCount][y * Correlator::pitch(grid_) + x]));
  }

  void prepare(const device::CallSide<T>& rights, Index r, const Tile& tile, int thread,
               Scratch& s) {
    const ScoreKind kind = problem_.fields.score.kind;
    const Index rows = tile.input.rows, cols = tile.input.cols;
    s.tile = tile;
    s.rights = &rights;
    s.right = r;
    s.facts = copy_part(rights, r, tile.input, kind, s.planes);
    if (is_normalised(kind) && !left_masked()) {
      s.images[kValues].make(s.planes.plane[kValues], rows, cols);
      s.images[kSquares].make_of_squares(s.planes.plane[kValues], rows, cols);
      if (right_masked()) s.images[kValid].make(s.planes.plane[kValid], rows, cols);
    }
    s.offset = is_normalised(kind) && !masked() && make_inverses(s);
    std::array<bool, kPlanes> used{};
    for (const Term& term : terms_) used[term.right] |= term.wanted;
    for (int p = 0; p < kPlanes; ++p) {
      if (used[p]) correlator_.right(thread, Plane(p), s.planes.plane[p], tile.input);
    }
  }

  // The outputs of one tile and one template.
  void score(const Call& call, int thread, Index slot, Index pair, const Scratch& s) {
    const Problem& q = problem_;
    const Tile& tile = s.tile;
    const bool exact = s.offset;
    if (exact) {
      correlator_.correlate_in_double(template_planes(slot), s.planes, tile, s.exact);
    }
    for (int t = 0; t < kSums && !exact; ++t) {
      const Term& term = terms_[t];
      if (term.wanted) {
        correlator_.correlate(thread, slot, term.left, term.right, tile, s.surface[t]);
      }
    }
    T* out = call.outs<T>() + pair * q.out_size() + tile.outputs.y * q.out_cols() + tile.outputs.x;
    const Index pitch = Correlator::pitch(grid_);
    for (Index y = 0; y < tile.outputs.rows; ++y) {
      T* to = out + y * q.out_cols();
      if (q.fields.score.kind == ScoreKind::covariance) {
        std::copy_n(s.surface[kProducts] + y * pitch, tile.outputs.cols, to);
      } else if (masked()) {
        for (Index x = 0; x < tile.outputs.cols; ++x) to[x] = masked_score(s, slot, pair, y, x);
      } else if (exact) {
        score_row(s, slot, y, s.exact + y * pitch, to);
      } else {
        score_row(s, slot, y, s.surface[kProducts] + y * pitch, to);
      }
    }
  }

  // Without masks, once per tile for all templates: 1 / norm of each window, or NaN if its squares
  // are those of a constant or have too few digits. Returns true if the mean of a window is too far
  // from the pivot for products in float32.
  bool make_inverses(const Scratch& s) const {
    const Problem& q = problem_;
    const double n = static_cast<double>(q.left.size());
    const double scale = q.fields.score.kind == ScoreKind::zncc ? 1 / n : 0;
    const double least =
        std::max(uncertain(s.facts, n),
                 Correlator::kLeastShare *
                     s.images[kSquares].sum(0, 0, s.tile.input.rows, s.tile.input.cols));
    bool offset = false;
    for (Index y = 0; y < s.tile.outputs.rows; ++y) {
      double* inverses = s.inverses + y * grid_.out_cols;
      for (Index x = 0; x < s.tile.outputs.cols; ++x) {
        const double sum = s.images[kValues].sum(y, x, q.left.rows, q.left.cols);
        const double all = s.images[kSquares].sum(y, x, q.left.rows, q.left.cols);
        const double squares = all - sum * sum * scale;
        const bool sure = squares > least;
        inverses[x] = sure ? 1 / std::sqrt(squares) : std::numeric_limits<double>::quiet_NaN();
        offset |= sure && all > Correlator::kLargestOffset * squares;
      }
    }
    return offset;
  }

  // A row of scores from products in float32 or float64.
  template <typename P>
  void score_row(const Scratch& s, Index slot, Index y, const P* products, T* to) const {
    const Template& left = ready(slot);
    const Index cols = s.tile.outputs.cols;
    if (left.constant) {
      std::fill_n(to, cols, T{0});
      return;
    }
    const double* inverses = s.inverses + y * grid_.out_cols;
    const double inverse = 1 / std::sqrt(left.squares);
    int unsure = 0;
    for (Index x = 0; x < cols; ++x) {
      const double score = static_cast<double>(products[x]) * inverse * inverses[x];
      unsure |= inverses[x] == inverses[x] ? 0 : 1;
      to[x] = static_cast<T>(score > 1 ? 1 : score < -1 ? -1 : score);
    }
    for (Index x = 0; unsure && x < cols; ++x) {
      if (inverses[x] != inverses[x]) to[x] = static_cast<T>(by_definition(s, slot, y, x));
    }
  }

  // The smallest sum of squares that has 20 correct bits (for float64 30) and is not that of a
  // constant: constant_limit with a margin of 4.
  double uncertain(const Facts& facts, double n) const {
    const double pixels = static_cast<double>(grid_.rows * grid_.cols);
    constexpr double kShare = sizeof(T) == sizeof(float) ? 0x1p-26 : 0x1p-16;
    return std::max(kShare * pixels * facts.largest * facts.largest,
                    4 * constant_limit(facts.largest_pixel, n));
  }

  // The score of one window from the unchanged matrices, so that neither the pivot of the tile nor
  // an outlier in it matters.
  double by_definition(const Scratch& s, Index slot, Index y, Index x) const {
    const Problem& q = problem_;
    const Index l = ready(slot).matrix, r = s.right;
    return device::overlap_score(q.fields.score.kind, [&](const auto& use) {
      for (Index i = 0; i < q.left.rows; ++i) {
        const Index right_y = s.tile.input.y + y + i, right_x = s.tile.input.x + x;
        const T *left = s.lefts->row(l, i), *right = s.rights->row(r, right_y) + right_x;
        const std::uint8_t *left_mask = s.lefts->mask_row(l, i),
                           *right_mask = s.rights->mask_row(r, right_y);
        for (Index j = 0; j < q.left.cols; ++j) {
          if (left_mask && !left_mask[j]) continue;
          if (right_mask && !right_mask[right_x + j]) continue;
          use(static_cast<double>(left[j]), static_cast<double>(right[j]));
        }
      }
    });
  }

  T masked_score(const Scratch& s, Index slot, Index pair, Index y, Index x) const {
    const Problem& q = problem_;
    const Template& left = ready(slot);
    const Index at = y * Correlator::pitch(grid_) + x;
    const bool by_left = left_masked(), by_right = right_masked();
    const double n = by_right ? count_at(s, y, x) : left.facts.count;
    const double most = by_right ? memory_[at_.most + pair] : left.facts.count;
    if (n < std::max(1.0, q.fields.score.min_overlap * most)) return 0;
    const auto of = [&](Sum sum) { return static_cast<double>(s.surface[sum][at]); };
    const auto box = [&](Plane p) { return s.images[p].sum(y, x, q.left.rows, q.left.cols); };
    const double l = by_right ? of(kLeftSum) : 0, ll = by_right ? of(kLeftSquares) : left.squares;
    const double r = by_left ? of(kRightSum) : box(kValues);
    const double rr = by_left ? of(kRightSquares) : box(kSquares);
    const double scale = q.fields.score.kind == ScoreKind::zncc ? 1 / n : 0;
    const double left_squares = ll - l * l * scale, right_squares = rr - r * r * scale;
    if (!(left_squares > uncertain(left.facts, n)) || !(right_squares > uncertain(s.facts, n))) {
      return static_cast<T>(by_definition(s, slot, y, x));
    }
    const double score =
        (of(kProducts) - l * r * scale) / (std::sqrt(left_squares) * std::sqrt(right_squares));
    return static_cast<T>(std::clamp(score, -1.0, 1.0));
  }

  Problem problem_;
  TileGrid grid_;
  std::array<Term, kSums> terms_;
  Layout at_;
  int threads_;
  double* memory_;
  Correlator correlator_;
};

// The .workspace_bytes and .plan of a variant. kGrid(request) divides a surface into tiles. All sums
// are float64 if kInDouble(problem), else they have the scalar type of the request.
template <template <typename> class CorrelatorOf, auto kGrid, auto kInDouble>
struct TilesVariant {
  static std::size_t workspace_bytes(const PlanRequest& request) {
    return device::with_scalar(request.precision, [&]<typename T>(T) {
      return kInDouble(request.problem)
                 ? TilesPlan<T, double, CorrelatorOf>::workspace_bytes(request, kGrid(request))
                 : TilesPlan<T, T, CorrelatorOf>::workspace_bytes(request, kGrid(request));
    });
  }
  static std::unique_ptr<Plan> plan(const PlanRequest& request) {
    return device::with_scalar(request.precision, [&]<typename T>(T) -> std::unique_ptr<Plan> {
      if (kInDouble(request.problem)) {
        return std::make_unique<TilesPlan<T, double, CorrelatorOf>>(request, kGrid(request));
      }
      return std::make_unique<TilesPlan<T, T, CorrelatorOf>>(request, kGrid(request));
    });
  }
};

}  // namespace xcorr::template_matching
