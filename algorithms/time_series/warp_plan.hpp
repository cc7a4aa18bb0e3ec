// The host side of warp_products.hpp: kernels by number of shifts, limits and launches.
#pragma once

#include <memory>
#include <string>

#include "algorithms/blocks/overlap_geometry.hpp"
#include "algorithms/blocks/plan.hpp"
#include "algorithms/blocks/points.hpp"
#include "algorithms/time_series/warp_products.hpp"
#include "harness/variant.hpp"

namespace xcorr::time_series {

using WarpKernel = void (*)(Series, Cut, const float*, const float*, float*);

// A kernel and its launch parameters.
struct WarpProducts {
  WarpKernel kernel;
  int shifts_per_warp, step;
  std::size_t (*words)(int panel, int shifts);  // of dynamic shared memory
};

template <typename Maths, int kShifts>
WarpProducts warp_products() {
  return {time_series_kernel<Maths, kShifts / kColumns>, kShifts, Maths::kStep, Maths::words};
}

// The kernel for `shifts`, one of the values of an axis. make(shifts) is called with
// std::integral_constant.
template <typename Shifts, typename Make>
WarpProducts choose_shifts(int shifts, const Make& make) {
  WarpProducts found = {};
  with_value(typename Shifts::Built(), shifts, [&](auto built) { found = make(built); });
  return found;
}

// The kernel that parameter shifts_per_warp names, where Maths has no other parameter.
template <typename Maths, typename Shifts>
WarpProducts products_by_shifts(const Params& params) {
  return choose_shifts<Shifts>(params.get_int("shifts_per_warp"),
                               [](auto shifts) { return warp_products<Maths, shifts>(); });
}

class WarpPlan final : public DevicePlan<float> {
 public:
  WarpPlan(const PlanRequest& request, const WarpProducts& products)
      : DevicePlan(request.problem),
        products_(products),
        threads_(request.params.get_int("warps_per_block") * warp::kSize),
        cut_(cut(request, products)),
        bytes_(bytes(request, products)) {
    const Index resident =
        resident_blocks(reinterpret_cast<const void*>(products.kernel), threads_, bytes_);
    blocks_ = static_cast<unsigned>(std::clamp<Index>(resident / groups_, 1, cut_.tiles));
  }

  static Support supports(const PlanRequest& request, const WarpProducts& products) {
    if (!matrix::supported())
      return no("tensor cores with tf32 and fp16 need compute capability 8.0");
    if (const Support is = supports_series(request.problem); !is) return is;
    if (const Support fit = steps_fit(request.problem); !fit) return fit;
    return shared_fits("a panel of the templates and of the signal", bytes(request, products));
  }

 private:
  static int block_shifts(const PlanRequest& request, const WarpProducts& products) {
    return request.params.get_int("warps_per_block") * products.shifts_per_warp;
  }
  static Cut cut(const PlanRequest& request, const WarpProducts& products) {
    const Problem& q = request.problem;
    // A multiple of the steps of every Maths.
    const Index panel =
        std::min<Index>(SeriesTuning::kMostPanel, ceil_div<Index>(q.left.cols, 16) * 16);
    return {static_cast<int>(panel),
            static_cast<int>(ceil_div<Index>(q.out_cols(), block_shifts(request, products))), 0};
  }
  static std::size_t bytes(const PlanRequest& request, const WarpProducts& products) {
    return products.words(cut(request, products).panel, block_shifts(request, products)) *
           sizeof(std::uint32_t);
  }

  void enqueue(const Call& call, const Arrays<float>& arrays) override {
    Cut cut = cut_;
    for (; cut.first_group < groups_; cut.first_group += static_cast<int>(kGridLimitYZ)) {
      launch(products_.kernel, dim3(blocks_, grid_extent(groups_ - cut.first_group)),
             dim3(static_cast<unsigned>(threads_)), bytes_, call.stream, series_, cut, arrays.left,
             arrays.right, arrays.out);
    }
  }

  const Series series_{SeriesShape(problem_)};
  const int groups_ = ceil_div(series_.templates, kGroup);
  WarpProducts products_;
  int threads_;
  Cut cut_;
  std::size_t bytes_;
  unsigned blocks_;  // per group
};

// .supports and .plan of a variant whose products are kProductsOf(params).
template <WarpProducts (*kProductsOf)(const Params&)>
Support supports_by_warps(const PlanRequest& request) {
  return WarpPlan::supports(request, kProductsOf(request.params));
}
template <WarpProducts (*kProductsOf)(const Params&)>
std::unique_ptr<Plan> plan_by_warps(const PlanRequest& request) {
  return std::make_unique<WarpPlan>(request, kProductsOf(request.params));
}

}  // namespace xcorr::time_series
