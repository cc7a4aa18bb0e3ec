// The line kernel of the ISS paper (section 4.3, Fig. 8; its limits: section 5) with the paper's
// decomposition. A block has one pair of whole lines of the image in shared memory: line y0 =
// blockIdx.x and line y1 = y0 + Y0 with Y0 = blockIdx.y. A thread has one X0. It multiplies the
// pixels at x of line y1 and at x - X0 of line y0 for every x of the line, and adds the sum to the
// output at (X0, Y0) with one atomic addition. All threads read the same pixel at x, which is
// broadcast. The pixels at x - X0 of neighbouring threads are neighbours in different banks.
// Pixels beside the image are zeros in shared memory, and their products are computed, as in
// Fig. 8b. Derived from autocorr_cuda_simple: the loop over the lines becomes blocks, and both
// pixels come from shared memory instead of a cache.
//
// Why this unit beside autocorr_cuda_line: that one computes the same sums with our changes, which
// are chunks of at most 256 shifts, panels of 256 columns and several lines a block. The paper has
// none of them. Here a block has twice the maximum offset as threads, one for each X0 of both signs
// (section 5), so that a small offset has small blocks, and a long line occupies much memory. The
// comparison of the two units shows what our changes are worth.
//
// Threads: with M = the largest |sx| of the window + 1, a block has 2 M threads and X0 =
// threadIdx.x - M. This is "twice the maximum offset" for -M < X0 < M, the range of Fig. 8. The
// paper's 512 threads then reach offset 255. Thread 0 has no output. It copies pixels, as do the
// threads whose X0 is not in the window.
//
// Differences from the paper: pixels and sums are float32, while the paper's images have 8 bits.
// Several images are an extra grid dimension. Y0 can be negative. If the window has both halves of
// the plane, the rows of negative Y0 are mirrored by a second kernel; the paper computes one half.
// A block computes several Y0 or images only if they exceed the extent of the grid.
//
// Limits: offsets |sx| of at most 255. Two lines of `cols` columns, one with zeros beside it, must
// fit into shared memory: 2 cols + 2 max |sx| floats, and up to 3 that complete a group of four. The
// paper's GPU had 16 KB; here the limit is that of the GPU. An infinity or a NaN may reach outputs whose overlaps do not contain it.
// What limits it, by its instructions and not measured: 4 products need 5 accesses to shared
// memory, because the compiler reads four pixels at x at once. Of the products of a thread, |X0|
// per line are with zeros. A copied pixel serves at most 2 M products, so that small offsets are
// limited by the copies.
#include <cstdlib>

#include "algorithms/autocorrelation/line_tasks.hpp"

namespace xcorr::autocorrelation {
namespace {

constexpr int kMaxBlockThreads = 512;  // of a block of the paper's GPU
constexpr Index kMaxOffset = kMaxBlockThreads / 2 - 1;
constexpr int kMirrorThreads = 256;

// The largest |sx| of the window.
Index largest_offset(const Problem& q) {
  return std::max(std::abs(q.window.sx.first), std::abs(q.window.sx.last));
}

// Floats of line y1 in shared memory: whole groups of four, because the compiler reads the pixels of
// the last group at once too.
Index pitch_of(const Problem& q) { return ceil_div(q.left.cols, Index{4}) * 4; }

// Bytes of the two lines of a block.
std::size_t line_bytes(const Problem& q) {
  return static_cast<std::size_t>(pitch_of(q) + q.left.cols + 2 * largest_offset(q)) *
         sizeof(float);
}

// Set on the host, passed to kernels by value.
struct WholeLines {
  explicit WholeLines(const Problem& q)
      : window_rows(q),
        pairs(q.pairs()),
        image_size(q.left.size()),
        out_size(q.out_size()),
        rows(static_cast<int>(q.left.rows)),
        cols(static_cast<int>(q.left.cols)),
        pitch(static_cast<int>(pitch_of(q))),
        first_sx(static_cast<int>(q.window.sx.first)),
        out_cols(static_cast<int>(q.out_cols())),
        zeros(static_cast<int>(largest_offset(q))) {}
  __host__ __device__ constexpr int max_offset() const { return zeros + 1; }

  MirroredRows window_rows;
  Index pairs, image_size, out_size;
  int rows, cols;
  int pitch;  // of line y1 in shared memory
  int first_sx, out_cols;
  int zeros;  // on each side of line y0 in shared memory
};

// grid: lines y0 (x), computed rows of shifts in a stride (y), images in a stride (z).
__global__ void __launch_bounds__(kMaxBlockThreads)
    autocorr_cuda_whole_lines_kernel(WholeLines q, const float* __restrict__ images,
                                     float* __restrict__ out) {
  float* const line1 = dynamic_shared<float>();
  float* const line0 = line1 + q.pitch;
  const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  const int sx = thread - q.max_offset();  // X0
  const int col = sx - q.first_sx;
  const int y0 = static_cast<int>(blockIdx.x);
  for (Index pair = blockIdx.z; pair < q.pairs; pair += gridDim.z) {
    const float* const image = images + pair * q.image_size;
    for (auto i = static_cast<int>(blockIdx.y); i < q.window_rows.computed();
         i += static_cast<int>(gridDim.y)) {
      const Index y1 = y0 + q.window_rows.sy(i);
      if (y1 < 0 || y1 >= q.rows) continue;
      block::barrier();  // threads may still read the lines of the row of shifts before
      const float* const row0 = image + static_cast<Index>(y0) * q.cols;
      const float* const row1 = image + y1 * q.cols;
      for (int x = thread; x < q.cols; x += threads) line1[x] = row1[x];
      for (int x = thread; x < q.cols + 2 * q.zeros; x += threads) {
        line0[x] = load_or_zero(row0, x - q.zeros, q.cols);
      }
      block::barrier();
      if (col < 0 || col >= q.out_cols) continue;
      float sum = 0;
      for (int x = 0; x < q.cols; ++x) sum += line1[x] * line0[q.zeros + x - sx];
      const Index row = static_cast<Index>(q.window_rows.row(i)) * q.out_cols;
      atomic_add(out + pair * q.out_size + row + col, sum);
    }
  }
}

// Copies the computed rows of positive Y0 to their mirror images. grid: columns (x), computed rows
// in a stride (y), images in a stride (z).
__global__ void __launch_bounds__(kMirrorThreads)
    autocorr_cuda_whole_lines_mirror(WholeLines q, float* __restrict__ out) {
  const int col = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (col >= q.out_cols) return;
  for (Index pair = blockIdx.z; pair < q.pairs; pair += gridDim.z) {
    float* const of_pair = out + pair * q.out_size;
    for (auto i = static_cast<int>(blockIdx.y); i < q.window_rows.computed();
         i += static_cast<int>(gridDim.y)) {
      const int mirror = q.window_rows.mirror(i);
      if (mirror < 0) continue;
      of_pair[static_cast<Index>(mirror + 1) * q.out_cols - 1 - col] =
          of_pair[static_cast<Index>(q.window_rows.row(i)) * q.out_cols + col];
    }
  }
}

class WholeLinesPlan final : public DevicePlan<float> {
 public:
  explicit WholeLinesPlan(const PlanRequest& request)
      : DevicePlan(request.problem, true),
        lines_(request.problem),
        shared_bytes_(line_bytes(request.problem)) {}

 private:
  void enqueue(const Call& call, const Arrays<float>& arrays) override {
    const unsigned offsets = grid_extent(lines_.window_rows.computed());
    const unsigned images = grid_extent(lines_.pairs);
    launch(autocorr_cuda_whole_lines_kernel,
           dim3(static_cast<unsigned>(lines_.rows), offsets, images),
           dim3(static_cast<unsigned>(2 * lines_.max_offset())), shared_bytes_, call.stream, lines_,
           arrays.left, arrays.out);
    if (lines_.window_rows.mirrored == 0) return;
    const auto columns = static_cast<unsigned>(ceil_div(lines_.out_cols, kMirrorThreads));
    launch(autocorr_cuda_whole_lines_mirror, dim3(columns, offsets, images), dim3(kMirrorThreads),
           0, call.stream, lines_, arrays.out);
  }

  WholeLines lines_;
  std::size_t shared_bytes_;
};

Support supports(const PlanRequest& request) {
  if (const Support support = line_support(request); !support) return support;
  if (const Index offset = largest_offset(request.problem); offset > kMaxOffset) {
    return no("offset " + std::to_string(offset) + ": a block of " +
              std::to_string(kMaxBlockThreads) + " threads has offsets of at most " +
              std::to_string(kMaxOffset) + "; use autocorr_cuda_line");
  }
  return shared_fits("two whole lines", line_bytes(request.problem));
}

XCORR_VARIANT({
    .summary = "Autocorrelation: one pair of whole lines per block, threads twice the offset",
    .parent = "autocorr_cuda_simple",
    .source = "ISS paper, section 4.3",
    .backend = Backend::cuda,
    .algorithm_class = AlgorithmClass::definition_atomic,
    .forms = {Form::one_to_one, Form::n_to_mn},
    .same_only = true,
    .supports = supports,
    .plan = make_plan<WholeLinesPlan>,
});

}  // namespace
}  // namespace xcorr::autocorrelation
