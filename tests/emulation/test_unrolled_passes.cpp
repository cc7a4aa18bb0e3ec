// template_pearson_jit_unrolled: its plan with kernels that the build has compiled, for the sizes of some problems, against
// the harness's float64; and the text that it compiles at run time, by NVRTC where there is one, which needs no GPU.
#include <regex>

#include "algorithms/template_matching/run_time/run_time_compiler.hpp"
#include "algorithms/template_matching/template_pearson_jit_unrolled/passes.hpp"
#include "tests/emulation/run_time_sizes.hpp"
#include "tests/emulation/support.hpp"

namespace xcorr::template_matching {
namespace {

PlanRequest request_of(const std::string& problem, const std::string& tile,
                       const std::string& launches, const std::string& shifts_per_block = "") {
  PlanRequest request{parse_problem(problem), {}, Precision::fp32};
  request.params.set("template_tile", tile);
  request.params.set("launches", launches);
  if (!shifts_per_block.empty()) request.params.set("shifts_per_block", shifts_per_block);
  return request;
}

// With one launch of all shifts; as ByArea else.
template <typename Base>
struct AllShifts : Base {
  static constexpr int kAddThreads = TemplateTuning::kAddThreads, kMostUnrolled = 4;
};

template <typename C, int kPass>
void sums_kernel(RunTimeArguments a) {
  tile_sums<C, kPass>(a);
}
template <typename C, int kPass>
void add_kernel(RunTimeTotals a) {
  add_tiles<C, kPass>(a);
}

// In place of RunTimeKernels: kernels with the sizes of C, which must be those of the request.
template <typename C>
struct CompiledKernels {
  explicit CompiledKernels(const PlanRequest& request) {
    const std::string text = unrolled_program(request);
    const std::pair<const char*, int> constants[] = {{"kLeftRows", C::kLeftRows},
                                                     {"kLeftCols", C::kLeftCols},
                                                     {"kRightRows", C::kRightRows},
                                                     {"kRightCols", C::kRightCols},
                                                     {"kOutRows", C::kOutRows},
                                                     {"kOutCols", C::kOutCols},
                                                     {"kFirstSy", C::kFirstSy},
                                                     {"kFirstSx", C::kFirstSx},
                                                     {"kTileRows", C::kTileRows},
                                                     {"kTileCols", C::kTileCols},
                                                     {"kDown", C::kDown},
                                                     {"kAcross", C::kAcross},
                                                     {"kThreads", C::kThreads},
                                                     {"kByArea", C::kByArea},
                                                     {"kAddThreads", C::kAddThreads}};
    for (const auto& [name, value] : constants) {
      const std::string line =
          std::string("static constexpr int ") + name + " = " + std::to_string(value) + ";";
      EXPECT_NE(text.find(line), std::string::npos) << line << " in\n" << text;
    }
  }
  template <typename Arguments>
  auto of(std::size_t number) const {
    if constexpr (std::is_same_v<Arguments, RunTimeArguments>) {
      constexpr void (*kKernels[])(Arguments) = {sums_kernel<C, kRunTimeAverages>,
                                                 sums_kernel<C, kRunTimeDenominators>,
                                                 sums_kernel<C, kRunTimeNumerators>};
      return kKernels[number];
    } else {
      constexpr void (*kKernels[])(Arguments) = {add_kernel<C, kRunTimeAverages>,
                                                 add_kernel<C, kRunTimeDenominators>,
                                                 add_kernel<C, kRunTimeNumerators>};
      return kKernels[number - kRunTimeKernels.size()];
    }
  }
};

Support passes_support(const PlanRequest& request) {
  if (const Support is = pearson_supports(request); !is) return is;
  return launches_fit(request);
}

template <typename C>
Variant variant_with() {
  Variant v;
  v.id = "template_pearson_jit_unrolled";
  v.backend = Backend::cuda;
  v.scores = {ScoreKind::product, ScoreKind::zncc};
  v.results = {ResultKind::surface, ResultKind::peak};
  v.supports = passes_support;
  v.workspace_bytes = pearson_workspace_bytes;
  v.plan = [](const PlanRequest& request) -> std::unique_ptr<Plan> {
    return std::make_unique<PearsonPlan<false, UnrolledPasses<CompiledKernels<C>>>>(request);
  };
  return v;
}

template <typename C>
void check(const std::string& problem, const std::string& tile, const std::string& launches,
           const std::string& shifts_per_block = "") {
  for (const char* const fields : {"/valid/score=zncc:0.3", "/valid"}) {
    const PlanRequest r = request_of(problem + fields, tile, launches, shifts_per_block);
    emulation::expect_verdicts(
        variant_with<C>(), r.problem, r.params,
        {InputKind::integer, InputKind::zero_mean, InputKind::offset, InputKind::constant});
  }
}

// 15 x 15 shifts in two areas; tiles of four shapes; each pair its own frame.
TEST(UnrolledPasses, AreRightInALaunchForEachArea) {
  check<ByArea<Sizes<7, 9, 21, 23, 4, 4, 12, 15>>>("n-to-m/7x9/21x23/2:2", "4x4", "per_192_shifts");
}
// 200 columns of shifts: an area is a part of a row.
TEST(UnrolledPasses, AreRightWhereARowOfShiftsTakesTwoLaunches) {
  check<ByArea<Sizes<5, 6, 6, 205, 4, 6, 1, 192>>>("n-to-mn/5x6/6x205/1:2", "4x6",
                                                   "per_192_shifts");
}
// Fewer shifts than a launch could have.
TEST(UnrolledPasses, AreRightInASingleSmallLaunch) {
  check<ByArea<Sizes<8, 8, 11, 12, 8, 4, 4, 5>>>("one-to-many/8x8/11x12/1:3", "8x4",
                                                 "per_192_shifts");
}
// The same areas in one launch; a template of one tile; more tiles than are unrolled at once.
TEST(UnrolledPasses, AreRightInOneLaunch) {
  check<AllShifts<Sizes<7, 9, 21, 23, 4, 4, 8, 15>>>("n-to-m/7x9/21x23/2:2", "4x4", "one", "128");
  check<AllShifts<Sizes<3, 4, 6, 44, 3, 4, 4, 32>>>("one-to-one/3x4/6x44/1:1", "8x8", "one", "192");
  check<AllShifts<Sizes<17, 5, 20, 9, 4, 4, 4, 5>>>("n-to-m/17x5/20x9/1:2", "4x4", "one", "512");
}
TEST(UnrolledPasses, GivePeaks) {
  const PlanRequest r =
      request_of("n-to-m/7x9/21x23/2:2/valid/score=zncc:0.3/result=peak", "4x4", "per_192_shifts");
  using C = ByArea<Sizes<7, 9, 21, 23, 4, 4, 12, 15>>;
  emulation::expect_verdicts(variant_with<C>(), r.problem, r.params, {InputKind::zero_mean});
}

// Counts from the paper: areas of 95 to 703 shifts, at most 192 in a launch.
TEST(UnrolledPasses, HaveAsFewLaunchesAsThePaperNeeds) {
  for (const auto& [problem, launches] :
       {std::pair{"n-to-m/53x54/63x76/10:1", 2}, std::pair{"n-to-m/23x21/27x39/10:1", 1},
        std::pair{"n-to-m/76x45/90x71/10:1", 3}, std::pair{"n-to-m/156x116/174x152/10:1", 4},
        std::pair{"n-to-m/86x78/102x108/10:1", 3}, std::pair{"n-to-m/141x107/159x143/10:1", 4}}) {
    const PlanRequest r =
        request_of(std::string(problem) + "/valid/score=zncc:0.3", "8x8", "per_192_shifts");
    const PearsonShape s = pearson_shape(r);
    EXPECT_EQ(launches_of_pass(r, s), launches) << problem;
    EXPECT_EQ(launches, ceil_div<Index>(r.problem.out_size(), 192)) << problem;
    EXPECT_LE(pearson_threads(s), 192u) << problem;
  }
}

TEST(UnrolledPasses, RefuseWindowsOfThousandsOfLaunches) {
  const std::string frame = "n-to-m/64x64/1080x1920/1:1/valid/score=zncc:0.3";
  EXPECT_NE(launches_fit(request_of(frame, "8x8", "per_192_shifts")).reason.find("launches=one"),
            std::string::npos);
  EXPECT_TRUE(launches_fit(request_of(frame, "8x8", "one", "192")));
}

TEST(UnrolledText, UnrollsEveryLoopOfTiles) {
  const std::string text = unrolled_program(
      request_of("n-to-m/23x21/27x39/2:1/valid/score=zncc:0.3", "4x4", "per_192_shifts"));
  EXPECT_EQ(text.find("#define XCORR_TILE_LOOP _Pragma(\"unroll\")\n"), 0u) << text;
  // Those over rows, columns and tiles.
  const std::regex loop(R"(XCORR_TILE_LOOP\s+for \()");
  EXPECT_EQ(std::distance(std::sregex_iterator(text.begin(), text.end(), loop), {}), 3);
  for (const char* const constant : {"kAddThreads = 96;", "kMostUnrolled = 256;", "kByArea = 1;"}) {
    EXPECT_NE(text.find(constant), std::string::npos) << constant << " in\n" << text;
  }
}

std::vector<char> compiled(const std::string& program, int capability, std::string* log) {
  return RunTimeCompiler::instance().compile(program, capability, log);
}

// Of the paper's patients, with their best tiles.
TEST(UnrolledText, CompilesWithoutSpills) {
  const RunTimeCompiler& compiler = RunTimeCompiler::instance();
  if (!compiler.problem().empty()) GTEST_SKIP() << compiler.problem();
  for (const auto& [problem, tile, launches] :
       {std::array{"53x54/63x76", "16x2", "one"}, std::array{"156x116/174x152", "16x10", "one"},
        std::array{"156x116/174x152", "16x10", "per_192_shifts"},
        std::array{"141x107/159x143", "8x8", "per_192_shifts"}}) {
    std::string log;
    const std::string id = std::string("n-to-m/") + problem + "/10:1/valid/score=zncc:0.3";
    const auto code = compiled(unrolled_program(request_of(id, tile, launches, "192")), 90, &log);
    for (const char* const name : unrolled_kernels()) {
      EXPECT_NE(std::string(code.begin(), code.end()).find(name), std::string::npos) << name;
    }
    EXPECT_TRUE(std::regex_search(log, std::regex("Used [0-9]+ registers"))) << log;
    EXPECT_FALSE(std::regex_search(log, std::regex("[1-9][0-9]* bytes spill")))
        << problem << " " << tile << " " << launches << "\n"
        << log;
  }
}

// Tiles of 16x16 and their rests: by itself the compiler unrolls small tiles alone.
TEST(UnrolledText, HasMoreCodeThanTheCompilerMakesByItself) {
  const RunTimeCompiler& compiler = RunTimeCompiler::instance();
  if (!compiler.problem().empty()) GTEST_SKIP() << compiler.problem();
  std::string program = unrolled_program(
      request_of("n-to-m/31x31/40x40/1:1/valid/score=zncc:0.3", "16x16", "one", "128"));
  const auto unrolled = compiled(program, 90, nullptr);
  program.replace(0, std::string(kUnrolledLoopsText).size(), kLoopsText);
  EXPECT_GT(unrolled.size(), compiled(program, 90, nullptr).size() * 3 / 2);
}

}  // namespace
}  // namespace xcorr::template_matching
