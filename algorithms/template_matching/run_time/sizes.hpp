// The constants of tile_sums.hpp for a problem and a point of the grid, as numbers and as C++ text,
// and the whole program that NVRTC compiles.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/template_matching/pearson_plan.hpp"
#include "algorithms/template_matching/run_time/tile_sums.hpp"

namespace xcorr::template_matching {

// The kernels that sum tiles, in the order of RunTimePass.
inline constexpr std::array<const char*, 3> kRunTimeKernels = {
    "xcorr_averages", "xcorr_denominators", "xcorr_numerators"};

template <Pass kPass>
inline constexpr RunTimePass kRunTimePass = kPass == Pass::averages       ? kRunTimeAverages
                                            : kPass == Pass::denominators ? kRunTimeDenominators
                                                                          : kRunTimeNumerators;

inline std::size_t run_time_shared_bytes(const PearsonShape& s) {
  const int frame = (s.tile_rows + s.down - 1) * (s.tile_cols + s.across - 1);
  return sizeof(float) *
         static_cast<std::size_t>(ceil_div(frame, 4) * 4 + s.tile_rows * s.tile_cols);
}

// Arguments that are those of every call and pass.
inline RunTimeArguments run_time_arguments(const Problem& q, const PearsonMemory& memory) {
  static_assert(sizeof(RunTimeScale) == sizeof(FrameScale));
  RunTimeArguments a{};
  a.rights_of_left = static_cast<int>(q.pairs() / q.lefts);
  a.rights_back = static_cast<int>(device::rights_back(q));
  a.partial = memory.partial;
  a.means = is_normalised(q.fields.score.kind) ? memory.means : nullptr;
  a.scales = reinterpret_cast<const RunTimeScale*>(memory.scales);
  return a;
}

using RunTimeConstants = std::vector<std::pair<const char*, Index>>;

// `others`: what the kernels need besides.
inline std::string run_time_constants(const Problem& q, const PearsonShape& s, bool by_area,
                                      const RunTimeConstants& others = {}) {
  RunTimeConstants constants = {{"kLeftRows", q.left.rows},
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
                                {"kThreads", Index{pearson_threads(s)}},
                                {"kByArea", Index{by_area}}};
  constants.insert(constants.end(), others.begin(), others.end());
  std::string text = "struct Sizes {\n";
  for (const auto& [name, value] : constants) {
    text += std::string("  static constexpr int ") + name + " = " + std::to_string(value) + ";\n";
  }
  return text + "};\n";
}

// The preprocessor joined a text into one line. One statement per line makes messages easier to
// read.
inline std::string in_lines(const char* joined) {
  std::string text;
  for (const char* c = joined; *c != 0; ++c) {
    text += *c;
    if (*c == ';' || *c == '{' || *c == '}') text += '\n';
  }
  return text + "\n";
}

// A kernel that calls `function` of a text with the sizes and a pass. `bounds`: __launch_bounds__.
inline std::string run_time_kernel(const char* name, const std::string& bounds,
                                   const char* arguments, const char* function, int pass) {
  const char* const passes[] = {"kRunTimeAverages", "kRunTimeDenominators", "kRunTimeNumerators"};
  return std::string("extern \"C\" __global__ void __launch_bounds__(") + bounds + ") " + name +
         "(" + arguments + " a) {\n  " + function + "<Sizes, " + passes[pass] + ">(a);\n}\n";
}

// The kernels that sum tiles. An SM can hold `resident` threads of them at least.
inline std::string tile_sums_kernels(const PearsonShape& s, int resident) {
  const int threads = static_cast<int>(pearson_threads(s));
  const int blocks = std::max(resident / threads, 1);
  const std::string bounds = std::to_string(threads) + ", " + std::to_string(blocks);
  std::string text;
  for (std::size_t i = 0; i < kRunTimeKernels.size(); ++i) {
    text += run_time_kernel(kRunTimeKernels[i], bounds, "RunTimeArguments", "tile_sums",
                            static_cast<int>(i));
  }
  return text;
}

// The program of template_pearson_jit.
inline std::string run_time_program(const Problem& q, const PearsonShape& s) {
  return std::string(kLoopsText) + kPreludeText + in_lines(kTileSumsText) +
         run_time_constants(q, s, false) + "using namespace xcorr::template_matching;\n" +
         // 64 registers per thread: with more, an SM would hold only one block of 512 threads.
         tile_sums_kernels(s, 1024);
}

}  // namespace xcorr::template_matching
