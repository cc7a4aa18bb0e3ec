// The emulated names mean what CUDA's do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <type_traits>
#include <typeinfo>

#include "algorithms/device/cuda.hpp"
#include "algorithms/device/divide.hpp"
#include "algorithms/device/streams.hpp"

namespace xcorr::emulation {
namespace {

constexpr int kWarps = 2, kThreads = kWarps * warp::kSize;

// Eight results of each thread.
__global__ void warp_kernel(double* out) {
  const int thread = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x);
  const double value = 100 + thread;
  double* mine = out + 8 * thread;
  mine[0] = warp::shuffle(value, 35);
  mine[1] = warp::shuffle_down(value, 30);
  mine[2] = warp::shuffle_up(value, 3);
  mine[3] = warp::shuffle_xor(value, 1);
  mine[4] = warp::rotate(value, 1);
  mine[5] = warp::reduce_add(value);
  mine[6] = warp::any(thread == 40);
  mine[7] = warp::lane();
}

TEST(Vocabulary, warp_operations) {
  std::vector<double> out(8 * kThreads);
  launch(warp_kernel, 1, dim3(16, 4), 0, nullptr, out.data());
  for (int thread = 0; thread < kThreads; ++thread) {
    const int lane = thread % 32, first = 100 + thread - lane;
    EXPECT_THAT(std::vector<double>(out.begin() + 8 * thread, out.begin() + 8 * thread + 8),
                testing::ElementsAre(first + 3, first + (lane < 2 ? lane + 30 : lane),
                                     first + (lane < 3 ? lane : lane - 3), first + (lane ^ 1),
                                     first + (lane + 1) % 32, 32 * first + 31 * 16,
                                     thread >= 32 ? 1 : 0, lane));
  }
}

// Each block has its own part of both arrays.
__global__ void reverse_kernel(float* data, float* before) {
  data += blockIdx.x * kThreads;
  before += 2 * blockIdx.x * kThreads;
  XCORR_SHARED(float, tile, kThreads);
  float* dynamic = dynamic_shared<float>();
  before[2 * threadIdx.x] = tile[threadIdx.x];
  before[2 * threadIdx.x + 1] = dynamic[threadIdx.x];
  tile[threadIdx.x] = data[threadIdx.x];
  block::barrier();
  dynamic[threadIdx.x] = tile[kThreads - 1 - threadIdx.x];
  warp::barrier();
  data[threadIdx.x] = dynamic[threadIdx.x];
}

TEST(Vocabulary, shared_memory_is_garbage_at_first_and_of_the_block) {
  constexpr int kBlocks = 3;
  std::vector<float> data(kBlocks * kThreads), before(kBlocks * 2 * kThreads);
  std::iota(data.begin(), data.end(), 0.0f);
  launch(reverse_kernel, kBlocks, kThreads, kThreads * sizeof(float), nullptr, data.data(),
         before.data());
  for (int i = 0; i < kBlocks * kThreads; ++i) {
    EXPECT_EQ(data[i], i / kThreads * kThreads + kThreads - 1 - i % kThreads);
  }
  for (const float value : before) EXPECT_TRUE(std::isnan(value));
}

__global__ void overrun_kernel(std::size_t index) { dynamic_shared<float>()[index] = 1; }

TEST(VocabularyDeathTest, shared_memory_is_exact) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  launch(overrun_kernel, 1, 1, 4 * sizeof(float), nullptr, 3);
  EXPECT_DEATH(launch(overrun_kernel, 1, 1, 4 * sizeof(float), nullptr, 4), "heap-buffer-overflow");
}

__global__ void count_kernel(std::uint64_t* count, dim3 grid, dim3 block) {
  const bool same = gridDim.x == grid.x && gridDim.y == grid.y && gridDim.z == grid.z &&
                    blockDim.x == block.x && blockDim.y == block.y && blockDim.z == block.z;
  const std::uint64_t blocks = blockIdx.x + grid.x * (blockIdx.y + grid.y * blockIdx.z);
  const std::uint64_t threads = threadIdx.x + block.x * (threadIdx.y + block.y * threadIdx.z);
  if (same) atomic_add(count, std::uint64_t{1} + 1000 * (blocks * block.count() + threads));
}

TEST(Vocabulary, indices_and_atomics) {
  std::uint64_t count = 1;
  clear(&count, sizeof count, nullptr);
  const dim3 grid(3, 2, 2), block(5, 4, 3);
  launch(count_kernel, grid, block, 0, nullptr, &count, grid, block);
  const std::uint64_t n = grid.count() * block.count();
  EXPECT_EQ(count, n + 1000 * (n * (n - 1) / 2));
}

// Six results of each thread; lanes of a warp stand on both sides.
__global__ void choose_kernel(double* out) {
  const int thread = static_cast<int>(threadIdx.x);
  double* mine = out + 6 * thread;
  mine[0] = select(thread % 2 == 0, 0.5f, -1.0f);
  mine[1] = select(thread % 2 == 0, 1e300, -1e300);
  mine[2] = select(thread < 40, select(thread < 8, 1.0f, 2.0f), 3.0f);
  mine[3] = select(thread > 3, 1.0f, NAN);  // the other side leaves no trace
  mine[4] = std::signbit(select(thread > 3, -0.0, 0.0));
  mine[5] = opaque(thread) + opaque(-thread * thread);
}

TEST(Vocabulary, select_takes_one_side_and_opaque_changes_nothing) {
  std::vector<double> out(6 * kThreads);
  launch(choose_kernel, 1, kThreads, 0, nullptr, out.data());
  for (int thread = 0; thread < kThreads; ++thread) {
    const double* mine = out.data() + 6 * thread;
    EXPECT_EQ(mine[0], thread % 2 == 0 ? 0.5 : -1);
    EXPECT_EQ(mine[1], thread % 2 == 0 ? 1e300 : -1e300);
    EXPECT_EQ(mine[2], thread < 8 ? 1 : thread < 40 ? 2 : 3);
    EXPECT_EQ(std::isnan(mine[3]), thread <= 3);
    EXPECT_EQ(mine[4], thread > 3 ? 1 : 0);
    EXPECT_EQ(mine[5], thread - thread * thread);
  }
  static_assert(std::is_same_v<decltype(select(true, 1.0f, 2.0f)), float>);
  static_assert(std::is_same_v<decltype(select(true, 1.0, 2.0)), double>);
  static_assert(std::is_same_v<decltype(opaque(1)), int>);
  EXPECT_EQ(opaque(std::numeric_limits<int>::min()), std::numeric_limits<int>::min());
  EXPECT_EQ(opaque(std::numeric_limits<int>::max()), std::numeric_limits<int>::max());
}

TEST(Vocabulary, loads_outside_are_zero) {
  const std::vector<int> matrix = {1, 2, 3, 4, 5, 6};
  for (int y = -2; y < 4; ++y) {
    for (int x = -2; x < 5; ++x) {
      const bool inside = y >= 0 && y < 2 && x >= 0 && x < 3;
      EXPECT_EQ(load_or_zero(matrix.data(), y, x, 2, 3), inside ? matrix[3 * y + x] : 0);
    }
  }
  for (int x = -2; x < 5; ++x)
    EXPECT_EQ(load_or_zero(matrix.data(), x, 3), x >= 0 && x < 3 ? x + 1 : 0);
}

TEST(Vocabulary, launches_that_a_gpu_refuses) {
  std::uint64_t count = 0;
  const auto refused = [&](dim3 grid, dim3 block, std::size_t shared) {
    EXPECT_THROW(launch(count_kernel, grid, block, shared, nullptr, &count, grid, block), Fault);
  };
  refused(dim3(1, kGridLimitYZ + 1), 1, 0);
  refused(dim3(1, 1, kGridLimitYZ + 1), 1, 0);
  refused(1, 1025, 0);
  refused(0, 32, 0);
  refused(1, 32, 228 * 1024);
}

TEST(Vocabulary, attributes_do_not_change_what_is_computed) {
  std::uint64_t count = 0;
  const dim3 grid(2), block(32);
  for (const LaunchAttributes attributes :
       {LaunchAttributes{.cooperative = true}, LaunchAttributes{.dependent = true}}) {
    clear(&count, sizeof count, nullptr);
    launch(attributes, count_kernel, grid, block, 0, nullptr, &count, grid, block);
    EXPECT_EQ(count, 64 + 1000 * (64 * 63 / 2));
  }
}

// The first warp writes for the second, which alone waits for it; the other two are another group.
__global__ void group_kernel(int* data) {
  XCORR_SHARED(int, tile, 4 * warp::kSize);
  const int thread = static_cast<int>(threadIdx.x), group = thread / (2 * warp::kSize);
  tile[thread] = thread;
  if (group == 0) block::barrier(1, 2 * warp::kSize);
  data[thread] = tile[group == 0 ? 2 * warp::kSize - 1 - thread : thread];
}

TEST(Vocabulary, a_barrier_of_some_warps_holds_these_only) {
  for (std::uint64_t seed = 1; seed < 6; ++seed) {
    set_order(seed);
    std::vector<int> data(4 * warp::kSize);
    launch(group_kernel, 1, 4 * warp::kSize, 0, nullptr, data.data());
    for (int i = 0; i < 2 * warp::kSize; ++i) EXPECT_EQ(data[i], 2 * warp::kSize - 1 - i);
    for (int i = 2 * warp::kSize; i < 4 * warp::kSize; ++i) EXPECT_EQ(data[i], i);
  }
}

// libxcorr, which is in this process too, may define the same names without the emulation.
TEST(Vocabulary, emulated_code_has_names_of_its_own) {
  for (const std::type_info* type :
       {&typeid(device::Streams), &typeid(device::DependentLaunches), &typeid(Divider)}) {
    EXPECT_THAT(type->name(), testing::HasSubstr("emulated"));
  }
  EXPECT_THAT(typeid(Problem).name(), testing::Not(testing::HasSubstr("emulated")));
}

__global__ void partial_kernel() { warp::any(true); }

TEST(Vocabulary, a_warp_operation_needs_a_whole_warp) {
  EXPECT_THROW(launch(partial_kernel, 1, 48, 0, nullptr), Fault);
}

__global__ void throwing_kernel() {
  if (threadIdx.x == 5) throw std::out_of_range("thread 5");
  block::barrier();
}

TEST(Vocabulary, exceptions_of_a_thread_reach_the_caller) {
  EXPECT_THROW(launch(throwing_kernel, 1, 64, 0, nullptr), std::out_of_range);
}

}  // namespace
}  // namespace xcorr::emulation
