// Row distributions of split-row (paper section 4.2.1, thesis 3.4.2). Each overlap is cut into
// stripes of at most `rows_per_task` rows. RowDistribution computes the stripe of a task exactly, the
// same on the host, where it is tested, and on the device: triangular_root corrects its float root.
//
//   none       one stripe per overlap: nothing is split
//   rectangle  as many tasks for every overlap as the tallest overlap has stripes; some are empty
//   triangle   exactly one task per stripe
//
// Over the shifts sy of the full window the height of an overlap rises by one from 1 to H, stays
// constant, and falls to 1. H is min(left rows, right rows), r is `rows_per_task`, and q is h / r.
// The number of stripes of the first h shifts is
//
//   T(h) = ceil(1/r) + ... + ceil(h/r) = r q (q + 1) / 2 + (h mod r) (q + 1)
//
// The shift of a task on the rising side is the inverse of this: all heights in (r q, r (q + 1)]
// have q + 1 stripes, and q is the largest number whose triangular number is at most task / r. The
// falling side is the mirror image. A partial window starts inside the full window.
#pragma once

#include <algorithm>
#include <cmath>

#include "algorithms/blocks/divide.hpp"
#include "algorithms/blocks/overlap_geometry.hpp"

namespace xcorr::device {

__host__ __device__ constexpr std::uint32_t triangular(std::uint32_t q) { return q * (q + 1) / 2; }

// The largest q with triangular(q) <= n, exact for n <= 2^30. sqrt(2 n) is above q and below
// q + 3/2. These margins exceed the rounding error of a float, so that its integer part is q or
// q + 1.
__host__ __device__ inline std::uint32_t triangular_root(std::uint32_t n) {
  const auto q = static_cast<std::uint32_t>(std::sqrt(2.0f * static_cast<float>(n)));
  return triangular(q) > n ? q - 1 : q;
}

// Left rows [first, end) of the overlap of one output row; empty for an unused task.
struct Stripe {
  int row = 0;  // output row
  int first = 0;
  int end = 0;
  bool whole = false;  // no other task has rows of this overlap
};

// The products of a stripe of one row take about 150 instructions, so that the search for the
// stripe must be short: it uses 32-bit numbers and divisors prepared on the host.
class RowDistribution {
 public:
  enum class Kind { none, rectangle, triangle };
  static Kind parse(const std::string& name) {
    return name == "none" ? Kind::none : name == "rectangle" ? Kind::rectangle : Kind::triangle;
  }

  // `rows_per_task` is ignored for Kind::none.
  RowDistribution(const Problem& q, Kind kind, Index rows_per_task)
      : left_last_(static_cast<int>(q.left.rows - 1)),
        last_(static_cast<int>(q.left.rows + q.right.rows - 2)),
        limit_(static_cast<int>(std::min(q.left.rows, q.right.rows))),
        first_(static_cast<int>(q.window.sy.first + q.left.rows - 1)),
        by_shifts_(q.out_rows()) {
    const int ramp = limit_ - 1;  // shifts on either side whose overlaps are lower
    const int end = first_ + static_cast<int>(q.out_rows());
    const Index tallest =
        std::max({height(first_), height(end - 1), first_ <= ramp && end > ramp ? ramp + 1 : 0});
    const Index rows = kind == Kind::none ? tallest : std::min(rows_per_task, tallest);
    rows_ = static_cast<int>(rows);
    tasks_ = all_ = q.out_rows() * ceil_div(tallest, rows);
    splits_ = tallest > rows;
    if (kind != Kind::triangle || !splits_) return;
    triangle_ = true;
    all_ = stripes_before(last_ + 1);
    const Index skipped = stripes_before(first_);
    tasks_ = stripes_before(end) - skipped;
    by_rows_ = Divider(rows);
    by_tall_ = Divider(ceil_div<Index>(limit_, rows));
    ramp_stripes_ = static_cast<std::uint32_t>(rising_stripes(ramp));
    all_stripes_ = static_cast<std::uint32_t>(all_);
    skipped_ = static_cast<std::uint32_t>(skipped);
  }

  Index tasks() const { return tasks_; }
  // Whether an overlap has several stripes, so that outputs are sums over tasks.
  bool splits() const { return splits_; }
  // Whether the stripes are within the limit of triangular_root.
  Support fits() const {
    if (all_ > Index{1} << 30) return no("more than 2^30 stripes of rows");
    return yes();
  }

  // The stripe of a task, 0 .. tasks() - 1.
  __host__ __device__ __forceinline__ Stripe stripe(int task) const {
    const auto n = static_cast<std::uint32_t>(task);
    return triangle_ ? triangle(n + skipped_) : rectangle(n);
  }

 private:
  // The height of the overlap at shift number k of the full window.
  __host__ __device__ int height(int k) const {
    const int rising = k + 1, falling = last_ + 1 - k;
    const int lower = rising < falling ? rising : falling;
    return lower < limit_ ? lower : limit_;
  }

  // T(h).
  Index rising_stripes(Index h) const {
    const Index q = h / rows_;
    return rows_ * q * (q + 1) / 2 + h % rows_ * (q + 1);
  }
  // The number of stripes of shifts 0 .. k - 1 of the full window.
  Index stripes_before(Index k) const {
    const Index ramp = limit_ - 1, plateau = last_ + 1 - 2 * ramp;
    const Index tall = ceil_div(limit_, rows_);
    if (k <= ramp) return rising_stripes(k);
    if (k <= ramp + plateau) return rising_stripes(ramp) + (k - ramp) * tall;
    return 2 * rising_stripes(ramp) + plateau * tall - rising_stripes(last_ + 1 - k);
  }

  // Stripe `n` of the overlap at shift number `k` of the full window.
  __host__ __device__ __forceinline__ Stripe cut(int k, int n) const {
    const int sy = k - left_last_, tall = height(k);
    const int skipped = n * rows_ < tall ? n * rows_ : tall;
    const int begin = (sy < 0 ? -sy : 0) + skipped, rest = tall - skipped;
    return {k - first_, begin, begin + (rest < rows_ ? rest : rows_), tall <= rows_};
  }

  __host__ __device__ __forceinline__ Stripe rectangle(std::uint32_t task) const {
    const std::uint32_t n = by_shifts_.split(task);
    return cut(first_ + static_cast<int>(task), static_cast<int>(n));
  }

  __host__ __device__ __forceinline__ Stripe triangle(std::uint32_t task) const {
    if (task >= ramp_stripes_ && task < all_stripes_ - ramp_stripes_) {
      task -= ramp_stripes_;
      const std::uint32_t k = by_tall_.split(task);
      return cut(limit_ - 1 + static_cast<int>(k), static_cast<int>(task));
    }
    const bool falls = task >= ramp_stripes_;
    std::uint32_t rest = falls ? all_stripes_ - 1 - task : task;
    const std::uint32_t q = triangular_root(by_rows_.quotient(rest));
    rest -= by_rows_.by * triangular(q);
    std::uint32_t up = 0;
    if (by_rows_.by > 1) {  // else every q has a single height
      up = rest / (q + 1);
      rest -= up * (q + 1);
    }
    const auto k = static_cast<int>(q * by_rows_.by + up);
    return cut(falls ? last_ - k : k, static_cast<int>(rest));
  }

  int left_last_, last_;  // last left row; last shift number of the full window
  int limit_;             // height of the tallest overlap of the full window
  int first_;             // shift number of the first output row
  int rows_ = 1;
  bool splits_ = false, triangle_ = false;
  std::uint32_t ramp_stripes_ = 0, all_stripes_ = 0, skipped_ = 0;
  Divider by_shifts_, by_rows_, by_tall_;
  Index tasks_ = 0, all_ = 0;
};

// Parameters and limits of variants that split rows.
inline Axis distribution_axis() { return {"distribution", {"none", "rectangle", "triangle"}}; }
inline Drop distribution_drop() { return {"distribution", "none", "rows_per_thread"}; }
inline RowDistribution row_distribution(const PlanRequest& request) {
  const Params& params = request.params;
  return {request.problem, RowDistribution::parse(params.get("distribution")),
          params.has("rows_per_thread") ? params.get_int("rows_per_thread") : 0};
}
inline Support stripes_fit(const PlanRequest& request) {
  // Parts of rows are sums of their own, which atomic additions join.
  const Support steps = request.params.get("distribution") == "none" ? one_sum_fits(request)
                                                                     : steps_fit(request.problem);
  return steps ? row_distribution(request).fits() : steps;
}

}  // namespace xcorr::device
