// Reduction of surfaces on the host. Threads share the pairs, or the rows of a surface where pairs
// are few.
#include <omp.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "harness/reduce/reduce.hpp"
#include "harness/reduce/reduce_rules.hpp"
#include "harness/registry.hpp"

namespace xcorr {
namespace {

using namespace reduce;

// Calls step(pair) for all pairs.
template <typename F>
void each_pair(const Problem& problem, F&& step) {
  const Index pairs = problem.pairs();
#pragma omp parallel for schedule(static) if (pairs >= omp_get_max_threads())
  for (Index p = 0; p < pairs; ++p) step(p);
}

// Calls step(row) for all rows of a surface, with all threads where it is large and threads do not
// share the pairs.
template <typename T, typename F>
void each_row(const Surface<T>& s, F&& step) {
  constexpr Index kLarge = Index{1} << 15;
#pragma omp parallel for schedule(static) if (!omp_in_parallel() && s.size() >= kLarge)
  for (Index row = 0; row < s.rows; ++row) step(row);
}

template <typename T, typename Filter>
Candidate best_of(const Surface<T>& s, const Filter& filter) {
  std::vector<Candidate> of_rows(static_cast<std::size_t>(s.rows));
  each_row(s, [&](Index row) {
    Candidate best;
    for (Index at = row * s.cols; at < (row + 1) * s.cols; ++at) {
      const Candidate here{static_cast<double>(s.data[at]), at};
      if (comes_before(here, best) && filter(s, at)) best = here;
    }
    of_rows[static_cast<std::size_t>(row)] = best;
  });
  return *std::min_element(of_rows.begin(), of_rows.end(), comes_before);
}

template <typename T>
bool all_finite(const Surface<T>& s) {
  std::vector<char> of_rows(static_cast<std::size_t>(s.rows));
  each_row(s, [&](Index row) {
    const T* const data = s.data + row * s.cols;
    of_rows[static_cast<std::size_t>(row)] =
        std::all_of(data, data + s.cols, [](T v) { return is_finite(v); });
  });
  return std::all_of(of_rows.begin(), of_rows.end(), [](char finite) { return finite != 0; });
}

// Weights of peak:upsample=u along one axis: [length][points].
std::vector<double> weights(const Upsampling& up, Index length) {
  std::vector<double> table(static_cast<std::size_t>(length * up.points()));
  for (Index d = 0; d < length; ++d) {
    for (Index i = 0; i < up.points(); ++i) {
      table[static_cast<std::size_t>(d * up.points() + i)] = up.weight(d, length, i);
    }
  }
  return table;
}

template <typename T>
void interpolate(const Surface<T>& s, Index at, const Upsampling& up,
                 const std::vector<double>& of_rows, const std::vector<double>& of_cols,
                 Peak& peak) {
  const Index points = up.points(), row = at / s.cols, col = at % s.cols;
  const auto sized = [](Index count) {
    return std::vector<double>(static_cast<std::size_t>(count));
  };
  const auto axpy = [points](double factor, const double* x, double* y) {
    for (Index i = 0; i < points; ++i) y[i] += factor * x[i];
  };
  std::vector<double> along = sized(s.rows * points);  // [rows][points along x]
  each_row(s, [&](Index y) {
    for (Index x = 0; x < s.cols; ++x) {
      const Index distance = (x - col + s.cols) % s.cols;
      axpy(s.data[y * s.cols + x], of_cols.data() + distance * points, along.data() + y * points);
    }
  });
  Candidate best;
  for (Index i = 0; i < points; ++i) {
    std::vector<double> line = sized(points);
    for (Index y = 0; y < s.rows; ++y) {
      const Index distance = (y - row + s.rows) % s.rows;
      axpy(of_rows[static_cast<std::size_t>(distance * points + i)], along.data() + y * points,
           line.data());
    }
    for (Index j = 0; j < points; ++j) {
      const Candidate here{line[static_cast<std::size_t>(j)], i * points + j};
      if (comes_before(here, best)) best = here;
    }
  }
  up.place(s, best.at, peak);
}

template <typename T>
void reduce_peak(const Problem& problem, const T* all, Peak* out) {
  const Result& result = problem.fields.result;
  const bool upsample = result.sub_pixel == SubPixel::upsample;
  const Upsampling up{result.upsample};
  std::vector<double> of_rows, of_cols;
  if (upsample)
    of_rows = weights(up, problem.out_rows()), of_cols = weights(up, problem.out_cols());
  each_pair(problem, [&](Index p) {
    const Surface<T> s = surface_of(problem, all, p);
    const Candidate best = best_of(s, AnyNumber{});
    const bool finite = all_finite(s);
    Peak peak = make_peak(s, best, result.sub_pixel, finite);
    if (best.at >= 0) {
      const Candidate second = best_of(s, FarMaximum{best.at});
      if (second.at >= 0) peak.second = static_cast<float>(second.value);
      if (upsample && finite) interpolate(s, best.at, up, of_rows, of_cols, peak);
    }
    out[p] = peak;
  });
}

template <typename T>
void reduce_peaks(const Problem& problem, const T* all, Peak* out) {
  const int count = problem.fields.result.count;
  each_pair(problem, [&](Index p) {
    const Surface<T> s = surface_of(problem, all, p);
    const bool finite = all_finite(s);
    Candidate previous;
    for (int k = 0; k < count; ++k) {
      // After the last one there is none to look for.
      const Candidate best =
          k > 0 && previous.at < 0 ? Candidate{} : best_of(s, NextMaximum{previous});
      out[p * count + k] = make_peak(s, best, SubPixel::parabola, finite);
      previous = best;
    }
  });
}

// The median of f(output) over the outputs for which that is a number; NaN where there is none.
template <typename T, typename F>
double median_of(const Surface<T>& s, F&& f) {
  using Key = decltype(ordered(T{}));
  Selection<Key> selection;
  std::uint64_t numbers = 0, lower_rank = 0;
  for (bool first = true; !selection.done(); first = false) {
    std::uint64_t histogram[kDigits] = {};
    for (Index at = 0; at < s.size(); ++at) {
      const T value = f(s.data[at]);
      if (is_nan(value)) continue;
      const Key key = ordered(value);
      if (selection.matches(key)) ++histogram[selection.digit(key)];
    }
    if (first) {
      for (const std::uint64_t count : histogram) numbers += count;
      if (numbers == 0) return std::numeric_limits<double>::quiet_NaN();
      selection.rank = lower_rank = (numbers - 1) / 2;
    }
    selection.step(histogram);
  }
  const T lower = from_ordered(selection.found);
  // Numbers up to and including the lower one.
  const std::uint64_t up_to = lower_rank - selection.rank + selection.equal;
  T upper = lower;
  if (numbers / 2 >= up_to) {
    upper = std::numeric_limits<T>::infinity();
    for (Index at = 0; at < s.size(); ++at) {
      const T value = f(s.data[at]);
      if (value > lower && value < upper) upper = value;
    }
  }
  return middle(lower, upper);
}

template <typename T>
double threshold_of(const Problem& problem, const Surface<T>& s) {
  const Result& result = problem.fields.result;
  if (!result.of_deviations) return result.threshold;
  const double median = median_of(s, [](T v) { return v; });
  const double deviations = median_of(s, [&](T v) { return deviation(v, median); });
  return median + result.threshold * deviations;
}

// Detections lie in the order of (pair, sy, sx).
template <typename T>
void reduce_above(const Problem& problem, const T* all, void* out) {
  std::vector<double> thresholds(static_cast<std::size_t>(problem.pairs()));
  std::vector<std::uint64_t> firsts(thresholds.size() + 1);
  const Index distance = problem.fields.result.distance;
  each_pair(problem, [&](Index p) {
    const Surface<T> s = surface_of(problem, all, p);
    const double threshold = threshold_of(problem, s);
    thresholds[static_cast<std::size_t>(p)] = threshold;
    std::uint64_t count = 0;
    for (Index at = 0; at < s.size(); ++at) {
      count += s.data[at] >= threshold && is_first_within(s, at, distance);
    }
    firsts[static_cast<std::size_t>(p) + 1] = count;
  });
  for (std::size_t p = 0; p < thresholds.size(); ++p) firsts[p + 1] += firsts[p];
  *static_cast<AboveHeader*>(out) = {firsts.back(), 0};
  auto* const detections = reinterpret_cast<Detection*>(static_cast<AboveHeader*>(out) + 1);
  const auto capacity = static_cast<std::uint64_t>(problem.fields.result.capacity);
  each_pair(problem, [&](Index p) {
    const Surface<T> s = surface_of(problem, all, p);
    std::uint64_t slot = firsts[static_cast<std::size_t>(p)];
    for (Index at = 0; at < s.size() && slot < capacity; ++at) {
      if (!(s.data[at] >= thresholds[static_cast<std::size_t>(p)])) continue;
      if (!is_first_within(s, at, distance)) continue;
      detections[slot++] = make_detection(s, p, at);
    }
  });
}

template <typename T>
void reduce_sum(const Problem& problem, const T* all, double* out) {
  each_pair(problem, [&](Index p) {
    const Surface<T> s = surface_of(problem, all, p);
    double lanes[kLanes] = {};
    for (Index first = 0; first < s.size(); first += kLanes) {
      const Index count = std::min<Index>(kLanes, s.size() - first);
      for (Index i = 0; i < count; ++i) lanes[i] += static_cast<double>(s.data[first + i]);
    }
    for (int half = kLanes / 2; half > 0; half /= 2) {
      for (int i = 0; i < half; ++i) lanes[i] += lanes[i + half];
    }
    out[p] = lanes[0];
  });
}

template <typename T>
void reduce_surfaces(const Problem& problem, const T* all, void* out) {
  switch (problem.fields.result.kind) {
    case ResultKind::peak:
      return reduce_peak(problem, all, static_cast<Peak*>(out));
    case ResultKind::peaks:
      return reduce_peaks(problem, all, static_cast<Peak*>(out));
    case ResultKind::above:
      return reduce_above(problem, all, out);
    case ResultKind::sum:
      return reduce_sum(problem, all, static_cast<double*>(out));
    case ResultKind::surface:
      std::copy(all, all + problem.out_elements(), static_cast<T*>(out));
  }
}

}  // namespace

void reduce_on_cpu(const Problem& problem, Precision precision, const void* surface, void*,
                   void* out) {
  if (scalar_bytes(precision) == sizeof(double)) {
    return reduce_surfaces(problem, static_cast<const double*>(surface), out);
  }
  reduce_surfaces(problem, static_cast<const float*>(surface), out);
}

}  // namespace xcorr
