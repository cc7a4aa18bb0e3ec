// Row distributions of split-row (paper section 4.2.1, thesis 3.4.2): each overlap is cut into
// stripes of at most `rows_per_task` rows, and this says which stripe a task computes. Pure integer
// arithmetic, the same on the host, where it is tested, and on the device.
//
//   none       one stripe for each overlap: nothing is split
//   rectangle  as many tasks for every overlap as the tallest one has stripes; the surplus is idle
//   triangle   exactly one task for each stripe
//
// Over the shifts sy of the full window the height of an overlap rises by one from 1 to
// H = min(left rows, right rows), stays there, and falls to 1. So the stripes of the first h shifts
// are T(h) = ceil(1/r) + ... + ceil(h/r) = r q (q + 1) / 2 + (h mod r) (q + 1) with q = h / r, and
// the shift of a task on the rising side comes from inverting that: all heights in (r q, r (q + 1)]
// have q + 1 stripes, and q is the largest number whose triangular number is at most task / r. The
// falling side is its mirror image, a partial window starts somewhere in the full one.
#pragma once

#include <algorithm>
#include <cmath>

#include "algorithms/device/overlap_geometry.hpp"

namespace xcorr {

__host__ __device__ constexpr std::uint64_t triangular(std::uint32_t q) {
  return static_cast<std::uint64_t>(q) * (q + std::uint64_t{1}) / 2;
}

// The largest q with triangular(q) <= n, exact for n < 2^31. sqrt(2 n) lies above q and below
// q + 3/2, by margins that the rounding of a float does not reach, so its integer part is q or one
// too many.
__host__ __device__ inline std::uint32_t triangular_root(std::uint32_t n) {
  const auto q = static_cast<std::uint32_t>(std::sqrt(2.0f * static_cast<float>(n)));
  return triangular(q) > n ? q - 1 : q;
}

// Left rows [first, end) of the overlap of one output row; empty for a surplus task.
struct Stripe {
  int row = 0;  // of the output
  int first = 0;
  int end = 0;
  bool whole = false;  // no other task has rows of this overlap
};

class RowDistribution {
 public:
  enum class Kind { none, rectangle, triangle };
  static Kind parse(const std::string& name) {
    return name == "none" ? Kind::none : name == "rectangle" ? Kind::rectangle : Kind::triangle;
  }

  // `rows_per_task` is not read for Kind::none.
  RowDistribution(const Problem& q, Kind kind, Index rows_per_task)
      : left_(q.left.rows), right_(q.right.rows), sy_(q.window.sy), triangle_(false) {
    const Index ramp = height_limit() - 1;  // shifts on either side whose overlaps are lower
    const Index first = sy_.first + left_ - 1, end = sy_.last + left_;
    const Index tallest =
        std::max({height(first), height(end - 1), first <= ramp && end > ramp ? ramp + 1 : 0});
    rows_ = kind == Kind::none ? tallest : std::min(rows_per_task, tallest);
    tasks_ = q.out_rows() * ceil_div(tallest, rows_);
    splits_ = tallest > rows_;
    if (kind != Kind::triangle || !splits_) return;
    triangle_ = true;
    ramp_stripes_ = rising_stripes(ramp);
    all_stripes_ = stripes_before(full_shifts());
    skipped_ = stripes_before(first);
    tasks_ = stripes_before(end) - skipped_;
  }

  Index tasks() const { return tasks_; }
  __device__ int task_count() const { return static_cast<int>(tasks_); }
  // Whether any overlap has several stripes, so that outputs are sums over tasks.
  bool splits() const { return splits_; }
  // Tasks are numbered in 32 bits.
  Support fits() const {
    constexpr Index kLimit = (Index{1} << 31) - 1;
    if (std::max(tasks_, all_stripes_) > kLimit) return no("more than 2^31 - 1 stripes of rows");
    return yes();
  }

  // The stripe of task 0 .. tasks() - 1.
  __host__ __device__ Stripe stripe(int task) const {
    const auto n = static_cast<std::uint32_t>(task);
    return triangle_ ? triangle(n) : rectangle(n);
  }

 private:
  __host__ __device__ Index height_limit() const { return left_ < right_ ? left_ : right_; }
  __host__ __device__ Index full_shifts() const { return left_ + right_ - 1; }
  // Of the overlap at shift number k of the full window.
  __host__ __device__ Index height(Index k) const {
    const Index rising = k + 1, falling = full_shifts() - k, limit = height_limit();
    const Index lower = rising < falling ? rising : falling;
    return lower < limit ? lower : limit;
  }

  // T(h).
  Index rising_stripes(Index h) const {
    const Index q = h / rows_;
    return rows_ * q * (q + 1) / 2 + h % rows_ * (q + 1);
  }
  // Of shifts 0 .. k - 1 of the full window.
  Index stripes_before(Index k) const {
    const Index ramp = height_limit() - 1, plateau = full_shifts() - 2 * ramp;
    const Index tall = ceil_div(height_limit(), rows_);
    if (k <= ramp) return rising_stripes(k);
    if (k <= ramp + plateau) return rising_stripes(ramp) + (k - ramp) * tall;
    return 2 * rising_stripes(ramp) + plateau * tall - rising_stripes(full_shifts() - k);
  }

  // Stripe number `n` of the overlap at shift number `k` of the full window.
  __host__ __device__ Stripe cut(int k, int n) const {
    const int sy = k - static_cast<int>(left_ - 1);
    const int tall = static_cast<int>(height(k)), rows = static_cast<int>(rows_);
    const int begin = sy < 0 ? -sy : 0;
    // In this order a surplus stripe cannot overflow.
    const int skipped = n < ceil_div(tall, rows) ? n * rows : tall;
    const int count = tall - skipped < rows ? tall - skipped : rows;
    return {sy - static_cast<int>(sy_.first), begin + skipped, begin + skipped + count,
            tall <= rows};
  }

  __host__ __device__ Stripe rectangle(std::uint32_t task) const {
    const auto shifts = static_cast<std::uint32_t>(sy_.count());
    const std::uint32_t n = task / shifts;
    return cut(static_cast<int>(sy_.first + left_ - 1) + static_cast<int>(task - n * shifts),
               static_cast<int>(n));
  }

  __host__ __device__ Stripe triangle(std::uint32_t task) const {
    const auto rows = static_cast<std::uint32_t>(rows_);
    const auto ramp = static_cast<std::uint32_t>(ramp_stripes_);
    const auto all = static_cast<std::uint32_t>(all_stripes_);
    task += static_cast<std::uint32_t>(skipped_);
    if (task >= ramp && task < all - ramp) {
      const auto tall = static_cast<std::uint32_t>(height_limit());
      const std::uint32_t stripes = ceil_div(tall, rows), k = (task - ramp) / stripes;
      return cut(static_cast<int>(tall - 1 + k), static_cast<int>(task - ramp - k * stripes));
    }
    const bool falls = task >= ramp;
    const std::uint32_t mirrored = falls ? all - 1 - task : task;
    const std::uint32_t q = triangular_root(mirrored / rows);
    const std::uint32_t rest = mirrored - rows * static_cast<std::uint32_t>(triangular(q));
    const std::uint32_t up = rest / (q + 1), k = q * rows + up;
    const auto last = static_cast<std::uint32_t>(full_shifts() - 1);
    return cut(static_cast<int>(falls ? last - k : k), static_cast<int>(rest - up * (q + 1)));
  }

  Index left_, right_;  // rows
  Shifts sy_;
  Index rows_ = 1, tasks_ = 0;
  Index ramp_stripes_ = 0, all_stripes_ = 0, skipped_ = 0;
  bool splits_ = false, triangle_;
};

// The parameters and limits of variants that split rows.
inline Axis distribution_axis() { return {"distribution", {"none", "rectangle", "triangle"}}; }
inline Drop distribution_drop() { return {"distribution", "none", "rows_per_thread"}; }
inline RowDistribution row_distribution(const PlanRequest& request) {
  const Params& params = request.params;
  return {request.problem, RowDistribution::parse(params.get("distribution")),
          params.has("rows_per_thread") ? params.get_int("rows_per_thread") : 0};
}
inline Support stripes_fit(const PlanRequest& request) {
  const Support steps = steps_fit(request.problem);
  return steps ? row_distribution(request).fits() : steps;
}

}  // namespace xcorr
