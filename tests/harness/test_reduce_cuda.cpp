// The reduction of surfaces on a GPU gives what the reduction on the host gives. Needs a device.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "harness/device/cuda_owned.hpp"
#include "harness/problem/results.hpp"
#include "harness/reduce/reduce.hpp"
#include "harness/registry.hpp"
#include "tests/support/fixture.hpp"
#include "tests/support/records.hpp"

namespace xcorr {
namespace {

class ReduceOnCuda : public testing::Test {
 protected:
  void SetUp() override {
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) GTEST_SKIP() << "no CUDA device";
    cudaStream_t made{};
    require_cuda(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking), "stream");
    stream.reset(made);
  }
  CudaStream stream;

  // What the GPU writes, by a call of its own and by the replay of a captured call.
  template <typename T>
  std::vector<char> by_gpu(const Problem& problem, const std::vector<T>& surface, bool captured) {
    const Precision precision = sizeof(T) == 8 ? Precision::fp64 : Precision::fp32;
    const auto bytes = static_cast<Index>(problem.result_bytes(sizeof(T)));
    DeviceArray<T> in(static_cast<Index>(surface.size()));
    DeviceArray<char> out(bytes), scratch(static_cast<Index>(ReduceScratch(problem).bytes) + 256);
    const auto copy = [&](void* to, const void* from, std::size_t size) {
      require_cuda(cudaMemcpyAsync(to, from, size, cudaMemcpyDefault, stream.get()), "copy");
      require_cuda(cudaStreamSynchronize(stream.get()), "copy");
    };
    copy(in.get(), surface.data(), in.bytes());
    require_cuda(cudaMemsetAsync(out.get(), 0x7f, out.bytes(), stream.get()), "fill");
    require_cuda(cudaMemsetAsync(scratch.get(), 0xff, scratch.bytes(), stream.get()), "fill");
    const auto reduce = [&] {
      reduce_on_cuda(problem, precision, in.get(), scratch.get(), out.get(), stream.get());
    };
    if (captured) {
      cudaGraph_t made{};
      cudaGraphExec_t instantiated{};
      require_cuda(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal), "graph");
      reduce();
      require_cuda(cudaStreamEndCapture(stream.get(), &made), "graph");
      const CudaGraph graph(made);
      require_cuda(cudaGraphInstantiate(&instantiated, graph.get(), 0), "graph");
      const CudaGraphExec executable(instantiated);
      for (int i = 0; i < 2; ++i) {
        require_cuda(cudaGraphLaunch(executable.get(), stream.get()), "graph");
      }
      require_cuda(cudaStreamSynchronize(stream.get()), "graph");
    } else {
      reduce();
    }
    std::vector<char> result(out.bytes());
    copy(result.data(), out.get(), result.size());
    return result;
  }
};

// Detections in an order, so that lists can be compared.
std::vector<char> sorted(const Problem& problem, std::vector<char> records) {
  const Listed found = listed(problem, records.data());
  std::memcpy(records.data() + sizeof(AboveHeader), found.sorted.data(),
              found.sorted.size() * sizeof(Detection));
  return records;
}

void expect_equal(const Problem& problem, std::vector<char> got, std::vector<char> want) {
  const Result& result = problem.fields.result;
  if (result.kind == ResultKind::above) {
    got = sorted(problem, got);
    want = sorted(problem, want);
  }
  if (result.kind == ResultKind::peak || result.kind == ResultKind::peaks) {
    // Devices and hosts differ in the last bit of a logarithm or a quotient.
    for (std::size_t at = 0; at < got.size(); at += sizeof(Peak)) {
      Peak one, other;
      std::memcpy(&one, got.data() + at, sizeof one);
      std::memcpy(&other, want.data() + at, sizeof other);
      EXPECT_NEAR(one.sub_sy, other.sub_sy, 1e-6);
      EXPECT_NEAR(one.sub_sx, other.sub_sx, 1e-6);
      // Every NaN is alike.
      if (std::isnan(one.value) && std::isnan(other.value)) one.value = other.value;
      if (std::isnan(one.second) && std::isnan(other.second)) one.second = other.second;
      one.sub_sy = other.sub_sy, one.sub_sx = other.sub_sx;
      std::memcpy(got.data() + at, &one, sizeof one);
    }
  }
  EXPECT_EQ(got, want);
}

// Few values, so that there are ties and plateaus, or many.
template <typename T>
std::vector<T> outputs(const Problem& problem, unsigned seed, int levels, bool with_nan) {
  std::mt19937 random(seed);
  std::vector<T> values(problem.out_elements());
  for (T& v : values) {
    v = static_cast<T>(static_cast<double>(random() % static_cast<unsigned>(levels)) / 16 - 0.5);
    if (with_nan && random() % 13 == 0) v = std::numeric_limits<T>::quiet_NaN();
  }
  return values;
}

constexpr const char* kShapes[] = {"1x1", "1x7", "5x1", "3x4", "9x12", "1x3000", "33x65"};

// A test for each result, so that a sanitizer, which takes a hundred times as long, can run them side by side.
class ResultOnCuda : public ReduceOnCuda, public testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(Results, ResultOnCuda,
                         testing::Values("peak", "peak:gaussian", "peaks:1", "peaks:7",
                                         "above:0.5:100000", "above:8mad:100000",
                                         "above:0.5mad:100000", "above:0.5:100000:3", "sum"),
                         [](const auto& info) {
                           std::string name = info.param;
                           const auto other = [](unsigned char c) { return std::isalnum(c) == 0; };
                           std::replace_if(name.begin(), name.end(), other, '_');
                           return name;
                         });

TEST_P(ResultOnCuda, GivesWhatTheHostGives) {
  unsigned seed = 0;
  for (const char* shape : kShapes) {
    const Problem problem = parse_problem(std::string("one-to-many/") + shape + "/" + shape +
                                          "/1:5/full/boundary=circular/result=" + GetParam());
    for (const int levels : {3, 1 << 20}) {
      for (const bool with_nan : {false, true}) {
        SCOPED_TRACE(problem.id() + " levels " + std::to_string(levels) +
                     (with_nan ? " with NaN" : ""));
        const auto single = outputs<float>(problem, ++seed, levels, with_nan);
        const auto twofold = outputs<double>(problem, ++seed, levels, with_nan);
        // Exact sums of multiples of 1/16 in any order; and NaN has many patterns of bits.
        if (with_nan && problem.fields.result.kind == ResultKind::sum) continue;
        for (const bool captured : {false, true}) {
          expect_equal(problem, by_gpu(problem, single, captured), reduced(problem, single));
          expect_equal(problem, by_gpu(problem, twofold, captured), reduced(problem, twofold));
        }
      }
    }
  }
}

TEST_F(ReduceOnCuda, InterpolatesAsTheHost) {
  for (const char* shape : {"1x32", "15x13", "16x12", "40x1"}) {
    const Problem problem = parse_problem(std::string("one-to-many/") + shape + "/" + shape +
                                          "/1:3/full/boundary=circular/result=peak:upsample=20");
    const auto surface = outputs<double>(problem, 5, 1 << 20, false);
    expect_equal(problem, by_gpu(problem, surface, false), reduced(problem, surface));
    const auto with_nan = outputs<float>(problem, 6, 1 << 20, true);
    expect_equal(problem, by_gpu(problem, with_nan, false), reduced(problem, with_nan));
  }
}

TEST_F(ReduceOnCuda, CountsMoreDetectionsThanItHolds) {
  const Problem problem =
      parse_problem("one-to-many/40x40/40x40/1:3/full/boundary=circular/result=above:-1:7");
  const std::vector<float> surface = outputs<float>(problem, 1, 16, false);
  const AboveHeader header = listed(problem, by_gpu(problem, surface, false).data()).header;
  EXPECT_EQ(header.count, 4800u);
  EXPECT_EQ(header.spare, 0u);
}

// More pairs than blocks, of which each then takes several.
TEST_F(ReduceOnCuda, TakesManyPairs) {
  const Problem problem =
      parse_problem("one-to-many/2x3/2x3/1:70000/full/boundary=circular/result=peak");
  const std::vector<float> surface = outputs<float>(problem, 1, 5, true);
  expect_equal(problem, by_gpu(problem, surface, false), reduced(problem, surface));
}

// Surfaces that several blocks share.
template <typename T>
class SharedSurface : public ReduceOnCuda {
 protected:
  void expect_as_the_host(Index rows, Index cols, const std::vector<T>& surface, Index pairs = 1) {
    for (const char* result : {"peak", "peak:gaussian", "peaks:1", "peaks:2", "peaks:7"}) {
      const Problem problem = circular_problem(rows, cols, result, pairs);
      SCOPED_TRACE(problem.id());
      ASSERT_GT(SurfaceShares(problem).count, 1);
      const std::vector<char> want = reduced(problem, surface);
      expect_equal(problem, this->by_gpu(problem, surface, false), want);
      expect_equal(problem, this->by_gpu(problem, surface, true), want);
    }
  }

  static constexpr Index kRows = 101, kCols = 203;
  static std::vector<T> flat(T value = 0) { return std::vector<T>(kRows * kCols, value); }
  // Of the first place of share i.
  static std::size_t start(Index share) {
    return static_cast<std::size_t>(share *
                                    SurfaceShares(circular_problem(kRows, kCols, "peak")).outputs);
  }
};
using Outputs = testing::Types<float, double>;
TYPED_TEST_SUITE(SharedSurface, Outputs);

TYPED_TEST(SharedSurface, OfManySizes) {
  const std::tuple<Index, Index, Index> sizes[] = {{1, 8192, 1},    {8193, 1, 1}, {101, 203, 1},
                                                   {1017, 1857, 1}, {91, 131, 7}, {67, 211, 300},
                                                   {97, 113, 512}};
  unsigned seed = 0;
  for (const auto& [rows, cols, pairs] : sizes) {
    const Problem problem = circular_problem(rows, cols, "peak", pairs);
    for (const int levels : {3, 1 << 20}) {
      for (const bool with_nan : {false, true}) {
        SCOPED_TRACE(std::to_string(levels) + (with_nan ? " levels with NaN" : " levels"));
        this->expect_as_the_host(rows, cols, outputs<TypeParam>(problem, ++seed, levels, with_nan),
                                 pairs);
      }
    }
  }
}

TYPED_TEST(SharedSurface, TiesAcrossShares) {
  std::vector<TypeParam> surface = this->flat();
  for (const Index share : {1, 4, 7}) surface[this->start(share) + 50] = 1;
  this->expect_as_the_host(this->kRows, this->kCols, surface);
}

TYPED_TEST(SharedSurface, NotFiniteInOneShare) {
  using Limits = std::numeric_limits<TypeParam>;
  for (const TypeParam value : {Limits::quiet_NaN(), Limits::infinity(), -Limits::infinity()}) {
    std::vector<TypeParam> surface = this->flat();
    surface[this->start(2) + 9] = 3;
    surface[this->start(5) + 77] = value;
    this->expect_as_the_host(this->kRows, this->kCols, surface);
  }
  std::vector<TypeParam> none = this->flat(Limits::quiet_NaN());
  this->expect_as_the_host(this->kRows, this->kCols, none);
  none[this->start(6)] = 1;
  this->expect_as_the_host(this->kRows, this->kCols, none);
}

// Neighbours of a peak, and what is outside the outputs around it, lie in other shares.
TYPED_TEST(SharedSurface, PeaksAtBordersOfShares) {
  for (const Index share : {1, 5}) {
    for (const int before : {0, 1, 2}) {
      std::vector<TypeParam> surface = this->flat(-1);
      const std::size_t peak = this->start(share) - static_cast<std::size_t>(before);
      surface[peak] = 9;
      for (const int near : {-2, -1, 1, 2}) surface[peak + static_cast<std::size_t>(near)] = 5;
      surface[peak + this->kCols] = 6;
      surface[peak + 3] = 4;
      surface[this->start(8) - 1] = 3;
      this->expect_as_the_host(this->kRows, this->kCols, surface);
    }
  }
}

// No second, and fewer maxima than records.
TYPED_TEST(SharedSurface, OfOneValue) {
  this->expect_as_the_host(this->kRows, this->kCols, this->flat(2));
}

TYPED_TEST(SharedSurface, IsInterpolated) {
  const Problem problem = circular_problem(97, 89, "peak:upsample=20", 2);
  ASSERT_GT(SurfaceShares(problem).count, 1);
  const auto surface = outputs<TypeParam>(problem, 3, 1 << 20, false);
  expect_equal(problem, this->by_gpu(problem, surface, false), reduced(problem, surface));
}

}  // namespace
}  // namespace xcorr
