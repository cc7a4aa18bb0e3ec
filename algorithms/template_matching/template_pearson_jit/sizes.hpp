// The constants of tile_sums.hpp for a problem and a point of the grid, as numbers and as C++ text,
// and the whole program that NVRTC compiles.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "algorithms/template_matching/pearson_plan.hpp"
#include "algorithms/template_matching/template_pearson_jit/tile_sums.hpp"

namespace xcorr::template_matching {

// The kernels of a program, in the order of RunTimePass.
inline constexpr std::array<const char*, 3> kRunTimeKernels = {
    "xcorr_averages", "xcorr_denominators", "xcorr_numerators"};

inline std::size_t run_time_shared_bytes(const PearsonShape& s) {
  const int frame = (s.tile_rows + s.down - 1) * (s.tile_cols + s.across - 1);
  return sizeof(float) *
         static_cast<std::size_t>(ceil_div(frame, 4) * 4 + s.tile_rows * s.tile_cols);
}

inline std::string run_time_constants(const Problem& q, const PearsonShape& s) {
  const std::pair<const char*, Index> constants[] = {{"kLeftRows", q.left.rows},
                                                     {"kLeftCols", q.left.cols},
                                                     {"kRightRows", q.right.rows},
                                                     {"kRightCols", q.right.cols},
                                                     {"kOutRows", q.out_rows()},
                                                     {"kOutCols", q.out_cols()},
                                                     {"kFirstSy", q.window.sy.first},
                                                     {"kFirstSx", q.window.sx.first},
                                                     {"kTileRows", s.tile_rows},
                                                     {"kTileCols", s.tile_cols},
                                                     {"kDown", s.down},
                                                     {"kAcross", s.across},
                                                     {"kThreads", Index{pearson_threads(s)}}};
  std::string text = "struct Sizes {\n";
  for (const auto& [name, value] : constants) {
    text += std::string("  static constexpr int ") + name + " = " + std::to_string(value) + ";\n";
  }
  return text + "};\n";
}

inline std::string run_time_program(const Problem& q, const PearsonShape& s) {
  std::string text = kPreludeText;
  // The preprocessor joined the text into one line. One statement per line makes messages easier to
  // read.
  for (const char* c = kTileSumsText; *c != 0; ++c) {
    text += *c;
    if (*c == ';' || *c == '{' || *c == '}') text += '\n';
  }
  text += "\n" + run_time_constants(q, s) + "using namespace xcorr::template_matching;\n";
  const char* const passes[] = {"kRunTimeAverages", "kRunTimeDenominators", "kRunTimeNumerators"};
  // 64 registers per thread: with more, an SM would hold only one block of 512 threads.
  const int threads = static_cast<int>(pearson_threads(s)), blocks = std::max(1024 / threads, 1);
  for (std::size_t i = 0; i < kRunTimeKernels.size(); ++i) {
    text += std::string("extern \"C\" __global__ void __launch_bounds__(") +
            std::to_string(threads) + ", " + std::to_string(blocks) + ") " + kRunTimeKernels[i] +
            "(RunTimeArguments a) {\n  tile_sums<Sizes, " + passes[i] + ">(a);\n}\n";
  }
  return text;
}

}  // namespace xcorr::template_matching
