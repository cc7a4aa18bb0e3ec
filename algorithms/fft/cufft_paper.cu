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
// matrix gets rounding errors in proportion to the larger. The paper's data are bytes, whose
// matrices have like norms, so it does not show there. Here a kernel after the padding brings the
// norm of each matrix to 1 to 2 by a power of two, and the product kernel multiplies by the inverse
// powers.
//
// Columns of a row: the phases forward, hadamard and inverse are marked, so that their columns hold
// the paper's `fft`, and together with plan_us its `fft+plan`. The paper's timers exclude zero
// padding, the quadrant swap, the division by the transform size and allocation. Here compute
// includes padding, scaling of norms and layout (swap, crop, division) as `rest`, because a caller
// needs them in every call. Therefore compute_us is more than the paper's sum. plan_us excludes
// cuFFT's work area, which the harness allocates.
//
// Forms: all four, any shapes, any window (the transform is that of the full window); fp32. No
// parameters. Limits: cuFFT is less exact where a padded length has a prime factor p above 127:
// data with a mean lose about 6 sqrt(p) units of roundoff, 8e-5 at 100,003 columns. There are no
// chunks, so that all spectra and all padded images are in memory at once (n-to-m 128:128 at 256 x
// 256: 35 GB besides the outputs). Not emulated.
#include <algorithm>

#include "algorithms/blocks/block_sum.hpp"
#include "algorithms/blocks/divide.hpp"
#include "algorithms/blocks/workspace.hpp"
#include "algorithms/device/cuda.hpp"
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

constexpr int kScaleThreads = 1024;

// The matrices of one side in their padded images, one per slot.
struct PaddedSide {
  T* images;
  T* backs;  // [slots]: the factors that undo the scaling
  std::uint32_t slots, size;
  Divider row;
  Strides strides;
};

// Scales each matrix by the power of two that brings its norm to 1 to 2, and stores the inverse
// power: 0 for a matrix of zeros. A norm that is infinite or NaN leaves the matrix as it is. A
// block takes slots in a stride. y of the grid: lefts, rights.
__global__ void __launch_bounds__(kScaleThreads) scale_kernel(PaddedSide left, PaddedSide right) {
  const PaddedSide side = blockIdx.y == 0 ? left : right;
  for (std::uint32_t slot = blockIdx.x; slot < side.slots; slot += gridDim.x) {
    T* const image = side.images + slot * side.strides.slot;
    const auto each = [&](auto f) {
#pragma unroll 8
      for (std::uint32_t i = threadIdx.x; i < side.size; i += kScaleThreads) {
        std::uint32_t x = i;
        const std::uint32_t y = side.row.split(x);
        f(image[y * side.strides.row + x]);
      }
    };
    double squares = 0;
    each([&](T& value) { squares = fma(double{value}, double{value}, squares); });
    squares = sum_over_block<kScaleThreads>(squares);
    const bool usable = squares > 0 && squares - squares == 0;
    const int exponent = usable ? min(max(ilogb(squares) >> 1, -126), 126) : 0;
    const T by = ldexpf(1, -exponent);
    if (exponent != 0) each([&](T& value) { value *= by; });
    if (threadIdx.x == 0) side.backs[slot] = squares == 0 ? T(0) : ldexpf(1, exponent);
  }
}

// right[left * rights + i] *= conj(left) for each left (y of the grid) and its rights.
__global__ void __launch_bounds__(kThreads)
    hadamard_in_place(const Complex* left, Complex* right, Index spectrum, Index lefts,
                      Index rights, const T* left_backs, const T* right_backs) {
  const Index element = static_cast<Index>(blockIdx.x) * kThreads + threadIdx.x;
  if (element >= spectrum) return;
  for (Index l = blockIdx.y; l < lefts; l += gridDim.y) {
    const Complex factor = left[l * spectrum + element];
    const T left_back = left_backs[l];
    Complex* to = right + l * rights * spectrum + element;
    for (Index r = 0; r < rights; ++r) {
      const Complex product = conj_product(factor, to[r * spectrum]);
      to[r * spectrum] = scaled(scaled(product, left_back), right_backs[l * rights + r]);
    }
  }
}

// product[l][r] = conj(left[l]) * right[r].
__global__ void __launch_bounds__(kThreads)
    hadamard_n_to_m(const Complex* left, const Complex* right, Complex* product, Index spectrum,
                    Index rights, Index pairs, const T* left_backs, const T* right_backs) {
  const Index first = static_cast<Index>(blockIdx.x) * kThreads * kItems + threadIdx.x;
  for (Index i = 0; i < kItems; ++i) {
    const Index at = first + i * kThreads;
    if (at >= pairs * spectrum) return;
    const Index pair = at / spectrum, element = at % spectrum;
    const Index l = pair / rights, r = pair % rights;
    const Complex of_pair =
        conj_product(left[l * spectrum + element], right[r * spectrum + element]);
    product[at] = scaled(scaled(of_pair, left_backs[l]), right_backs[r]);
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
        backs(workspace.take<T>(g.input_slots())),
        work(workspace.take<char>(static_cast<Index>(work_bytes))),
        bytes(workspace.bytes()) {}

  Complex* spectra;
  Complex* products;  // for n-to-m; otherwise products overwrite the spectra of the rights
  T* real;            // padded inputs, later the circular outputs
  T* backs;           // of the lefts, then of the rights
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
    scale(stream);
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
  void scale(cudaStream_t stream) const {
    const auto side = [&](Index first, Index slots, const Shape& shape) {
      return PaddedSide{memory_.real + first * g_.in.slot,
                        memory_.backs + first,
                        static_cast<std::uint32_t>(slots),
                        static_cast<std::uint32_t>(shape.size()),
                        Divider(shape.cols),
                        g_.in};
    };
    const Index slots = std::max(g_.left_slots, g_.right_slots);
    launch(scale_kernel, dim3(static_cast<unsigned>(std::min<Index>(slots, Index{1} << 20)), 2),
           dim3(kScaleThreads), 0, stream, side(0, g_.left_slots, g_.left),
           side(g_.left_slots, g_.right_slots, g_.right));
  }

  void hadamard(cudaStream_t stream) const {
    const Problem& q = problem_;
    const auto blocks = [](Index items) {
      return static_cast<unsigned>(ceil_div<Index>(items, kThreads));
    };
    if (q.form == Form::n_to_m) {
      const Index threads = (q.pairs() * g_.spectrum + kItems - 1) / kItems;
      launch(hadamard_n_to_m, dim3(blocks(threads)), dim3(kThreads), 0, stream, lefts_, rights_,
             products_, g_.spectrum, q.rights, q.pairs(), memory_.backs, memory_.backs + q.lefts);
    } else {
      const dim3 grid(blocks(g_.spectrum), static_cast<unsigned>(std::min<Index>(q.lefts, 65535)));
      launch(hadamard_in_place, grid, dim3(kThreads), 0, stream, lefts_, rights_, g_.spectrum,
             q.lefts, q.rights / q.lefts, memory_.backs, memory_.backs + q.lefts);
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
