// The result `peak` for surfaces in global memory. Many blocks search each surface, so that a
// single large surface uses a whole GPU. The rules are those of peaks.hpp.
//
//   tops_kernel     the first largest output of each part of a surface; a kernel that computes
//                   outputs may write these instead
//   seconds_kernel  the largest local maximum of each part outside the 5 x 5 around the peak
//   records_kernel  the record, one warp per pair
#pragma once

#include <algorithm>

#include "algorithms/blocks/peaks.hpp"
#include "algorithms/blocks/plan.hpp"
#include "algorithms/blocks/workspace.hpp"
#include "algorithms/device/launch.hpp"

namespace xcorr::device {

inline constexpr int kSearchThreads = static_cast<int>(small_if_emulated(256, 64));
// Outputs per block, and max blocks per surface.
inline constexpr Index kSearchPart = small_if_emulated(8192, 200);
inline constexpr Index kMostSearchParts = small_if_emulated(1024, 7);

// The first largest output of a part, and whether one output is NaN or infinite.
struct alignas(16) PartTop {
  float value;
  int at;
  std::uint32_t broken, spare;
  __device__ __forceinline__ void see(float output, int place) {
    broken |= !(output - output == 0);
    const PeakPlace first = first_of({value, at}, place_of(output, place));
    value = first.value;
    at = first.at;
  }
  __device__ __forceinline__ void add(const PartTop& other) {
    broken |= other.broken;
    const PeakPlace first = first_of({value, at}, {other.value, other.at});
    value = first.value;
    at = first.at;
  }
};
__device__ __forceinline__ PartTop no_top() { return {-HUGE_VALF, kNowhere, 0, 0}; }
__device__ __forceinline__ PartTop top_of_lanes(PartTop mine) {
#pragma unroll
  for (int by = warp::kSize / 2; by > 0; by /= 2) {
    mine.add({warp::shuffle_xor(mine.value, by), warp::shuffle_xor(mine.at, by),
              warp::shuffle_xor(mine.broken, by), 0});
  }
  return mine;
}
// Combines all threads of a block of at most 32 warps, for thread 0.
__device__ __forceinline__ PartTop top_of_threads(PartTop mine, int threads) {
  XCORR_SHARED(PartTop, of_warp, 32);
  mine = top_of_lanes(mine);
  block::barrier();
  const int thread = static_cast<int>(threadIdx.x);
  if (thread % warp::kSize == 0) of_warp[thread / warp::kSize] = mine;
  block::barrier();
  if (thread == 0) {
    for (int i = 1; i < threads / warp::kSize; ++i) mine.add(of_warp[i]);
  }
  return mine;
}

// Passed to the kernels by value.
struct PeakSearch {
  const float* surfaces;  // [pairs][rows][cols]
  int rows, cols, pairs;
  PartTop* tops;  // [pairs][top_parts]
  int top_parts;
  float* seconds;  // [pairs][parts]
  int parts;
  ResultRequest request;

  __device__ __forceinline__ const float* surface_of(int pair) const {
    return surfaces + static_cast<Index>(pair) * rows * cols;
  }
  // The top of a pair, for all lanes of a warp that call it.
  __device__ __forceinline__ PartTop top_of(int pair) const {
    const PartTop* const of_pair = tops + static_cast<Index>(pair) * top_parts;
    PartTop top = no_top();
    // Adding a top twice does not change the result: a lane with fewer parts adds its first part
    // again.
    constexpr int kAtOnce = 4;
#pragma unroll 1
    for (int begin = warp::lane(); begin < top_parts; begin += kAtOnce * warp::kSize) {
      PartTop of[kAtOnce];
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        const int i = begin + k * warp::kSize;
        of[k] = of_pair[i < top_parts ? i : begin];
      }
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) top.add(of[k]);
    }
    return top_of_lanes(top);
  }
};

// A surface in global memory, with the interface of peaks.hpp.
struct StoredSurface {
  const float* data;
  int rows, cols;
  __device__ __forceinline__ const float* row(int y) const {
    return data + static_cast<Index>(y) * cols;
  }
};

// grid: parts (x), pairs in a stride (y).
static __global__ void __launch_bounds__(kSearchThreads) tops_kernel(PeakSearch search) {
  wait_for_previous();
  const int size = search.rows * search.cols, stride = static_cast<int>(gridDim.x) * kSearchThreads;
  const int first = static_cast<int>(blockIdx.x * kSearchThreads + threadIdx.x);
#pragma unroll 1
  for (int pair = static_cast<int>(blockIdx.y); pair < search.pairs;
       pair += static_cast<int>(gridDim.y)) {
    const float* const outputs = search.surface_of(pair);
    PartTop top = no_top();
#pragma unroll 4
    for (int i = first; i < size; i += stride) top.see(outputs[i], i);
    top = top_of_threads(top, kSearchThreads);
    if (threadIdx.x == 0) {
      search.tops[static_cast<Index>(pair) * search.top_parts + blockIdx.x] = top;
    }
  }
}

static __global__ void __launch_bounds__(kSearchThreads, 4) seconds_kernel(PeakSearch search) {
  wait_for_previous();
  XCORR_SHARED(float, of_warp, 32);
  const int size = search.rows * search.cols, stride = static_cast<int>(gridDim.x) * kSearchThreads;
  const int thread = static_cast<int>(threadIdx.x);
#pragma unroll 1
  for (int pair = static_cast<int>(blockIdx.y); pair < search.pairs;
       pair += static_cast<int>(gridDim.y)) {
    const PartTop top = search.top_of(pair);
    const StoredSurface s{search.surface_of(pair), search.rows, search.cols};
    const int peak = top.at == kNowhere ? 0 : top.at;
    const int peak_y = peak / s.cols, peak_x = peak % s.cols;
    float best = no_number();
    // All loads come before the branches: a load behind a branch would wait for the previous load.
    constexpr int kAtOnce = static_cast<int>(small_if_emulated(8, 2));
    int i = static_cast<int>(blockIdx.x) * kSearchThreads + thread;
#pragma unroll 1
    for (; i < size; i += kAtOnce * stride) {
      float values[kAtOnce];
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        const int at = i + k * stride;
        values[k] = at < size ? s.data[at] : no_number();
      }
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        const float value = values[k];
        if (!is_number(value) || value <= best) continue;
        const int at = i + k * stride, y = at / s.cols, x = at - y * s.cols;
        if (!is_around(y, x, peak_y, peak_x) && is_local_maximum(s, y, x, value)) best = value;
      }
    }
    best = largest_of_lanes(best);
    block::barrier();
    if (thread % warp::kSize == 0) of_warp[thread / warp::kSize] = best;
    block::barrier();
    if (thread == 0) {
      for (int i = 1; i < kSearchThreads / warp::kSize; ++i) best = fmaxf(best, of_warp[i]);
      search.seconds[static_cast<Index>(pair) * search.parts + blockIdx.x] = best;
    }
  }
}

static __global__ void __launch_bounds__(warp::kSize) records_kernel(PeakSearch search) {
  wait_for_previous();
  const int lane = warp::lane();
#pragma unroll 1
  for (int pair = static_cast<int>(blockIdx.x); pair < search.pairs;
       pair += static_cast<int>(gridDim.x)) {
    const PartTop top = search.top_of(pair);
    float second = no_number();
    for (int i = lane; i < search.parts; i += warp::kSize) {
      second = fmaxf(second, search.seconds[static_cast<Index>(pair) * search.parts + i]);
    }
    second = largest_of_lanes(second);
    if (lane != 0) continue;
    const StoredSurface s{search.surface_of(pair), search.rows, search.cols};
    const bool exists = top.at != kNowhere;
    const int peak = exists ? top.at : 0;
    *search.request.peaks_of(pair) =
        peak_record(s, search.request, search.request.sub_pixel, {top.value, top.at}, peak / s.cols,
                    peak % s.cols, exists ? second : no_number(), top.broken == 0);
  }
}

inline bool asks_peak(const Problem& q) { return q.fields.result.kind == ResultKind::peak; }

// The search for a problem: memory in the workspace, and the launches.
class PeakSearchPlan {
 public:
  PeakSearchPlan() = default;
  // `top_parts` is the number of tops per surface that a previous kernel writes; with 0,
  // tops_kernel is launched.
  PeakSearchPlan(const Problem& q, Index top_parts, Workspace& workspace)
      : own_tops_(top_parts == 0) {
    search_.rows = static_cast<int>(q.out_rows());
    search_.cols = static_cast<int>(q.out_cols());
    search_.pairs = static_cast<int>(q.pairs());
    search_.request = ResultRequest(q);
    search_.parts =
        static_cast<int>(std::min(ceil_div(q.out_size(), kSearchPart), kMostSearchParts));
    search_.top_parts = own_tops_ ? search_.parts : static_cast<int>(top_parts);
    surfaces_ = workspace.take<float>(q.out_elements());
    search_.surfaces = surfaces_;
    search_.tops = workspace.take<PartTop>(q.pairs() * search_.top_parts);
    search_.seconds = workspace.take<float>(q.pairs() * search_.parts);
  }
  // Yes, or why a surface has too many outputs for the search. Yes if no peak is asked for.
  static Support supports(const Problem& q) {
    if (!asks_peak(q)) return yes();
    if (q.out_size() > kIndexLimit / 4) return no("peaks of more than 2^29 shifts");
    return results_fit(q);
  }

  float* surfaces() const { return surfaces_; }
  PartTop* tops() const { return search_.tops; }

  template <typename Launches>
  void enqueue(Launches& launches, void* stream, void* records) {
    search_.request.out = records;
    const dim3 grid(static_cast<unsigned>(search_.parts), grid_extent(search_.pairs));
    if (own_tops_) launches.run(tops_kernel, grid, dim3(kSearchThreads), 0, stream, search_);
    launches.run(seconds_kernel, grid, dim3(kSearchThreads), 0, stream, search_);
    launches.run(records_kernel, dim3(static_cast<unsigned>(std::min(search_.pairs, 4096))),
                 dim3(warp::kSize), 0, stream, search_);
  }

 private:
  PeakSearch search_{};
  float* surfaces_ = nullptr;
  bool own_tops_ = true;
};

}  // namespace xcorr::device
