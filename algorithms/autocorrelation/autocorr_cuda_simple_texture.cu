// The simple CUDA program of the ISS paper as published (section 4.3, before its line kernel): "We
// first implement the simple MATLAB/C algorithm of Fig. 4 using CUDA C, loading the image into
// texture memory". A thread has one shift (X0, Y0), sums over the pixels with two loops, and reads
// both pixels of a product from the texture. Derived from autocorr_simple: the loops over shifts
// become threads.
//
// Why this unit beside autocorr_cuda_simple: that one computes the same sums and loads the pixels
// as elements of an array. The comparison of the two units shows what our way of loading is worth.
// It includes the copy of the images into the texture, which every call makes.
//
// The paper calls its texture memory "cached read-only texture memory for large 2D arrays". The
// texture here has two dimensions too, and nearest-point reads at whole coordinates. The paper does
// not say whether its texture is a CUDA array or pitched linear memory. Here it is pitched memory
// of the workspace, because a variant owns no memory. Of the paper's other kernel, which copies
// lines into shared memory, no text says that it reads a texture; autocorr_cuda_whole_lines has
// ordinary loads.
//
// The plan creates the texture once. A call may have other pointers than the previous call, so that
// a texture in the memory of the caller would have to be created in the timed call and destroyed
// after its last kernel. That memory may also lack the alignment of 512 bytes and the pitch that a
// two-dimensional texture must have.
//
// Differences from the paper: pixels and sums are float32, while the paper's images have 8 bits.
// The images of a stack lie one below the other in one texture. No symmetry.
// Limits: a texture in pitched memory has at most 65000 columns, and at most 65000 rows, which are
// those of all images together. A product needs two reads by the texture units and two conversions
// of a coordinate to float32. Texture units take fewer reads per clock than load units: an H200 takes
// 3.2 to 4.5 times as long as with autocorr_cuda_simple (docs/notebook/2026-11-faithful.md).
#include "algorithms/autocorrelation/simple_sums.hpp"
#include "algorithms/device/texture.hpp"

namespace xcorr::autocorrelation {
namespace {

Index texture_rows(const Problem& q) { return q.pairs() * q.left.rows; }

struct TextureLine {
  __device__ __forceinline__ float operator[](int i) const { return texel(images, y, x + i); }
  __device__ __forceinline__ void next() { ++y; }

  Texture images;
  int y, x;
};

__global__ void __launch_bounds__(kSimpleThreads, kSimpleBlocksResident)
    autocorr_cuda_simple_texture_kernel(Geometry q, Texture images, float* __restrict__ out) {
  sum_shifts(q, out, [&](Index image, Index y, Index x) {
    return TextureLine{images, static_cast<int>(image * q.left.rows + y), static_cast<int>(x)};
  });
}

class SimpleTexturePlan final : public DevicePlan<float> {
 public:
  explicit SimpleTexturePlan(const PlanRequest& request)
      : DevicePlan(request.problem),
        images_(request.workspace, texture_rows(request.problem), request.problem.left.cols) {}

 private:
  void enqueue(const Call& call, const Arrays<float>& arrays) override {
    call.phase("build");
    images_.load(arrays.left, call.stream);
    call.phase("rest");
    launch(autocorr_cuda_simple_texture_kernel, simple_grid(problem_), simple_block(), 0,
           call.stream, Geometry(problem_), images_.get(), arrays.out);
  }

  OwnTexture images_;
};

Support support(const PlanRequest& request) {
  const Problem& q = request.problem;
  if (const Support fit = indices_fit(q); !fit) return fit;
  const auto refused = [](Index count, const std::string& what, Index most) {
    return no(std::to_string(count) + " " + what + ": a texture has at most " +
              std::to_string(most) + "; use autocorr_cuda_simple");
  };
  if (q.left.cols > kTextureCols) return refused(q.left.cols, "columns", kTextureCols);
  if (texture_rows(q) > kTextureRows) {
    return refused(texture_rows(q), "rows of all images", kTextureRows);
  }
  return yes();
}

XCORR_VARIANT({
    .summary = "Autocorrelation: one thread per shift, the image in a texture",
    .parent = "autocorr_simple",
    .source = "ISS paper, section 4.3",
    .backend = Backend::cuda,
    .forms = {Form::one_to_one, Form::n_to_mn},
    .same_only = true,
    .supports = support,
    .workspace_bytes =
        [](const PlanRequest& request) {
          return OwnTexture::bytes(texture_rows(request.problem), request.problem.left.cols);
        },
    .plan = make_plan<SimpleTexturePlan>,
});

}  // namespace
}  // namespace xcorr::autocorrelation
