// The data movement of layout.hpp as callbacks inside cuFFT's kernels: the forward transform loads
// from the unpadded inputs, the inverse transform stores into the outputs. Only for slots with
// contiguous rows and one real matrix each.
#pragma once

#include <algorithm>
#include <string>
#include <utility>

#include "algorithms/device/cuda.hpp"
#include "algorithms/fft/geometry.hpp"

namespace xcorr::fft {

// Stores the chunk where the callbacks of a plan read it: in device memory, since cuFFT fixes the
// address during planning.
template <typename T>
__global__ void store_chunk(FftChunk<T>* to, FftChunk<T> chunk) {
  *to = chunk;
}

// Follows the definitions of T, of U (an unsigned type that can count a batch's elements) and of
// the constants below. Each callback has its own image: cuFFT links an image once per callback of a
// plan and would find other callbacks twice.
inline constexpr const char* kCallbackSource = R"(
struct Info {  // FftChunk
  const T* left; const T* right; T* out;
  long long lefts, right_runs, rights, pair_runs, pairs;
};

#ifdef XCORR_PAD
__device__ T xcorr_pad(void*, unsigned long long offset, void* caller, void*) {
  const Info* info = static_cast<const Info*>(caller);
  const U slot = U(offset) / kRealSize, rest = U(offset) % kRealSize;
  const U y = rest / kRealPitch, x = rest % kRealPitch;
  if (slot < kLeftSlots) {
    if (slot >= info->lefts || y >= kLeftRows || x >= kLeftCols) return T(0);
    return __ldg(info->left + (slot * kLeftRows + y) * kLeftCols + x);
  }
  const U run = (slot - kLeftSlots) / kRightRun, item = (slot - kLeftSlots) % kRightRun;
  if (run >= info->right_runs || item >= info->rights || y >= kRightRows || x >= kRightCols) return T(0);
  const long long matrix = run * (long long)kRightPitch + item;
  return __ldg(info->right + (matrix * kRightRows + y) * kRightCols + x);
}
#endif

#ifdef XCORR_CROP
__device__ void xcorr_crop(void*, unsigned long long offset, T value, void* caller, void*) {
  const Info* info = static_cast<const Info*>(caller);
  const U slot = U(offset) / kRealSize, rest = U(offset) % kRealSize;
  long long y = (long long)(rest / kRealPitch) - kFirstSy, x = (long long)(rest % kRealPitch) - kFirstSx;
  const long long rows = kRows, cols = kCols;
  y += y < 0 ? rows : y >= rows ? -rows : 0;
  x += x < 0 ? cols : x >= cols ? -cols : 0;
  const U run = slot / kPairRun, item = slot % kPairRun;
  if (y >= kOutRows || x >= kOutCols || run >= info->pair_runs || item >= info->pairs) return;
  const long long pair = run * (long long)kPairPitch + item;
  __stcs(info->out + (pair * kOutRows + y) * kOutCols + x, value);
}
#endif
)";

// Returns the definitions and kCallbackSource. `callback` is XCORR_PAD or XCORR_CROP.
template <typename T>
inline std::string callback_source(const FftGeometry& g, const char* callback) {
  const bool single = sizeof(T) == sizeof(float);
  const Index slots = std::max(g.input_slots(), g.pair_slots);
  const bool narrow = slots * 2 * g.spectrum < Index{1} << 32;
  std::string text = std::string("#define ") + callback +
                     "\nusing T = " + (single ? "float" : "double") + ";\nusing U = unsigned " +
                     (narrow ? "int" : "long long") + ";\n";
  const std::pair<const char*, Index> sizes[] = {{"kRows", g.rows},
                                                 {"kCols", g.cols},
                                                 {"kRealPitch", g.real_pitch},
                                                 {"kRealSize", 2 * g.spectrum},
                                                 {"kLeftSlots", g.left_slots},
                                                 {"kLeftRows", g.left.rows},
                                                 {"kLeftCols", g.left.cols},
                                                 {"kRightRows", g.right.rows},
                                                 {"kRightCols", g.right.cols},
                                                 {"kRightRun", g.right_run},
                                                 {"kRightPitch", g.right_pitch},
                                                 {"kPairRun", g.pair_run},
                                                 {"kPairPitch", g.pair_pitch},
                                                 {"kOutRows", g.sy.count()},
                                                 {"kOutCols", g.sx.count()}};
  for (const auto& [name, value] : sizes) {
    text += std::string("constexpr U ") + name + " = " + std::to_string(value) + ";\n";
  }
  return text + "constexpr long long kFirstSy = " + std::to_string(g.sy.first) +
         ", kFirstSx = " + std::to_string(g.sx.first) + ";\n" + kCallbackSource;
}

}  // namespace xcorr::fft
