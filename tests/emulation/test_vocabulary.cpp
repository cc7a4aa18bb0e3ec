// The emulated names mean what CUDA's do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <type_traits>
#include <typeinfo>

#include "algorithms/blocks/divide.hpp"
#include "algorithms/blocks/streams.hpp"
#include "algorithms/device/cuda.hpp"
#include "algorithms/device/matrix.hpp"

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

template <int kWords>
__global__ void static_beside_dynamic_kernel() {
  XCORR_SHARED(float, words, kWords);
  words[0] = dynamic_shared<float>()[0];
}

// launch() asks CUDA for dynamic memory beyond 48 KiB, and CUDA counts static memory too.
TEST(Vocabulary, static_and_dynamic_shared_memory_count_together) {
  const auto refused = [](auto kernel, std::size_t dynamic) {
    try {
      launch(kernel, dim3(1), dim3(32), dynamic, nullptr);
      return std::string();
    } catch (const Fault& fault) {
      return std::string(fault.what());
    }
  };
  EXPECT_EQ(refused(static_beside_dynamic_kernel<256>, 47 * 1024), "");
  EXPECT_EQ(refused(static_beside_dynamic_kernel<256>, 49 * 1024), "");
  EXPECT_EQ(refused(static_beside_dynamic_kernel<256>, kMostSharedBytes - 1024), "");
  EXPECT_THAT(refused(static_beside_dynamic_kernel<256>, 47 * 1024 + 4),
              testing::HasSubstr("48 KiB together"));
  EXPECT_THAT(refused(static_beside_dynamic_kernel<256>, kMostSharedBytes - 1020),
              testing::HasSubstr("more than a block has"));
  EXPECT_THAT(refused(static_beside_dynamic_kernel<257>, 4), testing::HasSubstr("1024 static"));
}

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

TEST(Vocabulary, inverse_roots_have_38_bits) {
  for (int power = -1000; power <= 1000; power += 7) {
    for (const double value : {1.0, 1.3, 2.0, 3.999}) {
      const double scaled = std::ldexp(value, power), root = inverse_root(scaled);
      EXPECT_LE(std::abs(root * root * scaled - 1), 0x1p-37) << scaled;
    }
  }
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

// Two groups in turns: each adds to what the other left, and only who is to add waits.
__global__ void turns_kernel(int* data) {
  XCORR_SHARED(int, tile, 2 * warp::kSize);
  const int thread = static_cast<int>(threadIdx.x), group = thread / (2 * warp::kSize);
  const int place = thread % (2 * warp::kSize);
  constexpr int kAll = 4 * warp::kSize;
  if (group == 0) tile[place] = 1;
  if (group == 1) block::arrive(1, kAll);
  for (int i = 0; i < 3; ++i) {
    block::wait(1 + group, kAll);
    const int other = tile[2 * warp::kSize - 1 - place];
    block::barrier(3 + group, 2 * warp::kSize);
    tile[place] = 2 * other + group;
    block::arrive(2 - group, kAll);
    data[thread] = tile[place];
  }
  if (group == 0) block::wait(1, kAll);
}

// Each lane copies a word; `waits`: before it reads its own.
int words_that_came(bool waits, bool commits, std::uint64_t order) {
  std::vector<float> from(32), to(32, -1.0f);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<float>(i);
  set_order(order);
  run_grid(1, 32, 32 * sizeof(float), [&] {
    float* const shared = dynamic_shared<float>();
    async_copy::copy<1>(shared + threadIdx.x, from.data() + threadIdx.x, threadIdx.x % 2 == 0);
    if (commits) async_copy::commit();
    if (waits) async_copy::wait();
    to[threadIdx.x] = shared[threadIdx.x];
    if (!waits) async_copy::wait();
  });
  int came = 0;
  for (std::size_t i = 0; i < to.size(); ++i) came += to[i] == (i % 2 == 0 ? from[i] : 0.0f);
  return came;
}

TEST(Vocabulary, asynchronous_copies_may_come_late) {
  EXPECT_EQ(words_that_came(true, true, 1), 32);
  const int early = words_that_came(false, true, 2);
  EXPECT_GT(early, 0);
  EXPECT_LT(early, 32);
  EXPECT_THROW(words_that_came(true, false, 3), Fault);
}

TEST(Vocabulary, barriers_with_numbers_hold_who_waits_at_them_only) {
  constexpr int kHalf = 2 * warp::kSize;
  for (std::uint64_t seed = 1; seed < 6; ++seed) {
    set_order(seed);
    std::vector<int> of_groups(2 * kHalf), of_turns(2 * kHalf);
    launch(group_kernel, 1, 2 * kHalf, 0, nullptr, of_groups.data());
    launch(turns_kernel, 1, 2 * kHalf, 0, nullptr, of_turns.data());
    for (int i = 0; i < kHalf; ++i) {
      EXPECT_EQ(of_groups[i], kHalf - 1 - i);
      EXPECT_EQ(of_groups[kHalf + i], kHalf + i);
      EXPECT_EQ(of_turns[kHalf + i], 64 + 21);
    }
  }
}

TEST(Vocabulary, tf32_has_ten_fraction_bits_and_halves_are_those_of_ieee) {
  const auto tf32 = [](float value) { return matrix::of_tf32(matrix::to_tf32(value)); };
  EXPECT_EQ(tf32(2047), 2047);
  EXPECT_EQ(tf32(2049), 2050);  // a tie, away from zero
  EXPECT_EQ(tf32(-2049), -2050);
  EXPECT_EQ(tf32(1 + 0x1p-11f - 0x1p-23f), 1);
  EXPECT_EQ(tf32(0x1.fffp127f), HUGE_VAL);
  EXPECT_EQ(tf32(0x1p-149f), 0);
  const std::pair<float, std::uint32_t> halves[] = {{0, 0},
                                                    {-1, 0xbc00},
                                                    {65504, 0x7bff},
                                                    {65520, 0x7c00},
                                                    {-1e9f, 0xfc00},
                                                    {2049, 0x6800},
                                                    {2051, 0x6802},  // ties, to even
                                                    {0x1p-14f, 0x400},
                                                    {0x1p-24f, 1},
                                                    {0x1p-25f, 0},
                                                    {0x1.8p-24f, 2},
                                                    {0x1.ff8p-15f, 0x3ff},
                                                    {0x1.ffcp-15f, 0x400},
                                                    {-0.0f, 0x8000},
                                                    {1e-30f, 0}};
  for (const auto& [value, bits] : halves) {
    EXPECT_EQ(matrix::to_halves(value, 1), bits | 0x3c000000u) << value;
    EXPECT_EQ(matrix::to_halves(1, value), bits << 16 | 0x3c00u) << value;
  }
  for (std::uint32_t bits = 0; bits < 0x7c00; ++bits) {
    ASSERT_EQ(matrix::to_half(static_cast<float>(matrix::of_half(bits))), bits);
  }
}

// The matrices of one warp, dense by rows.
struct Matrices {
  std::uint32_t left[16 * 16], right[16 * 16];
  float sum[16 * 16], in_half[16 * 8], loaded[16 * 16];
};

// The fragments as PTX ISA, Matrix Fragments, states them: by groups of four lanes.
__global__ void product_kernel(Matrices* m) {
  const int group = warp::lane() / 4, in_group = warp::lane() % 4;
  const auto element = [](const std::uint32_t* matrix, int cols, int row, int col) {
    return matrix::to_tf32(static_cast<float>(matrix[row * cols + col]));
  };
  std::uint32_t a[4], b[4];
  for (int i = 0; i < 4; ++i) {
    a[i] =
        element(m->left, 16, i == 0 || i == 2 ? group : group + 8, i < 2 ? in_group : in_group + 4);
    b[i] = element(m->right, 16, in_group + (i % 2 == 0 ? 0 : 4), group + (i < 2 ? 0 : 8));
  }
  const auto store = [&](float* sum, int cols, const float (&d)[4], int from) {
    for (int i = 0; i < 4; ++i) {
      sum[(i < 2 ? group : group + 8) * cols + from + in_group * 2 + (i & 1)] = d[i];
    }
  };
  // The first 8 columns by mma.sync; all 16 by wmma, from a sum of 1000 on.
  float d[4] = {}, wide[2][4];
  matrix::add_product_tf32(d, a, b[0], b[1]);
  store(m->sum, 16, d, 0);
  for (float& value : wide[0]) value = 1000;
  for (float& value : wide[1]) value = 1000;
  matrix::add_product_16_columns(wide[0], wide[1], a, b);
  store(m->sum, 16, wide[1], 8);
  for (float& value : wide[0]) value -= 1000;
  for (int i = 0; i < 4; ++i) {
    if (wide[0][i] != d[i]) m->sum[0] = NAN;
  }
  // 16 left columns, two to a word; right rows likewise.
  std::uint32_t pairs[4], rows[2];
  const auto half = [](std::uint32_t value) { return static_cast<float>(value); };
  for (int i = 0; i < 4; ++i) {
    const std::uint32_t* at =
        m->left + (i % 2 == 0 ? group : group + 8) * 16 + in_group * 2 + (i >= 2 ? 8 : 0);
    pairs[i] = matrix::to_halves(half(at[0]), half(at[1]));
  }
  for (int i = 0; i < 2; ++i) {
    const std::uint32_t* at = m->right + (in_group * 2 + i * 8) * 16 + group;
    rows[i] = matrix::to_halves(half(at[0]), half(at[16]));
  }
  float e[4] = {};
  matrix::add_product_half(e, pairs, rows[0], rows[1]);
  store(m->in_half, 8, e, 0);
  // Through shared memory, with a pitch of 24 words.
  std::uint32_t* const shared = dynamic_shared<std::uint32_t>();
  for (int i = warp::lane(); i < 16 * 16; i += warp::kSize) {
    shared[i / 16 * 24 + i % 16] = element(m->left, 16, i / 16, i % 16);
    shared[(16 + i / 16) * 24 + i % 16] = element(m->right, 16, i / 16, i % 16);
  }
  warp::barrier();
  float f[2][4] = {};
  matrix::load_left(a, shared + 8, 24);  // columns 8 to 15
  matrix::load_right(b, shared + (16 + 8) * 24, 24);
  matrix::add_product_16_columns(f[0], f[1], a, b);
  store(m->loaded, 16, f[0], 0);
  store(m->loaded, 16, f[1], 8);
}

TEST(Vocabulary, matrix_products_have_the_documented_fragments) {
  Matrices m;
  for (std::uint32_t i = 0; i < 256; ++i) {
    m.left[i] = (i * i * 7 + i * 13) % 31;
    m.right[i] = (i * i * 5 + i * 29 + 3) % 37;
  }
  launch(product_kernel, 1, warp::kSize, 32 * 24 * sizeof(std::uint32_t), nullptr, &m);
  const auto product = [&](int row, int col, int from, int to) {
    std::uint32_t sum = 0;
    for (int k = from; k < to; ++k) sum += m.left[row * 16 + k] * m.right[k * 16 + col];
    return sum;
  };
  for (int row = 0; row < 16; ++row) {
    for (int col = 0; col < 16; ++col) {
      const std::uint32_t first = product(row, col, 0, 8), second = product(row, col, 8, 16);
      EXPECT_EQ(m.sum[row * 16 + col], first + (col < 8 ? 0 : 1000)) << row << " " << col;
      EXPECT_EQ(m.loaded[row * 16 + col], second) << row << " " << col;
      if (col < 8) {
        EXPECT_EQ(m.in_half[row * 8 + col], first + second) << row << " " << col;
      }
    }
  }
}

__global__ void misaligned_kernel(int offset, int pitch) {
  std::uint32_t a[4];
  matrix::load_left(a, dynamic_shared<std::uint32_t>() + offset, pitch);
}

TEST(Vocabulary, a_matrix_that_is_loaded_is_aligned) {
  EXPECT_NO_THROW(launch(misaligned_kernel, 1, warp::kSize, 2048, nullptr, 8, 12));
  EXPECT_THROW(launch(misaligned_kernel, 1, warp::kSize, 2048, nullptr, 4, 12), Fault);
  EXPECT_THROW(launch(misaligned_kernel, 1, warp::kSize, 2048, nullptr, 8, 13), Fault);
}

// Both warps have the same rows here. Half of the rows of the right matrix lie 2048 bytes further, the next 8 columns 128
// bytes. The sums begin with 5.
template <bool kHalf, bool kAdd, int kColumns>
__global__ void warpgroup_kernel(const std::uint32_t* left, const std::uint32_t* right,
                                 float* sum) {
  constexpr int kDepth = kHalf ? 16 : 8;
  const auto word = [](const std::uint32_t* of, int at, int next) {
    const auto value = [&](int i) { return static_cast<float>(of[i]); };
    return kHalf ? matrix::to_halves(value(at), value(at + next)) : matrix::to_tf32(value(at));
  };
  auto* const shared = dynamic_shared<std::uint32_t>();
  const int thread = static_cast<int>(threadIdx.x), lane = warp::lane();
  for (int i = thread; i < 8 * kColumns; i += kThreads) {
    const int row = i / kColumns, col = i % kColumns;  // in words
    shared[row / 4 * 512 + col * 4 + row % 4] =
        word(right, row * (kDepth / 8) * kColumns + col, kColumns);
  }
  block::barrier();
  std::uint32_t a[4];
  for (int i = 0; i < 4; ++i) {
    const int row = lane / 4 + i % 2 * 8, col = lane % 4 + (i < 2 ? 0 : 4);
    a[i] = word(left, row * kDepth + col * (kDepth / 8), 1);
  }
  float d[kColumns / 2];
  for (float& value : d) value = 5;
  const auto b = warpgroup::right_matrix(shared, 2048, 128);
  if constexpr (kHalf) {
    warpgroup::add_product_half<kAdd>(d, a, b);
  } else {
    warpgroup::add_product_tf32<kAdd>(d, a, b);
  }
  for (int i = 0; i < kColumns / 2; ++i) {
    const int row = lane / 4 + (i & 2) * 4, col = i / 4 * 8 + lane % 4 * 2 + (i & 1);
    sum[(thread / 32 * 16 + row) * kColumns + col] = d[i];
  }
}

template <bool kHalf, bool kAdd, int kColumns>
void check_warpgroup_product() {
  constexpr int kDepth = kHalf ? 16 : 8;
  std::vector<std::uint32_t> left(16 * kDepth), right(kDepth * kColumns);
  for (std::uint32_t i = 0; i < left.size(); ++i) left[i] = (i * i * 7 + i) % 29;
  for (std::uint32_t i = 0; i < right.size(); ++i) right[i] = (i * i * 3 + i * 11) % 31;
  std::vector<float> sum(kWarps * 16 * kColumns);
  launch(warpgroup_kernel<kHalf, kAdd, kColumns>, 1, kThreads, 4096, nullptr, left.data(),
         right.data(), sum.data());
  for (int i = 0; i < kWarps * 16 * kColumns; ++i) {
    const int row = i / kColumns % 16, col = i % kColumns;
    std::uint32_t expected = kAdd ? 5 : 0;
    for (int k = 0; k < kDepth; ++k) {
      expected += left[row * kDepth + k] * right[k * kColumns + col];
    }
    ASSERT_EQ(sum[i], expected) << row << " " << col;
  }
}

TEST(Vocabulary, a_warpgroup_product_reads_its_right_matrix_from_shared_memory) {
  check_warpgroup_product<false, true, 128>();
  check_warpgroup_product<false, false, 64>();
  check_warpgroup_product<true, true, 128>();
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

__global__ void throwing_kernel() {
  if (threadIdx.x == 5) throw std::out_of_range("thread 5");
  block::barrier();
}

TEST(Vocabulary, faults_and_exceptions_of_a_thread_reach_the_caller) {
  // A warp operation needs a whole warp.
  EXPECT_THROW(launch(partial_kernel, 1, 48, 0, nullptr), Fault);
  EXPECT_THROW(launch(throwing_kernel, 1, 64, 0, nullptr), std::out_of_range);
}

}  // namespace
}  // namespace xcorr::emulation
