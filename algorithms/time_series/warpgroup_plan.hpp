// The host side of warpgroup_products.hpp: kernels by `spread`, limits and launches.
#pragma once

#include <algorithm>
#include <memory>

#include "algorithms/blocks/overlap_geometry.hpp"
#include "algorithms/blocks/plan.hpp"
#include "algorithms/blocks/points.hpp"
#include "algorithms/time_series/warpgroup_products.hpp"
#include "harness/variant.hpp"

namespace xcorr::time_series {

// A kernel and its layout.
struct WarpgroupProducts {
  void (*kernel)(WarpgroupLayout, const float*, const float*, float*);
  WarpgroupLayout (*layout)(const SeriesShape&);
};

// The shifts over which a template can be spread. With few templates a small spread leaves rows of
// a product empty.
using Spread = PointAxis<Values<8, 16, 64>, Values<8, 64>>;

// The kernel that parameter `spread` names.
template <typename Maths>
WarpgroupProducts warpgroup_products(const Params& params) {
  WarpgroupProducts found = {};
  with_value(Spread::Built(), params.get_int("spread"), [&](auto spread) {
    found = {warpgroup_kernel<Maths, spread>, warpgroup_layout<Maths, spread>};
  });
  return found;
}

// Yes, or why there are no warpgroup products for a problem here.
inline Support supports_warpgroups(const Problem& q) {
  if (compute_capability_major() != 9) return no("warpgroup products need compute capability 9.0");
  if (!warpgroup::supported()) {
    return no("warpgroup products need code for the target sm_90a; configure with -Dgpu_arch=90");
  }
  if (const Support is = supports_series(q); !is) return is;
  if (const Support fit = steps_fit(q); !fit) return fit;
  if (ceil_div<Index>(q.lefts, kBlockTemplates) > kGridLimitYZ)
    return no("more than 2^20 templates");
  if (q.left.cols > Index{1} << 16) return no("more than 65536 samples of a template");
  return yes();
}

class WarpgroupPlan final : public DevicePlan<float> {
 public:
  WarpgroupPlan(const PlanRequest& request, const WarpgroupProducts& products)
      : DevicePlan(request.problem),
        products_(products),
        layout_(products.layout(SeriesShape(request.problem))) {
    const Index resident = resident_blocks(reinterpret_cast<const void*>(products.kernel),
                                           kWarpgroups * kWarpgroup, layout_.bytes());
    blocks_ = static_cast<unsigned>(std::clamp<Index>(resident / groups_, 1, layout_.tiles));
  }

  static Support supports(const PlanRequest& request, const WarpgroupProducts& products) {
    const Problem& q = request.problem;
    if (const Support is = supports_warpgroups(q); !is) return is;
    return shared_fits("a tile of the signal and the templates of two products",
                       products.layout(SeriesShape(q)).bytes());
  }

 private:
  void enqueue(const Call& call, const Arrays<float>& arrays) override {
    launch(products_.kernel, dim3(blocks_, static_cast<unsigned>(groups_)),
           dim3(kWarpgroups * kWarpgroup), layout_.bytes(), call.stream, layout_, arrays.left,
           arrays.right, arrays.out);
  }

  WarpgroupProducts products_;
  WarpgroupLayout layout_;
  Index groups_ = ceil_div(layout_.templates, kBlockTemplates);
  unsigned blocks_;  // per group of templates
};

// .supports and .plan of a variant.
template <typename Maths>
Support supports_by_warpgroups(const PlanRequest& request) {
  return WarpgroupPlan::supports(request, warpgroup_products<Maths>(request.params));
}
template <typename Maths>
std::unique_ptr<Plan> plan_by_warpgroups(const PlanRequest& request) {
  return std::make_unique<WarpgroupPlan>(request, warpgroup_products<Maths>(request.params));
}

}  // namespace xcorr::time_series
