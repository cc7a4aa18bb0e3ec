// The kernels of timeseries_cufft around transforms by their definition, and of timeseries_cublas around sums.
#include "algorithms/time_series/timeseries_cublas/hankel.hpp"
#include "algorithms/time_series/timeseries_cufft/pipeline.hpp"
#include "tests/emulation/support.hpp"

namespace xcorr::time_series {
namespace {

// Rows of n scalars and two to fill them up, in place.
struct Definition {
  Index n;
  Index template_rows, segment_rows, product_rows;

  void of_templates(float* rows, void*) const { each(rows, template_rows, true); }
  void forward(float* rows, void*) const { each(rows, segment_rows, true); }
  void inverse(float* rows, void*) const { each(rows, product_rows, false); }

  void each(float* rows, Index count, bool is_forward) const {
    for (Index row = 0; row < count; ++row) transform(rows + row * (n + 2), is_forward);
  }
  void transform(float* row, bool is_forward) const {
    auto* const bins = reinterpret_cast<std::complex<float>*>(row);
    std::vector<std::complex<double>> line;
    for (Index i = 0; i < n; ++i) {
      line.emplace_back(is_forward   ? std::complex<float>(row[i])
                        : 2 * i <= n ? bins[i]
                                     : std::conj(bins[n - i]));
    }
    emulation::transform_line(line.data(), 1, n, is_forward);
    for (Index k = 0; k < n; ++k) {
      const std::complex<double> value = line[static_cast<std::size_t>(k)];
      if (!is_forward) row[k] = static_cast<float>(value.real());
      if (is_forward && 2 * k <= n) bins[k] = std::complex<float>(value);
    }
  }
};

// From -8 to 7.
std::vector<float> integers(Index count, std::uint64_t seed) {
  std::vector<float> values;
  for (Index i = 0; i < count; ++i) {
    values.push_back(static_cast<float>(std::floor(8 * emulation::noise(seed, i))));
  }
  return values;
}

struct Inputs {
  explicit Inputs(const Problem& problem)
      : q(problem), left(integers(q.left_elements(), 1)), right(integers(q.right_elements(), 2)) {}

  double output(Index i, Index sx) const {
    return product_sum(q, left.data() + i * q.left.size(), right.data(), 0, sx);
  }

  Problem q;
  std::vector<float> left, right;
};

const char* const kProblems[] = {
    "n-to-m/1x1/1x1/1:1/valid",   "n-to-m/1x16/1x16/2:1/valid",
    "n-to-m/1x16/1x40/3:1/valid",  // one output a segment, more segments than a grid has rows here
    "n-to-m/3x5/3x131/7:1/valid", "n-to-m/2x9/2x200/2:1/sy:0..0,sx:11..150",
};

TEST(SeriesRows, TransformsOfSegmentsGiveTheOutputs) {
  for (const char* const problem : kProblems) {
    const Inputs in(parse_problem(problem));
    for (const Index chunk_bytes : {1, 1000, 1 << 20}) {
      const ChunkLayout at(in.q, 16, chunk_bytes);
      std::vector<char> workspace(ChunkMemory(at, 0, Workspace(nullptr)).bytes, '\xff');
      const ChunkMemory memory(at, 0, Workspace(workspace.data()));
      std::vector<float> out(static_cast<std::size_t>(in.q.out_elements()), NAN);
      Definition transforms{16, at.template_rows, at.segment_rows, at.product_rows};
      correlate_in_chunks(at, memory, {in.left.data(), in.right.data(), out.data()}, transforms);
      each_output(in.q, [&](Index i, Pair pair, Index, Index sx) {
        ASSERT_NEAR(out[static_cast<std::size_t>(i)], in.output(pair.left, sx), 0.01)
            << problem << " chunk " << at.chunk << " output " << i;
      });
    }
  }
}

TEST(SeriesRows, ARowOfTheHankelMatrixTimesATemplateIsAnOutput) {
  for (const char* const problem : kProblems) {
    const Inputs in(parse_problem(problem));
    const SeriesShape s(in.q);
    const Index row = s.channels * s.length;
    std::vector<float> matrix(static_cast<std::size_t>(s.shifts * row), NAN);
    enqueue_hankel(in.right.data() + s.first, s, s.shifts, matrix.data(), nullptr);
    for (Index shift = 0; shift < s.shifts; ++shift) {
      float sum = 0;
      for (Index k = 0; k < row; ++k) {
        sum += matrix[static_cast<std::size_t>(shift * row + k)] *
               in.left[static_cast<std::size_t>(k)];
      }
      ASSERT_EQ(sum, in.output(0, s.first + shift)) << problem << " shift " << shift;
    }
  }
}

}  // namespace
}  // namespace xcorr::time_series
