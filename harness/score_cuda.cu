#include <algorithm>
#include <vector>

#include "harness/cuda_owned.hpp"
#include "harness/score_cuda.hpp"

namespace xcorr {
namespace {

constexpr int kThreads = 256;
// Outputs of one launch.
constexpr Index kChunk = Index{1} << 22;

// The inputs in device memory. Masks are null for sides without one.
struct Stacks {
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
    const Index l = pair.left * problem.left.size(), r = pair.right * problem.right.size();
    const ScorePair matrices{stacks.left + l,
                             stacks.right + r,
                             stacks.left_mask ? stacks.left_mask + l : nullptr,
                             stacks.right_mask ? stacks.right_mask + r : nullptr,
                             stacks.left_facts[pair.left].mean,
                             stacks.right_facts[pair.right].mean};
    const Index element = i % size;
    out[i] =
        score_element(problem, matrices, problem.window.sy.first + element / problem.out_cols(),
                      problem.window.sx.first + element % problem.out_cols());
  }
}

template <typename T>
DeviceArray<T> uploaded(const std::vector<T>& values, cudaStream_t stream) {
  DeviceArray<T> array;
  if (values.empty()) return array;
  array = DeviceArray<T>(static_cast<Index>(values.size()));
  require_cuda(
      cudaMemcpyAsync(array.get(), values.data(), array.bytes(), cudaMemcpyHostToDevice, stream),
      "upload of the inputs of the truth");
  return array;
}

class CudaScores : public ScoreReference {
 public:
  CudaScores(const ScoreData& data, cudaStream_t stream) : data_(data), stream_(stream) {}

  void pairs(Index first, Index count, Expected* out, double* phase) override {
    // Inputs stay on the device for one call only: its memory belongs to the variants.
    const ScoreInputs& in = data_.inputs;
    const DeviceArray<double> left = uploaded(in.left, stream_),
                              right = uploaded(in.right, stream_);
    const DeviceArray<std::uint8_t> left_mask = uploaded(in.left_mask, stream_),
                                    right_mask = uploaded(in.right_mask, stream_);
    const DeviceArray<MatrixFacts> left_facts = uploaded(in.left_facts, stream_),
                                   right_facts = uploaded(in.right_facts, stream_);
    const Problem& q = data_.problem;
    const Index size = q.out_size();
    const Index chunk = std::clamp<Index>(kChunk / size, 1, count);
    const DeviceArray<ScoreElement> elements(chunk * size);
    std::vector<ScoreElement> host(static_cast<std::size_t>(chunk * size));
    for (Index from = 0; from < count; from += chunk) {
      const Index some = std::min(chunk, count - from);
      const Index blocks = (some * size + kThreads - 1) / kThreads;
      score_elements<<<static_cast<unsigned>(std::min<Index>(blocks, 65536)), kThreads, 0,
                       stream_>>>(q,
                                  {left.get(), right.get(), left_mask.get(), right_mask.get(),
                                   left_facts.get(), right_facts.get()},
                                  first + from, some, elements.get());
      require_cuda(cudaGetLastError(), "float64 scores");
      require_cuda(cudaMemcpyAsync(host.data(), elements.get(),
                                   static_cast<std::size_t>(some * size) * sizeof(ScoreElement),
                                   cudaMemcpyDeviceToHost, stream_),
                   "copy");
      require_cuda(cudaStreamSynchronize(stream_), "float64 scores");
      expect(data_, first + from, some, host.data(), out + from * size, phase + from);
    }
  }

 private:
  const ScoreData& data_;
  cudaStream_t stream_;
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
