// What the FFTW variants ask of the planner. The functions of FFTW that they call are replaced here by
// ones that note the flags and pass the call on.
#include <dlfcn.h>
#include <fftw3.h>
#include <gtest/gtest.h>

#include <vector>

#include "harness/registry.hpp"

namespace {
std::vector<unsigned> flags_asked;
std::vector<double> limits_asked;
}  // namespace

extern "C" fftwf_plan fftwf_plan_dft_r2c_1d(int n, float* in, fftwf_complex* out, unsigned flags) {
  flags_asked.push_back(flags);
  static const auto next =
      reinterpret_cast<decltype(&fftwf_plan_dft_r2c_1d)>(dlsym(RTLD_NEXT, "fftwf_plan_dft_r2c_1d"));
  return next(n, in, out, flags);
}
extern "C" void fftwf_set_timelimit(double seconds) {
  limits_asked.push_back(seconds);
  static const auto next =
      reinterpret_cast<decltype(&fftwf_set_timelimit)>(dlsym(RTLD_NEXT, "fftwf_set_timelimit"));
  next(seconds);
}

namespace xcorr {
namespace {

void plan(const char* id, const char* problem, Planning planning) {
  flags_asked.clear();
  limits_asked.clear();
  const Variant& variant = find_variant(id);
  PlanRequest request;
  request.problem = parse_problem(problem);
  request.params = grid_points(variant).front();
  request.planning = planning;
  struct alignas(256) Line {
    unsigned char bytes[256];
  };
  std::vector<Line> workspace(variant.workspace_bytes(request) / sizeof(Line) + 1);
  request.workspace = workspace.data();
  variant.plan(request);
}

TEST(FftwPlans, OnlyPlansOfManyCallsAreTimedAndNotForLong) {
  for (const auto& [id, problem] :
       {std::pair{"cpu_fft", "one-to-one/8x12/8x12/1:1/full"},
        std::pair{"timeseries_cpu_fft", "n-to-m/1x16/1x100000/4:1/valid"}}) {
    plan(id, problem, Planning::once);
    ASSERT_FALSE(flags_asked.empty()) << id;
    for (const unsigned flags : flags_asked) EXPECT_TRUE(flags & FFTW_ESTIMATE) << id;
    plan(id, problem, Planning::measured);
    ASSERT_FALSE(flags_asked.empty()) << id;
    for (const unsigned flags : flags_asked) EXPECT_FALSE(flags & FFTW_ESTIMATE) << id;
    ASSERT_FALSE(limits_asked.empty()) << id;
    EXPECT_GT(limits_asked.front(), 0) << id;
    EXPECT_EQ(limits_asked.back(), FFTW_NO_TIMELIMIT) << id;
  }
}

}  // namespace
}  // namespace xcorr
