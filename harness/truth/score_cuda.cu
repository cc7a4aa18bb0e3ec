#include <algorithm>
#include <vector>

#include "harness/device/cuda_owned.hpp"
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
  CudaScores(const ScoreData& data, cudaStream_t stream) : data_(data), stream_(stream) {}

  void pairs(Index first, Index count, Expected* out, double* phase) override {
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
    const Index size = q.out_size();
    const Index chunk = std::clamp<Index>(kChunk / size, 1, count);
    const DeviceArray<ScoreElement> elements(chunk * size);
    if (host_.count() < chunk * size) {
      host_ = {};
      host_ = PinnedArray<ScoreElement>(chunk * size);
    }
    for (Index from = 0; from < count; from += chunk) {
      const Index some = std::min(chunk, count - from);
      const Index blocks = (some * size + kThreads - 1) / kThreads;
      score_elements<<<static_cast<unsigned>(std::min<Index>(blocks, 65536)), kThreads, 0,
                       stream_>>>(
          q,
          {lefts.first, rights.first, left.get(), right.get(), left_mask.get(), right_mask.get(),
           left_facts.get(), right_facts.get()},
          first + from, some, elements.get());
      require_cuda(cudaGetLastError(), "float64 scores");
      require_cuda(cudaMemcpyAsync(host_.get(), elements.get(),
                                   static_cast<std::size_t>(some * size) * sizeof(ScoreElement),
                                   cudaMemcpyDeviceToHost, stream_),
                   "copy");
      require_cuda(cudaStreamSynchronize(stream_), "float64 scores");
      expect(data_, first + from, some, host_.get(), out + from * size, phase + from);
    }
  }

 private:
  const ScoreData& data_;
  cudaStream_t stream_;
  PinnedArray<ScoreElement> host_;
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
         outputs * sizeof(ScoreElement) + (std::size_t{16} << 20);
}

}  // namespace xcorr
