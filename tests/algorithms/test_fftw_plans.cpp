// What the FFTW variants ask of the planner. Functions here take the place of the FFTW functions that they call: these note
// the flags and pass the call on.
#include <dlfcn.h>
#include <fftw3.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "algorithms/blocks/fftw.hpp"
#include "harness/registry.hpp"
#include "tests/support/planned.hpp"

namespace {
std::vector<unsigned> flags_asked;
std::vector<double> limits_asked;
bool out_of_time = false;  // then the planner never learns what is timed
}  // namespace

extern "C" fftwf_plan fftwf_plan_dft_r2c_1d(int n, float* in, fftwf_complex* out, unsigned flags) {
  flags_asked.push_back(flags);
  static const auto next =
      reinterpret_cast<decltype(&fftwf_plan_dft_r2c_1d)>(dlsym(RTLD_NEXT, "fftwf_plan_dft_r2c_1d"));
  if (out_of_time && (flags & FFTW_WISDOM_ONLY)) return nullptr;
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
  PlanRequest request{parse_problem(problem), grid_points(variant).front()};
  request.planning = planning;
  const GlobalMemory workspace(variant.workspace_bytes(request));
  request.workspace = workspace.get();
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

// Wisdom in a folder of the test. What two objects do, two processes do: between them the planner forgets.
class WisdomOnDisk : public testing::Test {
 protected:
  WisdomOnDisk() {
    std::string name = (std::filesystem::temp_directory_path() / "xcorr-wisdom-XXXXXX").string();
    folder = mkdtemp(name.data());
    setenv("XCORR_CACHE_DIR", folder.c_str(), 1);
  }
  ~WisdomOnDisk() override {
    std::filesystem::permissions(folder, std::filesystem::perms::owner_all);
    std::filesystem::remove_all(folder);
  }

  // Whether the planner knows the transform of that length, or has to time it.
  template <typename T>
  static bool knows(int n, bool time_it = false) {
    std::vector<T> real(n + 2);
    const auto out = reinterpret_cast<typename device::Fftw<T>::Complex>(real.data());
    const auto plan = device::Fftw<T>::plan_r2c(n, real.data(), out,
                                                FFTW_MEASURE | (time_it ? 0 : FFTW_WISDOM_ONLY));
    if (plan != nullptr) device::Fftw<T>::destroy(plan);
    return plan != nullptr;
  }
  template <typename T>
  void learn(device::Wisdom<T>& wisdom, int n) {
    device::Fftw<T>::forget();
    wisdom.recall();
    knows<T>(n, true);
    wisdom.keep();
    device::Fftw<T>::forget();
  }
  template <typename T>
  bool later_process_knows(int n) {
    device::Fftw<T>::forget();
    device::Wisdom<T>(folder).recall();
    const bool found = knows<T>(n);
    device::Fftw<T>::forget();
    return found;
  }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder),
                                                  std::filesystem::directory_iterator()));
  }

  std::filesystem::path folder;
};

TEST_F(WisdomOnDisk, ALaterProcessKnowsWhatWasTimed) {
  device::Wisdom<float> one(folder);
  device::Wisdom<double> other(folder);
  EXPECT_NE(one.path(), other.path());
  learn(one, 60);
  EXPECT_TRUE(later_process_knows<float>(60));
  EXPECT_FALSE(later_process_knows<float>(72));
  EXPECT_FALSE(later_process_knows<double>(60)) << "float and double are apart";
  learn(other, 72);
  EXPECT_TRUE(later_process_knows<double>(72));
  EXPECT_FALSE(later_process_knows<float>(72));
}

TEST_F(WisdomOnDisk, ProcessesAtTheSameTimeLoseNothingOfEachOther) {
  device::Wisdom<float> one(folder), other(folder);
  one.recall(), other.recall();  // both have read before either writes
  learn(one, 60);
  learn(other, 72);
  learn(one, 84);
  for (const int n : {60, 72, 84}) EXPECT_TRUE(later_process_knows<float>(n)) << n;
  EXPECT_EQ(files(), 2u) << "the file and its lock, and no temporary one";
}

TEST_F(WisdomOnDisk, ADamagedFileIsNotReadAndIsReplaced) {
  device::Wisdom<float> one(folder);
  learn(one, 60);
  std::string whole;
  {
    std::ifstream file(one.path(), std::ios::binary);
    whole.assign(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  std::string changed = whole, of_another = whole;
  changed[whole.size() / 2] ^= 1;
  of_another.replace(of_another.find(fftwf_version), 4, "none");
  for (const std::string& damaged : {std::string("("), whole.substr(0, whole.size() / 2), changed,
                                     of_another, std::string(), whole + "late x"}) {
    std::ofstream(one.path(), std::ios::binary) << damaged;
    EXPECT_FALSE(later_process_knows<float>(60)) << damaged;
    device::Wisdom<float> next(folder);
    learn(next, 72);
    EXPECT_TRUE(later_process_knows<float>(72)) << damaged;
  }
}

TEST_F(WisdomOnDisk, AFileThatOthersMayWriteIsNotReadAndIsReplaced) {
  device::Wisdom<float> one(folder);
  learn(one, 60);
  for (const mode_t mode : {0664u, 0646u}) {
    ASSERT_EQ(chmod(one.path().c_str(), mode), 0);
    EXPECT_FALSE(later_process_knows<float>(60));
    device::Wisdom<float> next(folder);
    learn(next, 60);
    EXPECT_TRUE(later_process_knows<float>(60));
  }
}

TEST_F(WisdomOnDisk, NothingIsKeptWhereNothingCanBeWritten) {
  std::ofstream(folder / "file") << "no folder";
  for (const std::filesystem::path& where :
       {folder / "file", std::filesystem::path("/dev/null"), std::filesystem::path()}) {
    device::Wisdom<float> one(where);
    learn(one, 60);
    one.recall();
    EXPECT_TRUE(knows<float>(60)) << "this process knows it all the same";
  }
  EXPECT_EQ(files(), 1u);
}

bool timed() {
  return std::ranges::any_of(
      flags_asked, [](unsigned flags) { return !(flags & (FFTW_ESTIMATE | FFTW_WISDOM_ONLY)); });
}

using FftwPlansDeathTest = WisdomOnDisk;

// Each EXPECT_EXIT is a process of its own.
TEST_F(FftwPlansDeathTest, PlansAreTimedByTheFirstProcessOnly) {
  const auto plan_it = [](Planning planning) {
    plan("cpu_fft", "one-to-one/8x12/8x12/1:1/full", planning);
    std::exit(flags_asked.empty() ? 2 : timed());
  };
  EXPECT_EXIT(plan_it(Planning::kept), testing::ExitedWithCode(1), "");
  EXPECT_EXIT(plan_it(Planning::kept), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(plan_it(Planning::measured), testing::ExitedWithCode(1), "") << "a first plan";
}

TEST_F(FftwPlansDeathTest, ATransformThatRanOutOfTimeIsNotTimedAgain) {
  const auto plan_it = [] {
    out_of_time = true;
    plan("cpu_fft", "one-to-one/8x12/8x12/1:1/full", Planning::kept);
    std::exit(timed());
  };
  EXPECT_EXIT(plan_it(), testing::ExitedWithCode(1), "");
  EXPECT_EXIT(plan_it(), testing::ExitedWithCode(0), "");
}

// Estimates that take no Planner would be other plans with what a measured plan has left.
TEST(FftwPlans, AMeasuredPlanLeavesNothingToThePlanner) {
  plan("cpu_fft", "one-to-one/8x12/8x12/1:1/full", Planning::measured);
  char* const left = fftwf_export_wisdom_to_string();
  const std::string text = left;
  std::free(left);
  fftwf_forget_wisdom();
  char* const none = fftwf_export_wisdom_to_string();
  EXPECT_EQ(text, none);
  std::free(none);
}

}  // namespace
}  // namespace xcorr
