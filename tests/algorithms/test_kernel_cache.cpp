// Machine code on disk: found again, never damaged, never of another key, whole under many writers.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "algorithms/template_matching/template_pearson_jit/kernel_cache.hpp"

namespace xcorr::template_matching {
namespace {

std::vector<char> bytes(const std::string& text) { return {text.begin(), text.end()}; }

class Cache : public testing::Test {
 protected:
  void SetUp() override {
    const auto* const test = testing::UnitTest::GetInstance()->current_test_info();
    folder = std::filesystem::path(testing::TempDir()) /
             ("kernel-cache-" + std::to_string(getpid()) + test->name());
    std::filesystem::remove_all(folder);
  }
  void TearDown() override { std::filesystem::remove_all(folder); }
  std::string content(const std::string& key) const {
    std::ifstream file(KernelCache(folder).path(key), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  void put(const std::string& key, const std::string& text) const {
    std::ofstream(KernelCache(folder).path(key), std::ios::binary) << text;
  }
  std::filesystem::path folder;
};

TEST_F(Cache, FindsWhatItKept) {
  const KernelCache cache(folder / "made" / "when needed");
  EXPECT_FALSE(cache.find("key"));
  ASSERT_TRUE(cache.keep("key", {bytes("code"), 1234.5}));
  const auto found = cache.find("key");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->code, bytes("code"));
  EXPECT_EQ(found->compile_us, 1234.5);
  EXPECT_FALSE(cache.find("another key"));
}

TEST_F(Cache, AnotherKeyInTheFileOfThisOneIsNoHit) {
  const KernelCache cache(folder);
  ASSERT_TRUE(cache.keep("one", {bytes("code"), 1}));
  std::filesystem::copy_file(cache.path("one"),
                             cache.path("two"));  // as if their hashes were equal
  EXPECT_FALSE(cache.find("two"));
}

TEST_F(Cache, EveryCutAndEveryChangedByteIsSeen) {
  const KernelCache cache(folder);
  ASSERT_TRUE(cache.keep("key", {bytes("machine code"), 7}));
  const std::string whole = content("key");
  for (std::size_t length = 0; length < whole.size(); ++length) {
    put("key", whole.substr(0, length));
    EXPECT_FALSE(cache.find("key")) << length << " bytes of " << whole.size();
  }
  put("key", whole + "x");
  EXPECT_FALSE(cache.find("key")) << "a byte too many";
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 4);
    put("key", changed);
    EXPECT_FALSE(cache.find("key")) << "byte " << at;
  }
  ASSERT_TRUE(cache.keep("key", {bytes("machine code"), 7})) << "a damaged file is replaced";
  EXPECT_TRUE(cache.find("key"));
}

TEST_F(Cache, ManyWritersLeaveOneWholeFile) {
  const KernelCache cache(folder);
  std::vector<std::thread> writers;
  for (int i = 0; i < 8; ++i) {
    writers.emplace_back([&cache, i] {
      const std::vector<char> code(10000 + static_cast<std::size_t>(i), static_cast<char>('a' + i));
      for (int round = 0; round < 20; ++round) {
        EXPECT_TRUE(cache.keep("key", {code, static_cast<double>(i)}));
        const auto found = cache.find("key");
        ASSERT_TRUE(found);
        EXPECT_EQ(found->code.size(), 10000 + static_cast<std::size_t>(found->compile_us));
      }
    });
  }
  for (std::thread& one : writers) one.join();
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& one : std::filesystem::directory_iterator(folder)) ++files;
  EXPECT_EQ(files, 1u) << "nothing is left behind";
}

TEST_F(Cache, KeepsNothingWhereNothingCanBeWritten) {
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "file") << "no folder";
  const KernelCache cache(folder / "file");
  EXPECT_FALSE(cache.keep("key", {bytes("code"), 1}));
  EXPECT_FALSE(cache.find("key"));
  EXPECT_FALSE(KernelCache({}).keep("key", {bytes("code"), 1}));
}

TEST_F(Cache, LiesWhereTheUserSays) {
  setenv("XCORR_CACHE_DIR", "/own", 1);
  EXPECT_EQ(KernelCache::usual_folder(), "/own");
  unsetenv("XCORR_CACHE_DIR");
  setenv("XDG_CACHE_HOME", "/user", 1);
  EXPECT_EQ(KernelCache::usual_folder(), "/user/xcorr-bench");
  unsetenv("XDG_CACHE_HOME");
  setenv("HOME", "/own/place", 1);
  EXPECT_EQ(KernelCache::usual_folder(), "/own/place/.cache/xcorr-bench");
}

}  // namespace
}  // namespace xcorr::template_matching
