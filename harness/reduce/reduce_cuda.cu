// Reduction of surfaces on a GPU. A block takes one pair after the other. Where few pairs have
// large surfaces, blocks share a surface for its peaks (SurfaceShares) and a later kernel combines
// their findings. Every result but the order of detections is the same in every run.
#include <algorithm>

#include "harness/device/cuda_check.hpp"
#include "harness/reduce/reduce.hpp"
#include "harness/reduce/reduce_rules.hpp"
#include "harness/registry.hpp"

namespace xcorr {
namespace {

using namespace reduce;

// One thread for each lane of a sum.
constexpr int kThreads = kLanes;
// Blocks of scans for peaks on a multiprocessor, whose waits hide each other.
constexpr int kResident = 6;
constexpr unsigned kWarp = 32, kAllLanes = 0xffffffffu;

// The first candidate of all threads in the order of peaks, returned to all threads.
__device__ Candidate first_of_block(Candidate mine) {
  __shared__ double values[kThreads / kWarp];
  __shared__ Index places[kThreads / kWarp];
  for (unsigned step = kWarp / 2; step > 0; step /= 2) {
    const Candidate other{__shfl_down_sync(kAllLanes, mine.value, step),
                          __shfl_down_sync(kAllLanes, mine.at, step)};
    if (comes_before(other, mine)) mine = other;
  }
  __syncthreads();  // the previous call may still be read
  if (threadIdx.x % kWarp == 0) {
    values[threadIdx.x / kWarp] = mine.value;
    places[threadIdx.x / kWarp] = mine.at;
  }
  __syncthreads();
  Candidate first{values[0], places[0]};
  for (unsigned warp = 1; warp < kThreads / kWarp; ++warp) {
    const Candidate other{values[warp], places[warp]};
    if (comes_before(other, first)) first = other;
  }
  return first;
}

// Outputs of a surface one after the other.
struct Range {
  Index first, end;
};
template <typename T>
__device__ Range whole(const Surface<T>& s) {
  return {0, s.size()};
}

// Calls visit(place, output) for a range, shared by the threads. Loads of a batch are in flight
// together.
template <typename T, typename F>
__device__ void each_output(const Surface<T>& s, Range range, F&& visit) {
  constexpr int kBatch = 4;
  Index at = range.first + threadIdx.x;
  for (; at + (kBatch - 1) * kThreads < range.end; at += kBatch * kThreads) {
    T values[kBatch];
#pragma unroll
    for (int i = 0; i < kBatch; ++i) values[i] = s.data[at + i * kThreads];
#pragma unroll
    for (int i = 0; i < kBatch; ++i) visit(at + i * kThreads, values[i]);
  }
  for (; at < range.end; at += kThreads) visit(at, s.data[at]);
}

// The first output of a range in the order of peaks that passes the filter, and whether all outputs
// of the range are finite.
struct Scan {
  Candidate best;
  bool finite;
};
template <typename T, typename Filter>
__device__ Scan scan(const Surface<T>& s, Range range, const Filter& filter) {
  Candidate best;
  int finite = 1;
  each_output(s, range, [&](Index at, T value) {
    finite &= is_finite(value);
    const Candidate here{static_cast<double>(value), at};
    if (comes_before(here, best) && filter(s, at)) best = here;
  });
  best = first_of_block(best);
  return {best, __syncthreads_and(finite) != 0};
}

template <typename T, typename Filter>
__device__ Candidate best_of(const Surface<T>& s, Range range, const Filter& filter) {
  Candidate best;
  each_output(s, range, [&](Index at, T value) {
    const Candidate here{static_cast<double>(value), at};
    if (comes_before(here, best) && filter(s, at)) best = here;
  });
  return first_of_block(best);
}

template <typename T>
__device__ Peak peak_of(const Surface<T>& s, const Scan& largest, const Candidate& second,
                        SubPixel sub_pixel) {
  Peak peak = make_peak(s, largest.best, sub_pixel, largest.finite);
  if (second.at >= 0) peak.second = static_cast<float>(second.value);
  return peak;
}

template <typename T>
__global__ void __launch_bounds__(kThreads, kResident)
    reduce_peak(Geometry problem, SubPixel sub_pixel, const T* all, Peak* out) {
  for (Index p = blockIdx.x; p < problem.pairs(); p += gridDim.x) {
    const Surface<T> s = surface_of(problem, all, p);
    const Scan largest = scan(s, whole(s), AnyNumber{});
    const Index at = largest.best.at;
    const Candidate second = at < 0 ? Candidate{} : best_of(s, whole(s), FarMaximum{at});
    if (threadIdx.x == 0) out[p] = peak_of(s, largest, second, sub_pixel);
  }
}

template <typename T>
__global__ void __launch_bounds__(kThreads, kResident)
    reduce_peaks(Geometry problem, int count, const T* all, Peak* out) {
  for (Index p = blockIdx.x; p < problem.pairs(); p += gridDim.x) {
    const Surface<T> s = surface_of(problem, all, p);
    const auto [largest, finite] = scan(s, whole(s), NextMaximum{});
    Candidate best = largest;
    for (int k = 0; k < count; ++k) {
      // After the last one there is none to look for.
      if (k > 0 && best.at >= 0) best = best_of(s, whole(s), NextMaximum{best});
      if (threadIdx.x == 0) out[p * count + k] = make_peak(s, best, SubPixel::parabola, finite);
    }
  }
}

// Blocks (share, pair) and their findings for the next kernel. Pairs are so few that the grid holds
// them all.
struct Shares {
  Index count, outputs;
  Candidate*
      found;      // [2][pairs][count]: a scan never writes where it reads those of the one before
  Index* finite;  // [pairs][count]

  template <typename T>
  __device__ Range of_block(const Surface<T>& s) const {
    const Index first = blockIdx.x * outputs;
    return {first, std::min(first + outputs, s.size())};
  }
  __device__ Index first_share(int scan) const {
    return (scan % 2 * Index{gridDim.y} + blockIdx.y) * count;
  }
  __device__ void put(int scan, const Candidate& best) const {
    if (threadIdx.x == 0) found[first_share(scan) + blockIdx.x] = best;
  }
  // The first of the findings of an earlier scan of the surface, for all threads.
  __device__ Candidate best(int scan) const {
    Candidate best;
    for (Index i = threadIdx.x; i < count; i += kThreads) {
      const Candidate here = found[first_share(scan) + i];
      if (comes_before(here, best)) best = here;
    }
    return first_of_block(best);
  }
  __device__ bool all_finite() const {
    int all = 1;
    for (Index i = threadIdx.x; i < count; i += kThreads) all &= finite[first_share(0) + i] != 0;
    return __syncthreads_and(all) != 0;
  }
};

template <typename T, typename Filter>
__global__ void __launch_bounds__(kThreads, kResident)
    scan_shares(Geometry problem, Shares shares, Filter filter, const T* all) {
  const Surface<T> s = surface_of(problem, all, Index{blockIdx.y});
  const auto [best, finite] = scan(s, shares.of_block(s), filter);
  shares.put(0, best);
  if (threadIdx.x == 0) shares.finite[shares.first_share(0) + blockIdx.x] = finite;
}

template <typename T>
__global__ void __launch_bounds__(kThreads, kResident)
    find_second(Geometry problem, Shares shares, const T* all) {
  const Surface<T> s = surface_of(problem, all, Index{blockIdx.y});
  const Index at = shares.best(0).at;
  shares.put(1, at < 0 ? Candidate{} : best_of(s, shares.of_block(s), FarMaximum{at}));
}

template <typename T>
__global__ void write_peak(Geometry problem, Shares shares, SubPixel sub_pixel, const T* all,
                           Peak* out) {
  const Surface<T> s = surface_of(problem, all, Index{blockIdx.y});
  const Scan largest{shares.best(0), shares.all_finite()};
  const Candidate second = shares.best(1);
  if (threadIdx.x == 0) out[blockIdx.y] = peak_of(s, largest, second, sub_pixel);
}

// Writes record k - 1 of peaks and looks for record k, unless k - 1 is the last.
template <typename T>
__global__ void __launch_bounds__(kThreads, kResident)
    find_next(Geometry problem, Shares shares, int k, int count, const T* all, Peak* out) {
  const Surface<T> s = surface_of(problem, all, Index{blockIdx.y});
  const Candidate previous = shares.best(k - 1);
  if (blockIdx.x == 0) {
    const bool finite = shares.all_finite();
    Peak* const record = out + Index{blockIdx.y} * count + k - 1;
    if (threadIdx.x == 0) *record = make_peak(s, previous, SubPixel::parabola, finite);
  }
  if (k == count) return;
  // After the last one there is none to look for.
  const bool any = previous.at >= 0;
  shares.put(k, any ? best_of(s, shares.of_block(s), NextMaximum{previous}) : Candidate{});
}

__global__ void fill_weights(Upsampling up, Index length, double* weights) {
  const Index points = up.points();
  for (Index e = Index{blockIdx.x} * kThreads + threadIdx.x; e < length * points;
       e += Index{gridDim.x} * kThreads) {
    weights[e] = up.weight(e / points, length, e % points);
  }
}

// Sets sub_sy and sub_sx of records of reduce_peak. `lines` has out_rows x points numbers a block.
template <typename T>
__global__ void interpolate(Geometry problem, Upsampling up, const T* all,
                            const double* row_weights, const double* col_weights, double* lines,
                            Peak* out) {
  const Index points = up.points();
  double* const along = lines + blockIdx.x * problem.out_rows() * points;
  for (Index p = blockIdx.x; p < problem.pairs(); p += gridDim.x) {
    if (out[p].flags & kPeakNotFinite) continue;
    const Surface<T> s = surface_of(problem, all, p);
    const Index row = out[p].sy - s.first_sy, col = out[p].sx - s.first_sx;
    __syncthreads();  // of the previous pair, `along` may still be read
    for (Index e = threadIdx.x; e < s.rows * points; e += kThreads) {
      const T* const outputs = s.data + e / points * s.cols;
      double sum = 0;
      for (Index x = 0; x < s.cols; ++x) {
        const Index distance = x < col ? x - col + s.cols : x - col;
        sum += static_cast<double>(outputs[x]) * col_weights[distance * points + e % points];
      }
      along[e] = sum;
    }
    __syncthreads();
    Candidate best;
    for (Index e = threadIdx.x; e < points * points; e += kThreads) {
      double sum = 0;
      for (Index y = 0; y < s.rows; ++y) {
        const Index distance = y < row ? y - row + s.rows : y - row;
        sum += row_weights[distance * points + e / points] * along[y * points + e % points];
      }
      const Candidate here{sum, e};
      if (comes_before(here, best)) best = here;
    }
    best = first_of_block(best);
    if (threadIdx.x != 0) continue;
    up.place(s, best.at, out[p]);
  }
}

// The median of f(output) over the outputs for which that is a number; NaN where there is none.
template <typename T, typename F>
__device__ double median_of(const Surface<T>& s, F&& f) {
  using Key = decltype(ordered(T{}));
  __shared__ unsigned long long histogram[kDigits];
  Selection<Key> selection;  // the same in all threads
  std::uint64_t numbers = 0, lower_rank = 0;
  for (bool first = true; !selection.done(); first = false) {
    for (int i = threadIdx.x; i < kDigits; i += kThreads) histogram[i] = 0;
    __syncthreads();
    for (Index start = 0; start < s.size(); start += kThreads) {
      const Index at = start + threadIdx.x;
      const T value = at < s.size() ? f(s.data[at]) : static_cast<T>(NAN);
      const Key key = is_nan(value) ? Key{} : ordered(value);
      const bool counts = !is_nan(value) && selection.matches(key);
      // Neighbouring outputs often have the same digit: one addition for all of them in a warp.
      const int digit = counts ? selection.digit(key) : -1;
      const unsigned alike = __match_any_sync(kAllLanes, digit);
      if (counts && __ffs(static_cast<int>(alike)) - 1 == static_cast<int>(threadIdx.x % kWarp)) {
        atomicAdd(&histogram[digit], static_cast<unsigned long long>(__popc(alike)));
      }
    }
    __syncthreads();
    if (first) {
      for (int i = 0; i < kDigits; ++i) numbers += histogram[i];
      selection.rank = lower_rank = numbers == 0 ? 0 : (numbers - 1) / 2;
    }
    selection.step(histogram);
    __syncthreads();
  }
  if (numbers == 0) return NAN;
  const T lower = from_ordered(selection.found);
  // Numbers up to and including the lower one.
  const std::uint64_t up_to = lower_rank - selection.rank + selection.equal;
  if (numbers / 2 < up_to) return middle(lower, lower);
  Candidate least;  // of -value, so that the first in the order of peaks is the least value
  for (Index at = threadIdx.x; at < s.size(); at += kThreads) {
    const T value = f(s.data[at]);
    if (!(value > lower)) continue;
    const Candidate here{-static_cast<double>(value), at};
    if (comes_before(here, least)) least = here;
  }
  return middle(lower, -first_of_block(least).value);
}

template <typename T>
__global__ void find_thresholds(Geometry problem, double deviations, const T* all,
                                double* thresholds) {
  for (Index p = blockIdx.x; p < problem.pairs(); p += gridDim.x) {
    const Surface<T> s = surface_of(problem, all, p);
    const double median = median_of(s, [](T v) { return v; });
    const double spread = median_of(s, [median](T v) { return deviation(v, median); });
    if (threadIdx.x == 0) thresholds[p] = median + deviations * spread;
  }
}

// `thresholds` is null where there is one for all pairs.
template <typename T>
__global__ void reduce_above(Geometry problem, double threshold, const double* thresholds,
                             std::uint64_t capacity, Index distance, const T* all,
                             AboveHeader* header) {
  auto* const count = reinterpret_cast<unsigned long long*>(&header->count);
  auto* const detections = reinterpret_cast<Detection*>(header + 1);
  const Index size = problem.out_size();
  for (Index e = Index{blockIdx.x} * kThreads + threadIdx.x; e < problem.out_elements();
       e += Index{gridDim.x} * kThreads) {
    const Index p = e / size;
    if (!(all[e] >= (thresholds ? thresholds[p] : threshold))) continue;
    if (distance > 1 && !is_first_within(surface_of(problem, all, p), e % size, distance)) continue;
    const std::uint64_t slot = atomicAdd(count, 1ull);
    if (slot < capacity)
      detections[slot] = make_detection(surface_of(problem, all, p), p, e % size);
  }
}

template <typename T>
__global__ void reduce_sum(Geometry problem, const T* all, double* out) {
  __shared__ double lanes[kLanes];
  for (Index p = blockIdx.x; p < problem.pairs(); p += gridDim.x) {
    const Surface<T> s = surface_of(problem, all, p);
    double sum = 0;
    for (Index at = threadIdx.x; at < s.size(); at += kLanes) sum += s.data[at];
    __syncthreads();
    lanes[threadIdx.x] = sum;
    __syncthreads();
    for (int half = kLanes / 2; half > 0; half /= 2) {
      if (static_cast<int>(threadIdx.x) < half) lanes[threadIdx.x] += lanes[threadIdx.x + half];
      __syncthreads();
    }
    if (threadIdx.x == 0) out[p] = lanes[0];
  }
}

unsigned blocks(Index wanted) {
  return static_cast<unsigned>(std::clamp<Index>(wanted, 1, Index{1} << 16));
}
unsigned blocks_of(Index elements) { return blocks((elements + kThreads - 1) / kThreads); }

template <typename T>
void find_peak(const Problem& problem, SubPixel sub_pixel, const Shares& shares, const T* all,
               Peak* out, cudaStream_t stream) {
  if (shares.count == 1) {
    reduce_peak<<<blocks(problem.pairs()), kThreads, 0, stream>>>(problem, sub_pixel, all, out);
    return;
  }
  const dim3 a_pair(1, blocks(problem.pairs())), a_share(blocks(shares.count), a_pair.y);
  scan_shares<<<a_share, kThreads, 0, stream>>>(problem, shares, AnyNumber{}, all);
  find_second<<<a_share, kThreads, 0, stream>>>(problem, shares, all);
  write_peak<<<a_pair, kThreads, 0, stream>>>(problem, shares, sub_pixel, all, out);
}

template <typename T>
void find_peaks(const Problem& problem, int count, const Shares& shares, const T* all, Peak* out,
                cudaStream_t stream) {
  if (shares.count == 1) {
    reduce_peaks<<<blocks(problem.pairs()), kThreads, 0, stream>>>(problem, count, all, out);
    return;
  }
  const dim3 a_pair(1, blocks(problem.pairs())), a_share(blocks(shares.count), a_pair.y);
  scan_shares<<<a_share, kThreads, 0, stream>>>(problem, shares, NextMaximum{}, all);
  for (int k = 1; k <= count; ++k) {
    const dim3 grid = k < count ? a_share : a_pair;
    find_next<<<grid, kThreads, 0, stream>>>(problem, shares, k, count, all, out);
  }
}

template <typename T>
void reduce_surfaces(const Problem& problem, const T* all, char* scratch, void* out,
                     cudaStream_t stream) {
  const Result& result = problem.fields.result;
  const ReduceScratch layout(problem);
  const unsigned a_pair = blocks(problem.pairs());
  const auto numbers = [&](std::size_t at) { return reinterpret_cast<double*>(scratch + at); };
  const SurfaceShares of_surface(problem);
  const Shares shares{of_surface.count, of_surface.outputs,
                      reinterpret_cast<Candidate*>(scratch + layout.found),
                      reinterpret_cast<Index*>(scratch + layout.finite)};
  switch (result.kind) {
    case ResultKind::peak: {
      auto* const peaks = static_cast<Peak*>(out);
      find_peak(problem, result.sub_pixel, shares, all, peaks, stream);
      if (result.sub_pixel != SubPixel::upsample) break;
      const Upsampling up{result.upsample};
      const std::pair<Index, std::size_t> tables[] = {{problem.out_rows(), layout.row_weights},
                                                      {problem.out_cols(), layout.col_weights}};
      for (const auto& [length, at] : tables) {
        fill_weights<<<blocks_of(length * layout.points), kThreads, 0, stream>>>(up, length,
                                                                                 numbers(at));
      }
      interpolate<<<static_cast<unsigned>(layout.blocks), kThreads, 0, stream>>>(
          problem, up, all, numbers(layout.row_weights), numbers(layout.col_weights),
          numbers(layout.lines), peaks);
      break;
    }
    case ResultKind::peaks:
      find_peaks(problem, result.count, shares, all, static_cast<Peak*>(out), stream);
      break;
    case ResultKind::above: {
      double* const thresholds = result.of_deviations ? numbers(layout.thresholds) : nullptr;
      require_cuda(cudaMemsetAsync(out, 0, sizeof(AboveHeader), stream), "clearing a header");
      if (thresholds) {
        find_thresholds<<<a_pair, kThreads, 0, stream>>>(problem, result.threshold, all,
                                                         thresholds);
      }
      reduce_above<<<blocks_of(problem.out_elements()), kThreads, 0, stream>>>(
          problem, result.threshold, thresholds, static_cast<std::uint64_t>(result.capacity),
          Index{result.distance}, all, static_cast<AboveHeader*>(out));
      break;
    }
    case ResultKind::sum:
      reduce_sum<<<a_pair, kThreads, 0, stream>>>(problem, all, static_cast<double*>(out));
      break;
    case ResultKind::surface:
      break;  // never reduced: every variant writes it
  }
  require_cuda(cudaGetLastError(), "reduction of a surface");
}

}  // namespace

void reduce_on_cuda(const Problem& problem, Precision precision, const void* surface, void* scratch,
                    void* out, void* stream) {
  const auto run = [&](const auto* all) {
    reduce_surfaces(problem, all, static_cast<char*>(scratch), out,
                    static_cast<cudaStream_t>(stream));
  };
  if (scalar_bytes(precision) == sizeof(double)) return run(static_cast<const double*>(surface));
  run(static_cast<const float*>(surface));
}

}  // namespace xcorr
