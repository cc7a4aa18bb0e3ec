// The sums over tiles that template_pearson_jit compiles at run time: emulated, with the sizes of some problems,
// against their definition; and the text, by NVRTC where there is one, which needs no GPU.
#include <regex>

#include "algorithms/template_matching/run_time/run_time_compiler.hpp"
#include "tests/emulation/run_time_sizes.hpp"
#include "tests/emulation/support.hpp"

namespace xcorr::template_matching {
namespace {

// Tiles of the middle alone; four shapes; one element; areas that end within the window; a window of its own; a launch for
// each area.
using Problems =
    testing::Types<Sizes<8, 8, 11, 12, 4, 4, 4, 5>, Sizes<7, 9, 12, 15, 4, 4, 3, 4>,
                   Sizes<1, 1, 3, 4, 1, 1, 3, 4>, Sizes<5, 6, 14, 45, 3, 6, 4, 32>,
                   Sizes<6, 5, 13, 14, 6, 2, 5, 8, 2, 1>, ByArea<Sizes<7, 9, 13, 19, 4, 4, 3, 4>>>;

template <typename C>
class RunTimeSums : public testing::Test {};
TYPED_TEST_SUITE(RunTimeSums, Problems);

template <typename C, int kPass>
void kernel(RunTimeArguments a) {
  tile_sums<C, kPass>(a);
}

double noise(Index i) { return emulation::noise(23, i); }

// The sums of all tiles, by pairs or frames, and by shifts.
template <typename C, int kPass>
void check_pass(RunTimeArguments a, const std::vector<float>& units,
                const std::vector<float>& frames, const std::vector<RunTimeScale>& scales,
                const std::vector<float>& means) {
  constexpr int kTiles =
      ceil_div(C::kLeftRows, C::kTileRows) * ceil_div(C::kLeftCols, C::kTileCols);
  constexpr int kShifts = C::kOutRows * C::kOutCols;
  constexpr int kAreasAcross = ceil_div(C::kOutCols, C::kAcross);
  constexpr int kAreas = ceil_div(C::kOutRows, C::kDown) * kAreasAcross;
  using Sum = typename RunTimeSum<kPass>::type;
  std::vector<Sum> partial(static_cast<std::size_t>(a.count * kTiles * kShifts), NAN);
  a.partial = partial.data();
  constexpr int kFloats = (C::kTileRows + C::kDown - 1) * (C::kTileCols + C::kAcross - 1) + 3 +
                          C::kTileRows * C::kTileCols;
  constexpr int kLaunches = C::kByArea ? kAreas : 1;
  for (a.area = 0; a.area < kLaunches; ++a.area) {
    launch(kernel<C, kPass>, dim3(kAreas / kLaunches * kTiles, 2), dim3(C::kThreads),
           kFloats * sizeof(float), nullptr, a);
  }
  for (int item = 0; item < a.count; ++item) {
    const int left = kPass == kRunTimeNumerators ? item / a.rights_of_left : 0;
    const int frame = kPass == kRunTimeNumerators ? item - left * a.rights_back : item;
    for (int shift = 0; shift < kShifts; ++shift) {
      double sum = 0, want = 0, size = 0;
      for (int tile = 0; tile < kTiles; ++tile) {
        sum += partial[static_cast<std::size_t>((item * kTiles + tile) * kShifts + shift)];
      }
      const double mean = means[static_cast<std::size_t>(frame * kShifts + shift)];
      for (int y = 0; y < C::kLeftRows; ++y) {
        for (int x = 0; x < C::kLeftCols; ++x) {
          const int row = C::kFirstSy + shift / C::kOutCols + y;
          const int col = C::kFirstSx + shift % C::kOutCols + x;
          const int area =
              shift / C::kOutCols / C::kDown * kAreasAcross + shift % C::kOutCols / C::kAcross;
          const auto& of = scales[static_cast<std::size_t>(frame * kAreas + area)];
          const double value = static_cast<double>(frames[static_cast<std::size_t>(
                                   (frame * C::kRightRows + row) * C::kRightCols + col)]) *
                                   of.scale +
                               of.offset;
          const double l =
              units[static_cast<std::size_t>((left * C::kLeftRows + y) * C::kLeftCols + x)];
          const double term = kPass == kRunTimeAverages       ? value
                              : kPass == kRunTimeDenominators ? (value - mean) * (value - mean)
                                                              : l * (value - mean);
          want += term;
          size += std::fabs(term);
        }
      }
      EXPECT_NEAR(sum, want, 1e-5 * size + 1e-6)
          << "pass " << kPass << " item " << item << " shift " << shift;
    }
  }
}

TYPED_TEST(RunTimeSums, AreThoseOfTheDefinition) {
  using C = TypeParam;
  constexpr int kLefts = 2, kRights = 3;
  std::vector<float> units, frames, means;
  for (Index i = 0; i < kLefts * C::kLeftRows * C::kLeftCols; ++i) {
    units.push_back(static_cast<float>(noise(i)));
  }
  for (Index i = 0; i < kRights * C::kRightRows * C::kRightCols; ++i) {
    frames.push_back(static_cast<float>(3 + noise(1000 + i)));
  }
  for (Index i = 0; i < kRights * C::kOutRows * C::kOutCols; ++i) {
    means.push_back(static_cast<float>(noise(5000 + i)));
  }
  // Powers of two and pivots near 3, of each area another.
  constexpr int kAreas = ceil_div(C::kOutRows, C::kDown) * ceil_div(C::kOutCols, C::kAcross);
  std::vector<RunTimeScale> scales;
  for (int i = 0; i < kRights * kAreas; ++i) {
    const float scale = std::ldexp(1.0f, i % 3 - 1);
    scales.push_back({scale, -(2.5f + 0.25f * static_cast<float>(i % 5)) * scale});
  }
  RunTimeArguments a{units.data(), frames.data(), scales.data(),
                     means.data(), nullptr,       kRights,
                     kRights,      kRights,       0};
  check_pass<C, kRunTimeAverages>(a, units, frames, scales, means);
  check_pass<C, kRunTimeDenominators>(a, units, frames, scales, means);
  a.count = kLefts * kRights;
  check_pass<C, kRunTimeNumerators>(a, units, frames, scales, means);
}

std::string program_of(const char* problem, const char* tile, const char* shifts) {
  PlanRequest request{parse_problem(problem), {}, Precision::fp32};
  request.params.set("template_tile", tile);
  request.params.set("shifts_per_block", shifts);
  return run_time_program(request.problem, pearson_shape(request));
}

TEST(RunTimeText, HasTheSizesOfTheProblem) {
  const std::string text = program_of("n-to-m/23x21/27x39/2:1/valid/score=zncc:0.3", "16x8", "64");
  for (const char* constant :
       {"kLeftRows = 23;", "kLeftCols = 21;", "kRightRows = 27;", "kRightCols = 39;",
        "kOutRows = 5;", "kOutCols = 19;", "kTileRows = 16;", "kTileCols = 8;", "kDown = 3;",
        "kAcross = 19;", "kThreads = 64;", "kByArea = 0;"}) {
    EXPECT_NE(text.find(constant), std::string::npos) << constant << " in\n" << text;
  }
}

TEST(RunTimeText, CompilesWithoutSpills) {
  const RunTimeCompiler& compiler = RunTimeCompiler::instance();
  if (!compiler.problem().empty()) GTEST_SKIP() << compiler.problem();
  for (const int capability : {80, 90}) {
    for (const char* tile : {"4x4", "16x16"}) {
      std::string log;
      const auto code = compiler.compile(
          program_of("n-to-m/141x107/159x143/3:2/valid/score=zncc:0.3", tile, "512"), capability,
          &log);
      EXPECT_GT(code.size(), 1000u);
      for (const char* name : kRunTimeKernels) {
        EXPECT_NE(std::string(code.begin(), code.end()).find(name), std::string::npos) << name;
      }
      EXPECT_TRUE(std::regex_search(log, std::regex("Used [0-9]+ registers"))) << log;
      EXPECT_FALSE(std::regex_search(log, std::regex("[1-9][0-9]* bytes spill"))) << log;
    }
  }
}

TEST(RunTimeText, AMistakeIsNamed) {
  const RunTimeCompiler& compiler = RunTimeCompiler::instance();
  if (!compiler.problem().empty()) GTEST_SKIP() << compiler.problem();
  try {
    compiler.compile("extern \"C\" __global__ void none() { not_declared(); }", 90, nullptr);
    FAIL() << "compiled";
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("not_declared"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace xcorr::template_matching
