// Time series by the warpgroup products of Hopper's tensor cores, in tf32. mma.sync, which
// timeseries_tf32 uses, reaches about 62 % of their rate. Derived from timeseries_tf32: here the
// template is spread in place of the signal. Beyond the paper.
//
// With shift = 64 u + v, the outputs of a template are a product of 64 x K by K x U matrices,
// K = T + 63:
//   left[v][k] = template[k - v], 0 outside the template: the same for every u
//   right[k][u] = signal[64 u + k]: columns that begin 64 samples apart and overlap
// So (T + 63) / T of the useful products are made, and neither matrix is stored.
//
// The left matrix is an operand in registers. Its fragments depend on k - v alone: a lane loads two
// of four words of a step from the template, the others are those of the step before. The right
// matrix is an operand in shared memory, in parts of 16 bytes, 4 rows of a column, of which 8
// columns lie side by side. Four rows k of column u + 1 are rows k + 64 of column u. So shared memory
// holds each sample once: part c of the 16 parts of 64 samples is a plane, in which column u has
// place u, and rows 4 c + 64 i of column u have place u + i.
//
// A block has two warpgroups, a tile of 128 columns (8192 shifts) and a group of 16 templates, which
// the warpgroups take in turn.
//
// Forms: n-to-m with one right matrix of one row, each shift with the template inside the signal;
// tf32. No parameters.
// Limits: compute capability 9.0 and code for the target sm_90a, which the build makes where it makes
// code for sm_90; one channel; templates of at most 65536 samples. An infinity or a NaN may reach outputs up to 127 shifts away from those whose windows
// hold it. It has run under the emulation and on no GPU yet.
#include "algorithms/device/matrix.hpp"
#include "algorithms/device/memory.hpp"
#include "algorithms/device/overlap_geometry.hpp"
#include "algorithms/device/plan.hpp"
#include "algorithms/time_series/series_shape.hpp"
#include "harness/variant.hpp"

namespace xcorr::time_series {
namespace {

constexpr int kGroupTemplates = 16;
constexpr int kRows = 64, kTileColumns = 128;  // of a product
constexpr int kTileShifts = kRows * kTileColumns;
constexpr int kWarpgroup = 128, kWarpgroups = 2;
constexpr int kStep = 8, kStepsAtOnce = 4;
constexpr int kPart = 4, kPlanes = kRows / kPart;  // samples of 16 bytes
constexpr int kPerPart = 16;                       // bytes

// Lengths of the operands in shared memory. Made on the host, given to the kernel by value.
struct Layout {
  explicit Layout(const SeriesShape& q)
      : templates(static_cast<int>(q.templates)),
        length(static_cast<int>(q.length)),
        pitch(static_cast<int>(q.pitch)),
        first(static_cast<int>(q.first)),
        shifts(static_cast<int>(q.shifts)),
        groups_of_steps(ceil_div(length + kRows - 1, 2 * kStep * kStepsAtOnce) * 2),
        // Eight neighbouring planes begin in different banks.
        plane((kTileColumns + ceil_div(padded(), kRows)) / 8 * 8 + 9) {}
  __host__ __device__ int padded() const { return groups_of_steps * kStep * kStepsAtOnce; }  // K
  int templates, length, pitch, first, shifts;
  int groups_of_steps;
  int plane;  // parts
  // Samples of the signal that a tile needs, and words of a template with 64 zeros before it.
  __host__ __device__ int samples() const { return kTileShifts - kRows + padded(); }
  __host__ __device__ int template_words() const { return kRows + padded(); }
  std::size_t bytes() const {
    return sizeof(std::uint32_t) *
           static_cast<std::size_t>(kPlanes * plane * kPart + kWarpgroups * template_words());
  }
};

__global__ void __launch_bounds__(kWarpgroups* kWarpgroup, 2)
    wgmma_kernel(Layout q, const float* __restrict__ left, const float* __restrict__ right,
                 float* __restrict__ out) {
  const int thread = static_cast<int>(threadIdx.x) % kWarpgroup;
  const int warpgroup = static_cast<int>(threadIdx.x) / kWarpgroup;
  auto* const planes = dynamic_shared<std::uint32_t>();
  std::uint32_t* const templates =
      planes + kPlanes * q.plane * kPart + warpgroup * q.template_words();
  const int tile_shift = static_cast<int>(blockIdx.x) * kTileShifts;
#pragma unroll 4
  for (int i = static_cast<int>(threadIdx.x); i < q.samples(); i += kWarpgroups * kWarpgroup) {
    const int plane = i % kRows / kPart, place = i / kRows;
    planes[(plane * q.plane + place) * kPart + i % kPart] =
        matrix::to_tf32(load_or_zero(right, q.first + tile_shift + i, q.pitch));
  }
  warpgroup::publish_shared();
  block::barrier();

  const auto wait_for_warpgroup = [&] {
    if (warpgroup == 0) {
      block::barrier(1, kWarpgroup);
    } else {
      block::barrier(2, kWarpgroup);
    }
  };
  // Row v of the lane, and the word of the template that column k = 0 of that row takes.
  const int lane = thread % warp::kSize, row = thread / warp::kSize * 16 + lane / 4;
  const std::uint32_t* const mine = templates + kRows - row + lane % 4;
  const int group = static_cast<int>(blockIdx.y) * kGroupTemplates;
#pragma unroll 1
  for (int i = group + warpgroup; i < group + kGroupTemplates && i < q.templates;
       i += kWarpgroups) {
    // Nobody of the warpgroup reads the template before any more.
    wait_for_warpgroup();
#pragma unroll 1
    for (int k = thread; k < q.template_words(); k += kWarpgroup) {
      templates[k] = matrix::to_tf32(
          load_or_zero(left + static_cast<Index>(i) * q.length, k - kRows, q.length));
    }
    wait_for_warpgroup();

    float d[kTileColumns / 2];
#pragma unroll
    for (float& sum : d) sum = 0.0f;
    std::uint32_t a[2][kStepsAtOnce][4];
    const auto load = [&](std::uint32_t (&of)[kStepsAtOnce][4], int steps) {
#pragma unroll
      for (int s = 0; s < kStepsAtOnce; ++s) {
        const std::uint32_t* const words = mine + (steps * kStepsAtOnce + s) * kStep;
        of[s][0] = words[0];
        of[s][1] = words[-8];
        of[s][2] = words[4];
        of[s][3] = words[-4];
      }
    };
    const auto multiply = [&](const std::uint32_t (&of)[kStepsAtOnce][4], int steps) {
      warpgroup::fence();
#pragma unroll
      for (int s = 0; s < kStepsAtOnce; ++s) {
        const int part = (steps * kStepsAtOnce + s) * (kStep / kPart);
        const std::uint32_t* const b = planes + (part % kPlanes * q.plane + part / kPlanes) * kPart;
        warpgroup::add_product_64x128(d, of[s],
                                      warpgroup::right_matrix(b, q.plane * kPerPart, 8 * kPerPart));
      }
      warpgroup::commit();
    };
    // A group of products runs while the words of the next are loaded.
    load(a[0], 0);
#pragma unroll 1
    for (int steps = 0; steps < q.groups_of_steps; steps += 2) {
      multiply(a[0], steps);
      load(a[1], steps + 1);
      warpgroup::wait<0>();
      multiply(a[1], steps + 1);
      if (steps + 2 < q.groups_of_steps) load(a[0], steps + 2);
      warpgroup::wait<0>();
    }

    // From an opaque number, so that nothing of it is computed before the products and kept in
    // registers that the sums need.
    const int column = opaque(lane) % 4 * 2;
    int shift = tile_shift + column * kRows + row;
    float* const to = out + static_cast<Index>(i) * q.shifts;
#pragma unroll
    for (int j = 0; j < kTileColumns / 8; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int at = shift + e % 2 * kRows + e / 2 * 8;
        if (at < q.shifts) store_last(to + at, d[4 * j + e]);
      }
      shift += 8 * kRows;
    }
  }
}

class WgmmaPlan final : public DevicePlan<float> {
 public:
  explicit WgmmaPlan(const PlanRequest& request) : DevicePlan(request.problem) {}

 private:
  void enqueue(const Call& call, const Arrays<float>& arrays) override {
    launch(wgmma_kernel,
           dim3(static_cast<unsigned>(ceil_div(layout_.shifts, kTileShifts)),
                static_cast<unsigned>(ceil_div(layout_.templates, kGroupTemplates))),
           dim3(kWarpgroups * kWarpgroup), layout_.bytes(), call.stream, layout_, arrays.left,
           arrays.right, arrays.out);
  }

  const Layout layout_{SeriesShape(problem_)};
};

Support supports(const PlanRequest& request) {
  const Problem& q = request.problem;
  if (compute_capability_major() != 9) return no("warpgroup products need compute capability 9.0");
  if (!warpgroup::supported()) {
    return no("warpgroup products need code for the target sm_90a; configure with -Dgpu_arch=90");
  }
  if (const Support is = supports_series(q); !is) return is;
  if (const Support fit = steps_fit(q); !fit) return fit;
  if (q.left.rows != 1) return no("time series: several channels; timeseries_tf32 sums them");
  if (ceil_div<Index>(q.lefts, kGroupTemplates) > kGridLimitYZ)
    return no("more than 2^20 templates");
  if (q.left.cols > Index{1} << 16) return no("more than 65536 samples of a template");
  return shared_fits("a tile of the signal and two templates", Layout(SeriesShape(q)).bytes());
}

XCORR_VARIANT({
    .summary = "Warpgroup tensor cores, tf32: a spread template times overlapping columns",
    .parent = "timeseries_tf32",
    .source = "beyond the paper",
    .backend = Backend::cuda,
    .precisions = {Precision::tf32},
    .forms = {Form::n_to_m},
    .supports = supports,
    .plan = [](const PlanRequest& request) -> std::unique_ptr<Plan> {
      return std::make_unique<WgmmaPlan>(request);
    },
});

}  // namespace
}  // namespace xcorr::time_series
