// The simple C program of the ISS paper (section 4.1): two loops over the shifts X0 and Y0, and
// inside them two loops over the pixels x and y, one thread. Derived from cpu_definition. Only the
// order of the loops differs: the paper names X0, Y0, x, y, so that the innermost loop goes down a
// column: "these two pixel values will reside in locations far away from each other". The order of
// the pixel loops is inferred from that sentence and from what section 4.2 reorders. The paper
// multiplies 8-bit grey values; here they are float32, as all inputs.
//
// Each column has a separate sum: a single float32 sum of a million squares loses 1e-4 of it, since
// squares below its last place are rounded down more often than up.
//
// No symmetry: every shift of the window is computed.
// Limits: each product waits for the previous addition, and both its values come from a different
// cache line than the previous ones.
#include "harness/variant.hpp"

namespace xcorr::autocorrelation {
namespace {

class SimplePlan final : public Plan {
 public:
  explicit SimplePlan(const PlanRequest& request) : problem_(request.problem) {}

  void compute(const Call& call) override {
    const Problem& q = problem_;
    const Index rows = q.left.rows, cols = q.left.cols;
    for (Index p = 0; p < q.pairs(); ++p) {
      const float* const image = call.lefts<float>() + p * q.left.size();
      float* const out = call.outs<float>() + p * q.out_size();
      for (Index sx = q.window.sx.first; sx <= q.window.sx.last; ++sx) {
        for (Index sy = q.window.sy.first; sy <= q.window.sy.last; ++sy) {
          const auto [first_x, width] = overlap(cols, cols, sx);
          const auto [first_y, height] = overlap(rows, rows, sy);
          float sum = 0;
          for (Index x = first_x; x < first_x + width; ++x) {
            float column = 0;
            for (Index y = first_y; y < first_y + height; ++y) {
              column += image[y * cols + x] * image[(y + sy) * cols + x + sx];
            }
            sum += column;
          }
          out[(sy - q.window.sy.first) * q.out_cols() + sx - q.window.sx.first] = sum;
        }
      }
    }
  }

 private:
  Problem problem_;
};

XCORR_VARIANT({
    .summary = "Autocorrelation, simple C: loops over shifts, within them over pixels",
    .parent = "cpu_definition",
    .source = "ISS paper, section 4.1",
    .forms = {Form::one_to_one, Form::n_to_mn},
    .same_only = true,
    .plan = make_plan<SimplePlan>,
});

}  // namespace
}  // namespace xcorr::autocorrelation
