// Autocorrelation by the theorem of Wiener and Khinchin: the inverse transform of the squared
// magnitudes of the image's spectrum. Derived from cufft, which pads an image to a plane,
// transforms the whole plane forward and back, and then crops. Here
//
// - rows of padding are not transformed, and neither are rows of shifts outside the window;
// - a block has a few whole columns in shared memory, transforms them forward, computes the squared
//   magnitudes and transforms them back, so that a plane of products is never in global memory;
// - padding is part of the loads of the first pass, the crop part of the stores of the last pass;
// - two real rows are transformed as one complex row, and two columns of squared magnitudes, which
//   are real, as one complex column;
// - if the window has both halves of the plane, half of the rows are mirror images of the others.
//
// lengths  smooth: 2^a 3^b 5^c of least cost; power: a power of two
//
// Limits: the columns of a block, twice, must fit in shared memory. On an H200 the sum of rows and
// the largest sy of the window is at most 3072 (columns=4) or 6400 (columns=2), the sum of columns
// and the largest sx at most 12,800; for larger problems see cufft. An infinity or a NaN may reach
// outputs whose overlaps do not contain it.
#include "algorithms/autocorrelation/autocorr_fft/kernels.hpp"
#include "algorithms/autocorrelation/autocorr_fft/tuning.hpp"
#include "algorithms/blocks/padding.hpp"
#include "algorithms/blocks/points.hpp"
#include "algorithms/blocks/workspace.hpp"

namespace xcorr::autocorrelation {
namespace {

using Columns = PointAxis<Values<2, 4>>;
using ColumnKernel = void (*)(FftTasks, const Complex*, const Complex*, Complex*);
const bool kKernels = add_kernels<Columns>(
    XCORR_ID, [](auto columns) -> ColumnKernel { return autocorr_fft_columns<columns>; });

constexpr Index kChunkBytes = small_if_emulated(Index{32} << 20, 20000);
constexpr Index kMostLength = Index{1} << 20;

FftTasks tasks_of(const PlanRequest& request) {
  return {request.problem,
          request.params.get("lengths") == "power" ? Lengths::power : Lengths::smooth,
          request.params.get_int("columns")};
}

struct FftMemory {
  FftMemory(const FftTasks& q, Index all_images, Workspace workspace)
      : images(std::clamp<Index>(
            kChunkBytes / ((q.spectrum_size + q.products_size) * Index{sizeof(Complex)}), 1,
            all_images)),
        roots_x(workspace.take<Complex>(q.x.length)),
        roots_y(workspace.take<Complex>(q.y.length)),
        spectra(workspace.take<Complex>(images * q.spectrum_size)),
        products(workspace.take<Complex>(images * q.products_size)),
        bytes(workspace.bytes()) {}

  Index images;  // per chunk
  Complex *roots_x, *roots_y, *spectra, *products;
  std::size_t bytes;
};

class FftPlan final : public DevicePlan<float> {
 public:
  explicit FftPlan(const PlanRequest& request)
      : DevicePlan(request.problem),
        tasks_(tasks_of(request)),
        at_(tasks_, problem_.lefts, Workspace(request.workspace)),
        kernel_(find_kernel<ColumnKernel>(XCORR_ID, {tasks_.columns})),
        row_threads_(threads(tasks_.x, 1, AutocorrFftTuning::kMostRowThreads)),
        column_threads_(threads(tasks_.y, tasks_.columns, AutocorrFftTuning::kMostColumnThreads)) {
    store_roots_of(tasks_.x.length, at_.roots_x, request.stream);
    store_roots_of(tasks_.y.length, at_.roots_y, request.stream);
  }

  static std::size_t workspace_bytes(const PlanRequest& request) {
    return FftMemory(tasks_of(request), request.problem.lefts, Workspace(nullptr)).bytes;
  }

 private:
  static dim3 threads(const Passes& passes, int columns, int most) {
    return dim3(static_cast<unsigned>(choose_threads(passes, columns, most)));
  }

  void enqueue(const Call& call, const Arrays<float>& arrays) override {
    launches_.begin(call);
    for (Index first = 0; first < problem_.lefts; first += at_.images) {
      const Index images = std::min(at_.images, problem_.lefts - first);
      const auto blocks = [&](int of_image) {
        return dim3(static_cast<unsigned>(images * of_image));
      };
      call.phase("forward");
      launches_.run(autocorr_fft_rows, blocks(tasks_.row_pairs), row_threads_, tasks_.row_shared(),
                    call.stream, tasks_, at_.roots_x, arrays.left + first * tasks_.image_size,
                    at_.spectra);
      call.phase("hadamard");
      launches_.run(kernel_, blocks(tasks_.tiles), column_threads_, tasks_.column_shared(),
                    call.stream, tasks_, at_.roots_y, at_.spectra, at_.products);
      call.phase("inverse");
      launches_.run(autocorr_fft_rows_back, blocks(tasks_.out_row_pairs), row_threads_,
                    tasks_.row_shared(), call.stream, tasks_, at_.roots_x, at_.products,
                    arrays.out + first * tasks_.out_size);
      call.phase("rest");
    }
  }

  FftTasks tasks_;
  FftMemory at_;
  ColumnKernel kernel_;
  dim3 row_threads_, column_threads_;
  DependentLaunches launches_;
};

Support supports(const PlanRequest& request) {
  const Shape& image = request.problem.left;
  if (image.rows > kMostLength || image.cols > kMostLength) {
    return no("more than 2^20 rows or columns");
  }
  const FftTasks tasks = tasks_of(request);
  if (const Support rows = shared_fits("two rows of an image", tasks.row_shared()); !rows) {
    return rows;
  }
  return shared_fits("the columns of a block", tasks.column_shared());
}

XCORR_VARIANT({
    .summary =
        "Autocorrelation by own transforms: columns there and back in one kernel, pruned rows",
    .parent = "cufft",
    .source = "beyond the paper",
    .backend = Backend::cuda,
    .algorithm_class = AlgorithmClass::fft,
    .forms = {Form::one_to_one, Form::n_to_mn},
    .axes = {Columns::axis("columns"), {"lengths", {"smooth", "power"}}},
    .same_only = true,
    .supports = supports,
    .workspace_bytes = FftPlan::workspace_bytes,
    .plan = make_plan<FftPlan>,
});

}  // namespace
}  // namespace xcorr::autocorrelation
