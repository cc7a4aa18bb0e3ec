#include <algorithm>
#include <vector>

#include "harness/device/cuda_download.hpp"
#include "harness/verdict/truth_cuda.hpp"

namespace xcorr {
namespace {

constexpr int kThreads = 256;
// Outputs of one launch.
constexpr Index kChunk = Index{1} << 22;

// The inputs in device memory, from matrices `first_left` and `first_right` on. Masks are null for
// sides without one.
struct Stacks {
  Index first_left, first_right;
  const double *left, *right;
  const std::uint8_t *left_mask, *right_mask;
  const MatrixFacts *left_facts, *right_facts;
};

// One thread an output of the pairs [first, first + count).
__global__ void score_elements(Problem problem, Stacks stacks, Index first, Index count,
                               ScoreElement* out) {
  const Index size = problem.out_size();
  for (Index i = static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x; i < count * size;
       i += static_cast<Index>(gridDim.x) * blockDim.x) {
    const Pair pair = problem.pair(first + i / size);
    const Index left = pair.left - stacks.first_left, right = pair.right - stacks.first_right;
    const Index l = left * problem.left.size(), r = right * problem.right.size();
    const ScorePair matrices{stacks.left + l,
                             stacks.right + r,
                             stacks.left_mask ? stacks.left_mask + l : nullptr,
                             stacks.right_mask ? stacks.right_mask + r : nullptr,
                             stacks.left_facts[left].mean,
                             stacks.right_facts[right].mean};
    const Index element = i % size;
    out[i] =
        score_element(problem, matrices, problem.window.sy.first + element / problem.out_cols(),
                      problem.window.sx.first + element % problem.out_cols());
  }
}

// The largest number of terms of an output of each pair, as the bits of a number that is not negative: they have its order.
__global__ void find_most_terms(const ScoreElement* elements, Index size, Index outputs,
                                unsigned long long* most) {
  for (Index i = static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x; i < outputs;
       i += static_cast<Index>(gridDim.x) * blockDim.x) {
    const auto terms = static_cast<unsigned long long>(__double_as_longlong(elements[i].terms));
    unsigned long long* const of_pair = most + i / size;
    // Few outputs raise the maximum that they read, so that few additions wait for each other.
    if (terms > *static_cast<volatile unsigned long long*>(of_pair)) atomicMax(of_pair, terms);
  }
}

// Where a kernel writes what is expected: all of it, or values and bounds for records.
struct Whole {
  Expected* out;
  __device__ void store(Index i, const Expected& e) const { out[i] = e; }
};
struct ForRecords {
  double *value, *bound;
  __device__ void store(Index i, const Expected& e) const {
    value[i] = e.value;
    bound[i] = bound_with_zero(e);
  }
};

// What is expected of elements, with the rule of the least overlap. `most` is that of find_most_terms, or null for sums.
template <typename Out>
__global__ void expect_elements(ScoreBounds bounds, const ScoreBounds::OfPair* of_pairs,
                                const unsigned long long* most, bool exact, Index size,
                                Index outputs, const ScoreElement* elements, Out out) {
  const double least = bounds.sums.problem.fields.score.min_overlap;
  for (Index i = static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x; i < outputs;
       i += static_cast<Index>(gridDim.x) * blockDim.x) {
    const Index pair = i / size;
    ScoreElement element = elements[i];
    if (most) {
      apply_least_overlap(element, least, __longlong_as_double(static_cast<long long>(most[pair])));
    }
    out.store(i, expected(bounds, of_pairs[pair], i % size, element, exact));
  }
}

// The matrices of one side that pairs use: [first, first + count).
struct Used {
  Index first, count;

  // Their elements, `each` a matrix; empty where the side has none.
  template <typename T>
  DeviceArray<T> uploaded(const std::vector<T>& values, Index each, cudaStream_t stream) const {
    DeviceArray<T> array;
    if (values.empty()) return array;
    array = DeviceArray<T>(count * each);
    require_cuda(cudaMemcpyAsync(array.get(), values.data() + first * each, array.bytes(),
                                 cudaMemcpyHostToDevice, stream),
                 "upload of the inputs of the truth");
    return array;
  }
};

Used used_by(const Problem& problem, Index Pair::* side, Index first, Index count) {
  Index lowest = problem.pair(first).*side, highest = lowest;
  for (Index p = first; p < first + count; ++p) {
    lowest = std::min(lowest, problem.pair(p).*side);
    highest = std::max(highest, problem.pair(p).*side);
  }
  return {lowest, highest - lowest + 1};
}

class CudaScores : public ScoreReference {
 public:
  CudaScores(const ScoreData& data, cudaStream_t stream)
      : ScoreReference(data), stream_(stream), download_(stream) {}

  void pairs(Index first, Index count, Expected* out, double* phase) override {
    std::fill(phase, phase + count, 0.0);
    const DeviceArray<Expected> made(chunk_of(count) * data_.problem.out_size());
    each_chunk(first, count, Whole{made.get()},
               [&](Index at, Index outputs) { download_(out + at, made.get(), outputs); });
  }

  void surfaces(Index first, Index count, double* value, double* bound) override {
    const DeviceArray<double> values(chunk_of(count) * data_.problem.out_size());
    const DeviceArray<double> bounds(chunk_of(count) * data_.problem.out_size());
    each_chunk(first, count, ForRecords{values.get(), bounds.get()}, [&](Index at, Index outputs) {
      download_(value + at, values.get(), outputs);
      download_(bound + at, bounds.get(), outputs);
    });
  }

 private:
  // Pairs of one launch, of `count`.
  Index chunk_of(Index count) const {
    return std::clamp<Index>(kChunk / data_.problem.out_size(), 1, count);
  }

  // Computes what is expected in chunks of whole pairs, and calls taken(index of the first output, number of outputs) after each.
  template <typename Out, typename Taken>
  void each_chunk(Index first, Index count, const Out& out, Taken&& taken) {
    // Inputs leave the device after each call: its memory belongs to the variants.
    const ScoreInputs& in = data_.inputs;
    const Problem& q = data_.problem;
    const Used lefts = used_by(q, &Pair::left, first, count),
               rights = used_by(q, &Pair::right, first, count);
    const auto left = lefts.uploaded(in.left, q.left.size(), stream_);
    const auto right = rights.uploaded(in.right, q.right.size(), stream_);
    const auto left_mask = lefts.uploaded(in.left_mask, q.left.size(), stream_);
    const auto right_mask = rights.uploaded(in.right_mask, q.right.size(), stream_);
    const auto left_facts = lefts.uploaded(in.left_facts, 1, stream_);
    const auto right_facts = rights.uploaded(in.right_facts, 1, stream_);
    const Stacks stacks{lefts.first,     rights.first,     left.get(),       right.get(),
                        left_mask.get(), right_mask.get(), left_facts.get(), right_facts.get()};
    std::vector<ScoreBounds::OfPair> bounds;
    for (Index i = 0; i < count; ++i) bounds.push_back(data_.of_pair(first + i));
    const auto of_pairs = Used{0, count}.uploaded(bounds, 1, stream_);
    const bool score = is_normalised(q.fields.score.kind);
    const DeviceArray<unsigned long long> most(count);
    require_cuda(cudaMemsetAsync(most.get(), 0, most.bytes(), stream_), "terms");

    const Index size = q.out_size(), chunk = chunk_of(count);
    const DeviceArray<ScoreElement> elements(chunk * size);
    for (Index from = 0; from < count; from += chunk) {
      const Index some = std::min(chunk, count - from), outputs = some * size;
      const auto blocks =
          static_cast<unsigned>(std::min<Index>((outputs + kThreads - 1) / kThreads, 65536));
      score_elements<<<blocks, kThreads, 0, stream_>>>(q, stacks, first + from, some,
                                                       elements.get());
      if (score) {
        find_most_terms<<<blocks, kThreads, 0, stream_>>>(elements.get(), size, outputs,
                                                          most.get() + from);
      }
      expect_elements<<<blocks, kThreads, 0, stream_>>>(
          data_.bounds, of_pairs.get() + from, score ? most.get() + from : nullptr, data_.exact,
          size, outputs, elements.get(), out);
      require_cuda(cudaGetLastError(), "float64 scores");
      taken(from * size, outputs);
    }
  }

  cudaStream_t stream_;
  CudaDownload download_;
};

}  // namespace

std::unique_ptr<ScoreReference> make_cuda_score_reference(const ScoreData& data,
                                                          cudaStream_t stream) {
  if (data.by_transform || data.problem.fields.score.kind == ScoreKind::phase) {
    return make_host_score_reference(data);
  }
  return std::make_unique<CudaScores>(data, stream);
}

std::size_t cuda_score_bytes(const Problem& problem) {
  const auto inputs = static_cast<std::size_t>(problem.left_elements() + problem.right_elements());
  const auto matrices = static_cast<std::size_t>(problem.lefts + problem.rights);
  const auto outputs = static_cast<std::size_t>(
      std::max(problem.out_size(), std::min(kChunk, problem.out_elements())));
  return inputs * (sizeof(double) + 1) + matrices * sizeof(MatrixFacts) +
         outputs * (sizeof(ScoreElement) + sizeof(Expected)) + (std::size_t{16} << 20);
}

}  // namespace xcorr
