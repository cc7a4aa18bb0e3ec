// The program of template_pearson_jit_unrolled for a problem and a point of the grid.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "algorithms/template_matching/run_time/sizes.hpp"
#include "algorithms/template_matching/template_pearson_jit_unrolled/add_tiles.hpp"

namespace xcorr::template_matching {

// The kernels that add up tiles, in the order of RunTimePass.
inline constexpr std::array<const char*, 3> kAddKernels = {
    "xcorr_add_averages", "xcorr_add_denominators", "xcorr_add_numerators"};
// As many as the best tiles of the paper's patients give, 252 at most. More than that takes NVRTC
// several seconds.
inline constexpr int kMostUnrolledTiles = 256;

// All kernels: those that sum tiles, then those that add up tiles.
inline std::vector<const char*> unrolled_kernels() {
  std::vector<const char*> names(kRunTimeKernels.begin(), kRunTimeKernels.end());
  names.insert(names.end(), kAddKernels.begin(), kAddKernels.end());
  return names;
}

// Threads of a block that adds up tiles. A launch of one area has one block for a frame or a pair.
inline int add_threads(const PearsonShape& s, bool by_area) {
  return by_area ? static_cast<int>(pearson_threads(s)) : TemplateTuning::kAddThreads;
}

inline std::string unrolled_program(const PlanRequest& request) {
  const PearsonShape s = pearson_shape(request);
  const bool by_area = launches_by_area(request);
  const int threads = add_threads(s, by_area);
  std::string text =
      std::string(kUnrolledLoopsText) + kPreludeText + in_lines(kTileSumsText) +
      in_lines(kAddTilesText) +
      run_time_constants(request.problem, s, by_area,
                         {{"kAddThreads", threads}, {"kMostUnrolled", kMostUnrolledTiles}}) +
      "using namespace xcorr::template_matching;\n" +
      // Up to 64 registers per thread as in template_pearson_jit, where blocks divide 1024 threads.
      // Others, as of 192, would have no more of them either, and spill: these have 80.
      tile_sums_kernels(s, 1024 % pearson_threads(s) == 0 ? 1024 : 768);
  for (std::size_t i = 0; i < kAddKernels.size(); ++i) {
    text += run_time_kernel(kAddKernels[i], std::to_string(threads), "RunTimeTotals", "add_tiles",
                            static_cast<int>(i));
  }
  return text;
}

}  // namespace xcorr::template_matching
