// The paper's FFT pipeline on cuFFT, with the paper's accounting (paper section 3.1; its timers are
// those of the published artifact). It reproduces the figures and ratios of the paper. The FFT
// baseline is `cufft`.
//
// Every matrix is padded to exactly 2h x 2w (unequal shapes: the sum of both). Then follow one
// batched R2C transform of all lefts and rights, a product kernel, and one batched C2R transform of
// all pairs, both out of place. There are two plans. The product kernel has 256 threads per block.
// For one-to-one, one-to-many and n-to-mn a thread multiplies one element of a left spectrum with
// that element of each of its rights in turn, in place, so that small matrices hardly fill the GPU.
// For n-to-m a thread computes 10 elements of the products, in a separate buffer. The paper
// multiplies the left by the conjugate of the right spectrum. Here the product is conj(left) *
// right: the same work, with the sign of the definition.
//
// cuFFT may transform two matrices of a batch as the parts of one complex matrix. Then the smaller
// matrix gets rounding errors in proportion to the larger. The paper's data, bytes, do not show
// this. Here the padded lefts are multiplied by a power of two, so that the largest norms of both
// sides are similar, and the products by its inverse. The norms take three small kernels after the
// padding.
//
// Columns of a row: the phases forward, hadamard and inverse are marked, so that their columns hold
// the paper's `fft`, and together with plan_us its `fft+plan`. The paper's timers exclude zero
// padding, the quadrant swap, the division by the transform size and allocation. Here compute
// includes padding and layout (swap, crop, division) as `rest`, because a caller needs them in
// every call. Therefore compute_us is more than the paper's sum. plan_us excludes cuFFT's work
// area, which the harness allocates.
//
// Forms: all four, any shapes, any window (the transform is that of the full window); fp32. No
// parameters. Limits: there are no chunks, so that all spectra and all padded images are in memory
// at once (n-to-m 128:128 at 256 x 256: 35 GB besides the outputs). Not emulated.
#include <algorithm>

#include "algorithms/blocks/workspace.hpp"
#include "algorithms/device/cuda.hpp"
#include "algorithms/fft/block_sum.hpp"
#include "algorithms/fft/geometry.hpp"
#include "algorithms/fft/layout.hpp"
#include "algorithms/fft/transforms.hpp"

namespace xcorr::fft {
namespace {

using T = float;
using Complex = cufftComplex;

constexpr int kThreads = 256;
constexpr int kItems = 10;  // n-to-m

__device__ Complex scaled(Complex value, T by) { return {by * value.x, by * value.y}; }
__device__ Complex conj_product(Complex left, Complex right) {
  return {left.x * right.x + left.y * right.y, left.x * right.y - left.y * right.x};
}

// Matrices in their padded images, one per slot.
struct PaddedMatrices {
  T* images;
  Strides strides;
  Index left_slots, slots;
  Shape left, right;
};

// Factors that make the norms of both sides similar.
struct SideScales {
  T left;  // factor of the lefts
  T back;  // factor of the products; 0 where a side is all zeros
};

// squares[slot] = the sum of squares of the matrix in the slot. A block takes slots in a stride.
__global__ void __launch_bounds__(kSumThreads) squares_kernel(PaddedMatrices of, double* squares) {
  for (Index slot = blockIdx.x; slot < of.slots; slot += gridDim.x) {
    const Shape shape = slot < of.left_slots ? of.left : of.right;
    const T* const image = of.images + slot * of.strides.slot;
    double sum = 0;
    for (Index i = threadIdx.x; i < shape.size(); i += kSumThreads) {
      const double value = image[i / shape.cols * of.strides.row + i % shape.cols];
      sum += value * value;
    }
    sum = sum_over_block(sum);
    if (threadIdx.x == 0) squares[slot] = sum;
  }
}

// One block. With infinite or NaN sums the scales are 1.
__global__ void __launch_bounds__(kSumThreads)
    scales_kernel(const double* squares, Index left_slots, Index slots, SideScales* scales) {
  const auto larger = [](double a, double b) { return b > a ? b : a; };
  const auto largest = [&](Index first, Index end) {
    double most = 0;
    for (Index i = first + threadIdx.x; i < end; i += kSumThreads) most = larger(most, squares[i]);
    return over_block(most, larger);
  };
  const double left = largest(0, left_slots), right = largest(left_slots, slots);
  if (threadIdx.x != 0) return;
  const bool empty = left == 0 || right == 0;
  const bool finite = left - left == 0 && right - right == 0;
  const int by = empty || !finite ? 0 : (ilogb(right) - ilogb(left)) / 2;
  const int most = 120, used = by > most ? most : by < -most ? -most : by;
  *scales = {ldexpf(1, used), empty ? T(0) : ldexpf(1, -used)};
}

__global__ void __launch_bounds__(kSumThreads)
    scale_lefts_kernel(PaddedMatrices of, const SideScales* scales) {
  const T by = scales->left;
  if (by == 1) return;
  for (Index slot = blockIdx.x; slot < of.left_slots; slot += gridDim.x) {
    T* const image = of.images + slot * of.strides.slot;
    for (Index i = threadIdx.x; i < of.left.size(); i += kSumThreads) {
      image[i / of.left.cols * of.strides.row + i % of.left.cols] *= by;
    }
  }
}

// right[left * rights + i] *= conj(left) for each left (y of the grid) and its rights.
__global__ void __launch_bounds__(kThreads)
    hadamard_in_place(const Complex* left, Complex* right, Index spectrum, Index lefts,
                      Index rights, const SideScales* scales) {
  const Index element = static_cast<Index>(blockIdx.x) * kThreads + threadIdx.x;
  if (element >= spectrum) return;
  for (Index l = blockIdx.y; l < lefts; l += gridDim.y) {
    const Complex factor = scaled(left[l * spectrum + element], scales->back);
    Complex* to = right + l * rights * spectrum + element;
    for (Index r = 0; r < rights; ++r) to[r * spectrum] = conj_product(factor, to[r * spectrum]);
  }
}

// product[l][r] = conj(left[l]) * right[r].
__global__ void __launch_bounds__(kThreads)
    hadamard_n_to_m(const Complex* left, const Complex* right, Complex* product, Index spectrum,
                    Index rights, Index pairs, const SideScales* scales) {
  const T back = scales->back;
  const Index first = static_cast<Index>(blockIdx.x) * kThreads * kItems + threadIdx.x;
  for (Index i = 0; i < kItems; ++i) {
    const Index at = first + i * kThreads;
    if (at >= pairs * spectrum) return;
    const Index pair = at / spectrum, element = at % spectrum;
    product[at] = conj_product(scaled(left[pair / rights * spectrum + element], back),
                               right[pair % rights * spectrum + element]);
  }
}

FftGeometry geometry(const Problem& q) {
  FftGeometry g{};
  g.rows = q.left.rows + q.right.rows;
  g.cols = q.left.cols + q.right.cols;
  g.padded_rows = g.rows;
  g.real_pitch = g.cols;
  g.pitch = g.cols / 2 + 1;
  g.spectrum = g.rows * g.pitch;
  g.in = g.out = {g.rows * g.cols, g.cols};
  g.left = q.left;
  g.right = q.right;
  g.left_slots = q.lefts;
  g.right_slots = g.right_run = g.right_pitch = q.rights;
  g.pair_slots = g.pair_run = g.pair_pitch = q.pairs();
  g.sy = q.window.sy;
  g.sx = q.window.sx;
  return g;
}

struct PaperMemory {
  PaperMemory(const Problem& q, const FftGeometry& g, std::size_t work_bytes, Workspace workspace)
      : spectra(workspace.take<Complex>(g.input_slots() * g.spectrum)),
        products(q.form == Form::n_to_m ? workspace.take<Complex>(g.pair_slots * g.spectrum)
                                        : nullptr),
        real(workspace.take<T>(std::max(g.input_slots(), g.pair_slots) * g.in.slot)),
        squares(workspace.take<double>(g.input_slots())),
        scales(workspace.take<SideScales>(1)),
        work(workspace.take<char>(static_cast<Index>(work_bytes))),
        bytes(workspace.bytes()) {}

  Complex* spectra;
  Complex* products;  // for n-to-m; otherwise products overwrite the spectra of the rights
  T* real;            // padded inputs, later the circular outputs
  double* squares;
  SideScales* scales;
  char* work;
  std::size_t bytes;
};

class PaperPlan final : public Plan {
 public:
  explicit PaperPlan(const PlanRequest& request)
      : problem_(request.problem),
        g_(geometry(problem_)),
        transforms_(g_),
        memory_(problem_, g_, transforms_.make(g_), Workspace(request.workspace)),
        lefts_(memory_.spectra),
        rights_(lefts_ + g_.left_slots * g_.spectrum),
        products_(memory_.products != nullptr ? memory_.products : rights_) {
    transforms_.use(memory_.work);
  }

  void compute(const Call& call) override {
    const auto stream = static_cast<cudaStream_t>(call.stream);
    const Problem& q = problem_;
    const FftChunk<T> all = {
        call.lefts<T>(), call.rights<T>(), call.outs<T>(), q.lefts, 1, q.rights, 1, q.pairs()};
    pad(g_, all, memory_.real, stream);
    make_sides_alike(stream);
    call.phase("forward");
    transforms_.forward(memory_.real, lefts_, stream);
    call.phase("hadamard");
    hadamard(stream);
    call.phase("inverse");
    transforms_.inverse(products_, memory_.real, stream);
    call.phase("rest");
    crop(g_, all, memory_.real, T(1) / static_cast<T>(g_.rows * g_.cols), stream);
  }

 private:
  void make_sides_alike(cudaStream_t stream) const {
    const PaddedMatrices of{memory_.real,     g_.in,   g_.left_slots,
                            g_.input_slots(), g_.left, g_.right};
    const auto blocks = [](Index slots) {
      return dim3(static_cast<unsigned>(std::min<Index>(slots, Index{1} << 20)));
    };
    launch(squares_kernel, blocks(of.slots), dim3(kSumThreads), 0, stream, of, memory_.squares);
    launch(scales_kernel, dim3(1), dim3(kSumThreads), 0, stream, memory_.squares, of.left_slots,
           of.slots, memory_.scales);
    launch(scale_lefts_kernel, blocks(of.left_slots), dim3(kSumThreads), 0, stream, of,
           memory_.scales);
  }

  void hadamard(cudaStream_t stream) const {
    const Problem& q = problem_;
    const auto blocks = [](Index items) {
      return static_cast<unsigned>(ceil_div<Index>(items, kThreads));
    };
    if (q.form == Form::n_to_m) {
      const Index threads = (q.pairs() * g_.spectrum + kItems - 1) / kItems;
      launch(hadamard_n_to_m, dim3(blocks(threads)), dim3(kThreads), 0, stream, lefts_, rights_,
             products_, g_.spectrum, q.rights, q.pairs(), memory_.scales);
    } else {
      const dim3 grid(blocks(g_.spectrum), static_cast<unsigned>(std::min<Index>(q.lefts, 65535)));
      launch(hadamard_in_place, grid, dim3(kThreads), 0, stream, lefts_, rights_, g_.spectrum,
             q.lefts, q.rights / q.lefts, memory_.scales);
    }
  }

  Problem problem_;
  FftGeometry g_;
  CufftTransforms<T> transforms_;
  PaperMemory memory_;
  Complex *lefts_, *rights_, *products_;
};

// The kernels around the transforms count their accesses with 32 bits.
Support supports(const PlanRequest& request) {
  const FftGeometry g = geometry(request.problem);
  const Index most = Index{1} << 32;
  if (g.input_slots() * g.in.slot > most || g.pair_slots * g.out.slot > 4 * most) {
    return no("more than 16 GiB of padded inputs or 64 GiB of padded outputs");
  }
  return yes();
}

std::size_t workspace_bytes(const PlanRequest& request) {
  const FftGeometry g = geometry(request.problem);
  return PaperMemory(request.problem, g, cufft_work_bytes<T>(g), Workspace(nullptr)).bytes;
}

std::unique_ptr<Plan> plan(const PlanRequest& request) {
  return std::make_unique<PaperPlan>(request);
}

XCORR_VARIANT({
    .summary = "The paper's cuFFT pipeline: 2h x 2w, three phases, two plans; kept to reproduce "
               "its figures",
    .parent = "overlap_wise",
    .source = "section 3.1",
    .backend = Backend::cuda,
    .algorithm_class = AlgorithmClass::fft_of_both,
    .precisions = {Precision::fp32},
    .emulated = false,
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .plan = plan,
});

}  // namespace
}  // namespace xcorr::fft
