// Machine code on disk is found again, never damaged, never of another key or compiler, and whole under many writers and
// where a writer is killed.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "algorithms/template_matching/run_time/kernel_cache.hpp"
#include "algorithms/template_matching/run_time/library_build.hpp"
#include "algorithms/template_matching/run_time/run_time_compiler.hpp"

namespace xcorr::template_matching {
namespace {

std::vector<char> bytes(const std::string& text) { return {text.begin(), text.end()}; }

constexpr std::size_t kBytes = 10000;

// Code that says by whom it is: as many bytes more as its number, all alike.
KernelCache::Entry numbered(int number, std::size_t bytes = kBytes) {
  const auto more = static_cast<std::size_t>(number);
  return {std::vector<char>(bytes + more, static_cast<char>('a' + number)),
          static_cast<double>(number)};
}
// The number of the whole entry that a cache has of "key"; -1 without one.
int number_in(const KernelCache& cache, std::size_t bytes = kBytes) {
  const auto found = cache.find("key");
  if (!found) return -1;
  const int number = static_cast<int>(found->compile_us);
  return found->code == numbered(number, bytes).code ? number : -1;
}

class Cache : public testing::Test {
 protected:
  Cache()
      : folder(std::filesystem::path(testing::TempDir()) /
               ("kernel-cache-" + std::to_string(getpid()) +
                testing::UnitTest::GetInstance()->current_test_info()->name())),
        cache(folder) {
    std::filesystem::remove_all(folder);
    umask(S_IWGRP | S_IWOTH);  // of files that tests write themselves
  }
  ~Cache() override { std::filesystem::remove_all(folder); }
  bool keep(const std::string& key = "key", const std::string& code = "code") const {
    return cache.keep(key, {bytes(code), 1});
  }
  void set_mode(const std::filesystem::path& path, mode_t mode) const {
    ASSERT_EQ(chmod(path.c_str(), mode), 0);
  }
  mode_t mode_of(const std::filesystem::path& path) const {
    struct stat status = {};
    EXPECT_EQ(stat(path.c_str(), &status), 0);
    return status.st_mode & 0777u;
  }
  void give(const std::filesystem::path& path, uid_t user) const {
    ASSERT_EQ(chown(path.c_str(), user, user), 0);
  }
  std::string content() const {
    std::ifstream file(cache.path("key"), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  void put(const std::string& text) const {
    std::ofstream(cache.path("key"), std::ios::binary) << text;
  }
  std::ptrdiff_t files() const {
    return std::distance(std::filesystem::directory_iterator(folder), {});
  }
  const std::filesystem::path folder;
  const KernelCache cache;
};

// A process of its own, which ends with 0 where `does` returns true.
pid_t started(const std::function<bool()>& does) {
  const pid_t process = fork();
  if (process == 0) _exit(does() ? 0 : 1);
  return process;
}
int waited(pid_t process) {
  int status = -1;
  EXPECT_EQ(waitpid(process, &status, 0), process);
  return status;
}

TEST_F(Cache, FindsWhatItKept) {
  const KernelCache made(folder / "made" / "when needed");
  EXPECT_FALSE(made.find("key"));
  ASSERT_TRUE(made.keep("key", {bytes("code"), 1234.5}));
  const auto found = made.find("key");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->code, bytes("code"));
  EXPECT_EQ(found->compile_us, 1234.5);
  EXPECT_FALSE(made.find("another key"));
}

TEST_F(Cache, AnotherKeyInTheFileOfThisOneIsNoHit) {
  ASSERT_TRUE(keep("one"));
  std::filesystem::copy_file(cache.path("one"),
                             cache.path("two"));  // as if their hashes were equal
  EXPECT_FALSE(cache.find("two"));
}

TEST_F(Cache, EveryCutAndEveryChangedByteIsSeen) {
  ASSERT_TRUE(cache.keep("key", {bytes("machine code"), 7}));
  const std::string whole = content();
  for (std::size_t length = 0; length < whole.size(); ++length) {
    put(whole.substr(0, length));
    EXPECT_FALSE(cache.find("key")) << length << " bytes of " << whole.size();
  }
  put(whole + "x");
  EXPECT_FALSE(cache.find("key")) << "a byte too many";
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 4);
    put(changed);
    EXPECT_FALSE(cache.find("key")) << "byte " << at;
  }
  ASSERT_TRUE(cache.keep("key", {bytes("machine code"), 7})) << "a damaged file is replaced";
  EXPECT_TRUE(cache.find("key"));
}

TEST_F(Cache, ManyThreadsLeaveOneWholeFile) {
  std::vector<std::thread> writers;
  for (int i = 0; i < 8; ++i) {
    writers.emplace_back([this, i] {
      for (int round = 0; round < 20; ++round) {
        EXPECT_TRUE(cache.keep("key", numbered(i)));
        EXPECT_GE(number_in(cache), 0);
      }
    });
  }
  for (std::thread& one : writers) one.join();
  EXPECT_EQ(files(), 1u) << "nothing is left behind";
}

TEST_F(Cache, ManyProcessesLeaveOneWholeFile) {
  std::vector<pid_t> writers;
  for (int i = 0; i < 6; ++i) {
    writers.push_back(started([&] {
      for (int round = 0; round < 50; ++round) {
        if (!cache.keep("key", numbered(i)) || number_in(cache) < 0) return false;
      }
      return true;
    }));
  }
  for (const pid_t one : writers) EXPECT_EQ(waited(one), 0);
  EXPECT_EQ(files(), 1u) << "nothing is left behind";
}

// The system ends the process by a signal where its file would become longer than it may.
TEST_F(Cache, AProcessThatIsKilledWhileItWritesLeavesTheOldEntry) {
  const auto killed_writer = [&](rlim_t bytes_until_killed) {
    return waited(started([&] {
      constexpr rlimit kNoCore = {0, 0};
      const rlimit most = {bytes_until_killed, bytes_until_killed};
      signal(SIGXFSZ, SIG_DFL);
      return setrlimit(RLIMIT_CORE, &kNoCore) == 0 && setrlimit(RLIMIT_FSIZE, &most) == 0 &&
             cache.keep("key", numbered(2));
    }));
  };
  const int first = killed_writer(5000);
  ASSERT_TRUE(WIFSIGNALED(first)) << "status " << first;
  EXPECT_EQ(files(), 1u) << "what was begun";
  EXPECT_FALSE(cache.find("key")) << "of nothing whole";
  ASSERT_TRUE(cache.keep("key", numbered(1)));
  for (const rlim_t bytes : {1, 39, 40, 5000, 10000}) {
    ASSERT_TRUE(WIFSIGNALED(killed_writer(bytes))) << bytes;
    EXPECT_EQ(number_in(cache), 1) << "killed after " << bytes << " bytes";
  }
  EXPECT_TRUE(cache.keep("key", numbered(3))) << "what is left is in nobody's way";
  EXPECT_EQ(number_in(cache), 3);
}

// While it writes the next entry, wherever it has got to: also between writing and renaming.
TEST_F(Cache, AProcessThatIsKilledAtAnyMomentLeavesAWholeEntry) {
  constexpr std::size_t kLarge = 300000;
  ASSERT_TRUE(cache.keep("key", numbered(0, kLarge)));
  for (int round = 0; round < 20; ++round) {
    int kept[2];  // a byte for each entry
    ASSERT_EQ(pipe(kept), 0);
    const pid_t writer = started([&] {
      for (int i = 1;; i = i % 9 + 1) {
        if (!cache.keep("key", numbered(i, kLarge)) || write(kept[1], "", 1) != 1) return false;
      }
    });
    close(kept[1]);
    char byte;
    for (int i = 0; i <= round % 4; ++i) ASSERT_EQ(read(kept[0], &byte, 1), 1);
    ASSERT_EQ(kill(writer, SIGKILL), 0);
    close(kept[0]);
    ASSERT_TRUE(WIFSIGNALED(waited(writer)));
    EXPECT_GE(number_in(cache, kLarge), 0) << "round " << round;
  }
}

// The checksum of a file is right, whoever has written it.
TEST_F(Cache, AFileThatOthersMayWriteIsNoHitAndIsNamed) {
  ASSERT_TRUE(keep());
  EXPECT_EQ(cache.untrusted("key"), "");
  for (const mode_t mode : {0620, 0602, 0666}) {
    set_mode(cache.path("key"), mode);
    EXPECT_FALSE(cache.find("key")) << mode;
    const std::string said = cache.untrusted("key");
    EXPECT_EQ(said.find(cache.path("key").string() + ": belongs to user "), 0u) << said;
    EXPECT_EQ(said.find('\n'), std::string::npos);
  }
  set_mode(cache.path("key"), 0644);
  EXPECT_TRUE(cache.find("key")) << "others may read it";
  EXPECT_EQ(cache.untrusted("key"), "");
  set_mode(cache.path("key"), 0666);
  ASSERT_TRUE(keep("key", "new")) << "it is replaced";
  EXPECT_EQ(cache.find("key")->code, bytes("new"));
}

TEST_F(Cache, AFolderThatOthersMayWriteHoldsNothing) {
  ASSERT_TRUE(keep());
  for (const mode_t mode : {01777, 0770, 0702}) {
    set_mode(folder, mode);
    EXPECT_FALSE(cache.find("key")) << mode;
    EXPECT_FALSE(keep("other")) << mode;
    const std::string said = cache.untrusted("key");
    EXPECT_EQ(said.find(folder.string() + ": belongs to user "), 0u) << said;
    EXPECT_NE(said.find("compiled again"), std::string::npos) << said;
  }
  set_mode(folder, 0755);
  EXPECT_TRUE(cache.find("key"));
  EXPECT_EQ(files(), 1u);
}

TEST_F(Cache, WhatBelongsToAnotherUserIsNoHit) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  constexpr uid_t kNobody = 65534;
  ASSERT_TRUE(keep());
  give(cache.path("key"), kNobody);
  EXPECT_FALSE(cache.find("key"));
  EXPECT_NE(cache.untrusted("key").find("belongs to user 65534 with mode 600"), std::string::npos);
  give(cache.path("key"), 0);
  EXPECT_TRUE(cache.find("key"));
  give(folder, kNobody);
  EXPECT_FALSE(cache.find("key"));
  EXPECT_FALSE(keep());
}

TEST_F(Cache, ALinkIsNotFollowedAndAPipeIsNotWaitedFor) {
  const KernelCache elsewhere(folder / "elsewhere");
  ASSERT_TRUE(elsewhere.keep("key", {bytes("code"), 1}));
  std::filesystem::create_symlink(elsewhere.path("key"), cache.path("key"));
  ASSERT_TRUE(elsewhere.find("key"));
  EXPECT_FALSE(cache.find("key"));
  ASSERT_EQ(mkfifo(cache.path("pipe").c_str(), 0600), 0);
  EXPECT_FALSE(cache.find("pipe"));
}

TEST_F(Cache, WhatItMakesIsOnlyTheUsersWhateverTheMask) {
  umask(0);
  const KernelCache with_slash(folder / "");
  ASSERT_TRUE(with_slash.keep("key", {bytes("code"), 1}));
  EXPECT_TRUE(with_slash.find("key"));
  EXPECT_EQ(mode_of(folder), 0700u);
  EXPECT_EQ(mode_of(with_slash.path("key")), 0600u);
}

TEST_F(Cache, AFileThatIsTooLargeIsNotRead) {
  ASSERT_TRUE(keep());
  std::filesystem::resize_file(cache.path("key"), KernelCache::kMostBytes + 1);
  EXPECT_FALSE(cache.find("key"));
}

TEST(Saying, WhatIsNotTrustedIsSaidOnce) {
  testing::internal::CaptureStderr();
  say_once("");
  say_once("/folder: others may write it");
  say_once("/folder: others may write it");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "warning: /folder: others may write it\n");
}

TEST_F(Cache, KeepsNothingWhereNothingCanBeWritten) {
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "file") << "no folder";
  const KernelCache in_file(folder / "file");
  EXPECT_FALSE(in_file.keep("key", {bytes("code"), 1}));
  EXPECT_FALSE(in_file.find("key"));
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

// Two builds of one library, as two patch releases of a compiler are, and a third one without a build id.
std::string build_of(const char* name) {
  void* const library = dlopen((std::string(PATCH_RELEASES) + "/" + name).c_str(), RTLD_NOW);
  EXPECT_NE(library, nullptr) << dlerror();
  return library_build(library);
}

TEST(LibraryBuild, TellsPatchReleasesApart) {
  const std::string one = build_of("libpatch_1.so"), two = build_of("libpatch_2.so");
  EXPECT_EQ(one.substr(0, 6), "build ");
  EXPECT_GE(one.size(), 6 + 2 * 8u) << one;
  EXPECT_EQ(one.find_first_not_of("0123456789abcdef", 6), std::string::npos) << one;
  EXPECT_NE(one, two);
  EXPECT_EQ(one, build_of("libpatch_1.so")) << "asked again";
}

TEST(LibraryBuild, IsTheSizeOfTheFileWhereThereIsNoBuildId) {
  const std::string name = "libpatch_without_id.so";
  const auto size = std::filesystem::file_size(std::filesystem::path(PATCH_RELEASES) / name);
  EXPECT_EQ(build_of(name.c_str()), "build of " + std::to_string(size) + " bytes");
  EXPECT_EQ(library_build(nullptr), "");
}

TEST_F(Cache, FindsNothingOfAnotherPatchReleaseArchitectureOrProgram) {
  const std::string key = kernel_key("NVRTC 13.0 build 1", 90, "program");
  ASSERT_TRUE(keep(key));
  EXPECT_TRUE(cache.find(key));
  EXPECT_FALSE(cache.find(kernel_key("NVRTC 13.0 build 2", 90, "program")));
  EXPECT_FALSE(cache.find(kernel_key("NVRTC 13.0 build 1", 80, "program")));
  EXPECT_FALSE(cache.find(kernel_key("NVRTC 13.0 build 1", 90, "another program")));
}

// Needs no GPU.
TEST(RunTimeCompiler, NamesItsBuildAndItsOptions) {
  const RunTimeCompiler& compiler = RunTimeCompiler::instance();
  if (!compiler.problem().empty()) GTEST_SKIP() << compiler.problem();
  const std::string& version = compiler.version();
  EXPECT_EQ(version.find("NVRTC 1"), 0u) << version;
  EXPECT_NE(version.find(" build "), std::string::npos) << version;
  EXPECT_NE(version.find(" -std=c++17"), std::string::npos) << version;
}

}  // namespace
}  // namespace xcorr::template_matching
