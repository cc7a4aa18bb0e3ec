// The whole correlation by transforms of a pair in one thread-block cluster: derived from
// fused_fft_block, for matrices that do not fit a block, and for pairs too few to fill the GPU with
// one block each. Beyond the paper.
//
// The kernel has three phases: rows, columns with the product, rows again, with a barrier of the
// cluster between them. Between phases the image lies in the shared memory of the cluster's blocks;
// each of them owns some columns. The spectrum of the left stays for all rights of the cluster. For
// n-to-m each right is transformed again for every left, unlike in fused_fft_lanes.
//
// Limits: compute capability 9.0. Square transforms. Not emulated.
// What limits it (H200): it is the fastest variant for no problem that was measured.
#include "algorithms/blocks/plan.hpp"
#include "algorithms/fused_fft/fused_fft_cluster/kernel.hpp"
#include "algorithms/fused_fft/lengths.hpp"
#include "algorithms/fused_fft/roots.hpp"
#include "harness/variant.hpp"

namespace xcorr::fused_fft {
namespace {

using Squares = Lengths<64, 128, 192, 256, 384, 512>;

// Number of clusters that the device holds at once; 0 if its groups of SMs are too small. It also
// sets the kernel's attributes, which a plan does once and not with every launch.
template <int kN>
Index resident_clusters() {
  using S = ClusterShape<kN>;
  const auto kernel = cluster_kernel<kN>;
  const auto* const function = reinterpret_cast<const void*>(kernel);
  allow_shared(function, S::bytes);
  constexpr int kPortable = 8;
  if (S::size > kPortable) {
    check_cuda(cudaFuncSetAttribute(function, cudaFuncAttributeNonPortableClusterSizeAllowed, 1),
               "cluster of more than 8 blocks");
  }
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = S::size;
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(S::size);
  config.blockDim = dim3(S::group_threads, kGroups);
  config.dynamicSmemBytes = S::bytes;
  config.attrs = &attribute;
  config.numAttrs = 1;
  int clusters = 0;
  check_cuda(cudaOccupancyMaxActiveClusters(&clusters, kernel, &config), "occupancy of clusters");
  return clusters;
}

template <int kN>
class ClusterPlan final : public DevicePlan<float> {
  using S = ClusterShape<kN>;

 public:
  explicit ClusterPlan(const PlanRequest& request) : DevicePlan(request.problem) {
    const Problem& q = request.problem;
    auto* const roots = static_cast<Complex*>(request.workspace);
    store_root_tables<Length<kN>, Length<kN>>(roots, request.stream);
    static_cast<FusedProblem&>(a_) = FusedProblem(q, kN, kN, roots);
    const Index m = q.pairs() / q.lefts;
    a_.rights_of_left = static_cast<std::uint32_t>(m);
    a_.rights_back = q.form == Form::n_to_m ? static_cast<std::uint32_t>(m) : 0;
    const Index chunks = std::clamp<Index>(resident_clusters<kN>() / q.lefts, 1, m);
    a_.chunk = static_cast<std::uint32_t>(ceil_div(m, chunks));
    a_.chunks = static_cast<std::uint32_t>(ceil_div<Index>(m, a_.chunk));
    clusters_ = static_cast<unsigned>(q.lefts * a_.chunks);
  }

  void enqueue(const Call& call, const Arrays<float>& arrays) override {
    a_.set(arrays);
    launch({.cluster = S::size}, cluster_kernel<kN>, dim3(clusters_ * S::size),
           dim3(S::group_threads, kGroups), S::bytes, call.stream, a_);
  }

 private:
  ClusterArguments a_{};
  unsigned clusters_ = 0;
};

Support supports(const PlanRequest& request) {
  const Problem& q = request.problem;
  if (compute_capability_major() < 9) return no("clusters need compute capability 9.0");
  if (const Support fit = Squares::supports(q); !fit) return fit;
  return Squares::with(Squares::square(q), [](auto length) {
    using S = ClusterShape<decltype(length)::n>;
    if (const Support fit = shared_fits("a block of the cluster", S::bytes); !fit) return fit;
    if (resident_clusters<decltype(length)::n>() > 0) return yes();
    return no("no " + std::to_string(S::size) + " SMs of the device form a cluster");
  });
}

XCORR_VARIANT({
    .summary = "FFT correlation in one kernel: a tile in a cluster's distributed shared memory",
    .parent = "fused_fft_block",
    .source = "beyond the paper",
    .backend = Backend::cuda,
    .algorithm_class = AlgorithmClass::fft,
    .emulated = false,
    .supports = supports,
    .workspace_bytes = [](const PlanRequest&) { return static_cast<std::size_t>(kRootBytes); },
    .plan = Squares::plan<ClusterPlan>,
});

}  // namespace
}  // namespace xcorr::fused_fft
