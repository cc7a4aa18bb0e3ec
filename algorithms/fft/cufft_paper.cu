// The paper's FFT pipeline on cuFFT, with the paper's accounting (paper section 3.1; its timers are
// those of the published artifact). It is kept so that the paper's figures and ratios can be
// reproduced; the FFT baseline is `cufft`.
//
// Every matrix is padded to exactly 2h x 2w (unequal shapes: the sum of the two). Then one batched
// R2C transform of all lefts and rights, a product kernel, and one batched C2R transform of all
// pairs, both transforms out of place. There are two plans. The product kernel has 256 threads a
// block. For one-to-one, one-to-many and n-to-mn a thread multiplies one element of a left spectrum
// with that of each of its rights in turn, in place, so small matrices hardly fill the GPU. For
// n-to-m a thread makes 10 elements of the products, in a buffer of their own. The paper multiplies
// the left by the conjugate of the right spectrum. conj(left) * right, the same work, gives the
// definition's sign.
//
// What the columns of a row hold: the phases forward, hadamard and inverse are marked, so their
// columns hold the paper's `fft`, and with plan_us its `fft+plan`. The paper's timers leave out
// zero padding, the quadrant swap, the division by the transform size and allocation. Here padding
// and layout (swap, crop, division) are inside compute too, as a rest that no phase has, since a
// caller needs them on every call. So compute_us is more than the paper's sum. plan_us is without
// cuFFT's work area, which the harness allocates.
//
// Forms: all four, any shapes, any window (the transform is that of the full one); fp32. No
// parameters. Limits: nothing is cut into chunks, so all spectra and all padded images are in
// memory at a time (n-to-m 128:128 at 256 x 256: 35 GB beside the outputs). Not emulated.
#include <algorithm>

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

__device__ Complex conj_product(Complex left, Complex right) {
  return {left.x * right.x + left.y * right.y, left.x * right.y - left.y * right.x};
}

// right[left * rights + i] *= conj(left) for each left (y of the grid) and its rights.
__global__ void __launch_bounds__(kThreads)
    hadamard_in_place(const Complex* left, Complex* right, Index spectrum, Index lefts,
                      Index rights) {
  const Index element = static_cast<Index>(blockIdx.x) * kThreads + threadIdx.x;
  if (element >= spectrum) return;
  for (Index l = blockIdx.y; l < lefts; l += gridDim.y) {
    const Complex factor = left[l * spectrum + element];
    Complex* to = right + l * rights * spectrum + element;
    for (Index r = 0; r < rights; ++r) to[r * spectrum] = conj_product(factor, to[r * spectrum]);
  }
}

// product[l][r] = conj(left[l]) * right[r].
__global__ void __launch_bounds__(kThreads)
    hadamard_n_to_m(const Complex* left, const Complex* right, Complex* product, Index spectrum,
                    Index rights, Index pairs) {
  const Index first = static_cast<Index>(blockIdx.x) * kThreads * kItems + threadIdx.x;
  for (Index i = 0; i < kItems; ++i) {
    const Index at = first + i * kThreads;
    if (at >= pairs * spectrum) return;
    const Index pair = at / spectrum, element = at % spectrum;
    product[at] = conj_product(left[pair / rights * spectrum + element],
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

// Where things lie in the workspace, in bytes; the work area comes last.
struct Places {
  Index products, real, work;
};

Places places(const Problem& q, const FftGeometry& g) {
  const auto after = [](Index offset, Index bytes) { return (offset + bytes + 255) / 256 * 256; };
  const Index spectrum_bytes = g.spectrum * Index{sizeof(Complex)};
  Places at{};
  at.products = after(0, g.input_slots() * spectrum_bytes);
  at.real =
      q.form == Form::n_to_m ? after(at.products, g.pair_slots * spectrum_bytes) : at.products;
  at.work = after(at.real, std::max(g.input_slots(), g.pair_slots) * g.in.slot * Index{sizeof(T)});
  return at;
}

class PaperPlan final : public Plan {
 public:
  explicit PaperPlan(const PlanRequest& request)
      : problem_(request.problem), g_(geometry(problem_)), transforms_(g_) {
    const Places at = places(problem_, g_);
    char* base = static_cast<char*>(request.workspace);
    lefts_ = reinterpret_cast<Complex*>(base);
    rights_ = lefts_ + g_.left_slots * g_.spectrum;
    products_ =
        problem_.form == Form::n_to_m ? reinterpret_cast<Complex*>(base + at.products) : rights_;
    real_ = reinterpret_cast<T*>(base + at.real);
    transforms_.make(g_);
    transforms_.use(base + at.work);
  }

  void compute(const Call& call) override {
    const auto stream = static_cast<cudaStream_t>(call.stream);
    const Problem& q = problem_;
    const FftChunk<T> all = {
        call.lefts<T>(), call.rights<T>(), call.outs<T>(), q.lefts, 1, q.rights, 1, q.pairs()};
    pad(g_, all, real_, stream);
    call.phase("forward");
    transforms_.forward(real_, lefts_, stream);
    call.phase("hadamard");
    hadamard(stream);
    call.phase("inverse");
    transforms_.inverse(products_, real_, stream);
    call.phase("rest");
    crop(g_, all, real_, T(1) / static_cast<T>(g_.rows * g_.cols), stream);
  }

 private:
  void hadamard(cudaStream_t stream) const {
    const Problem& q = problem_;
    const auto blocks = [](Index items) {
      return static_cast<unsigned>(ceil_div<Index>(items, kThreads));
    };
    if (q.form == Form::n_to_m) {
      const Index threads = (q.pairs() * g_.spectrum + kItems - 1) / kItems;
      launch(hadamard_n_to_m, dim3(blocks(threads)), dim3(kThreads), 0, stream, lefts_, rights_,
             products_, g_.spectrum, q.rights, q.pairs());
    } else {
      const dim3 grid(blocks(g_.spectrum), static_cast<unsigned>(std::min<Index>(q.lefts, 65535)));
      launch(hadamard_in_place, grid, dim3(kThreads), 0, stream, lefts_, rights_, g_.spectrum,
             q.lefts, q.rights / q.lefts);
    }
  }

  Problem problem_;
  FftGeometry g_;
  Complex *lefts_, *rights_, *products_;
  T* real_;  // padded inputs, later the circular outputs
  CufftTransforms<T> transforms_;
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
  return static_cast<std::size_t>(places(request.problem, g).work) + cufft_work_bytes<T>(g);
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
