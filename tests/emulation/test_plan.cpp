// The base of plans: pointers, cleared outputs, limits, the scalar type.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "algorithms/blocks/plan.hpp"

namespace xcorr::emulation {
namespace {

Problem one_to_many(Index rights) {
  return make_problem(Form::one_to_many, {2, 3}, {2, 2}, 1, rights, "full");
}

class Phases final : public PhaseMarks {
 public:
  void mark(std::string_view name) override { names.emplace_back(name); }
  std::vector<std::string> names;
};

// Adds the number of its scalar's bytes to every output.
template <typename T>
class AddingPlan final : public DevicePlan<T> {
 public:
  explicit AddingPlan(const PlanRequest& request) : AddingPlan(request.problem, true) {}
  AddingPlan(const Problem& problem, bool accumulates) : DevicePlan<T>(problem, accumulates) {}

 private:
  void enqueue(const Call&, const Arrays<T>& arrays) override {
    for (Index i = 0; i < this->problem_.out_elements(); ++i) {
      arrays.out[i] += arrays.left[0] * arrays.right[0] + static_cast<T>(sizeof(T));
    }
  }
};

template <typename T>
std::vector<T> computed(Plan& plan, const Problem& q, Phases& phases) {
  const T left = 2, right = 3;
  std::vector<T> out(static_cast<std::size_t>(q.out_elements()), 100);
  plan.compute({&left, &right, out.data(), nullptr, &phases});
  return out;
}

TEST(DevicePlan, clears_where_kernels_add) {
  const Problem q = one_to_many(3);
  Phases phases;
  AddingPlan<float> adds(q, true), writes(q, false);
  EXPECT_THAT(computed<float>(adds, q, phases), testing::Each(10));
  EXPECT_THAT(phases.names, testing::ElementsAre("clear", "rest"));
  phases.names.clear();
  EXPECT_THAT(computed<float>(writes, q, phases), testing::Each(110));
  EXPECT_THAT(phases.names, testing::IsEmpty());
}

TEST(DevicePlan, is_made_in_the_precision_of_the_request) {
  PlanRequest request;
  request.problem = one_to_many(2);
  Phases phases;
  for (const Precision precision : {Precision::fp32, Precision::tf32}) {
    request.precision = precision;
    const auto plan = plan_in_precision<AddingPlan>(request);
    EXPECT_THAT(computed<float>(*plan, request.problem, phases), testing::Each(10));
  }
  request.precision = Precision::fp64;
  const auto plan = plan_in_precision<AddingPlan>(request);
  EXPECT_THAT(computed<double>(*plan, request.problem, phases), testing::Each(14));
}

TEST(DevicePlan, grids_end_where_cuda_ends_them) {
  EXPECT_EQ(grid_extent(1), 1u);
  EXPECT_EQ(grid_extent(kGridLimitYZ), static_cast<unsigned>(kGridLimitYZ));
  EXPECT_EQ(grid_extent(kGridLimitYZ + 1), static_cast<unsigned>(kGridLimitYZ));
  EXPECT_EQ(grid_extent(Index{1} << 40), static_cast<unsigned>(kGridLimitYZ));
}

TEST(DevicePlan, asks_for_shared_memory_beyond_what_every_device_has) {
  const SharedMemoryOf device(96 * 1024);
  EXPECT_TRUE(shared_fits("a tile", 48 * 1024));
  EXPECT_EQ(device.asked(), 0u);
  EXPECT_TRUE(shared_fits("a tile", 96 * 1024));
  EXPECT_GT(device.asked(), 0u);
  EXPECT_EQ(shared_fits("a tile", 96 * 1024 + 1).reason,
            "a tile: 98305 bytes of shared memory, and a block has 98304");
}

}  // namespace
}  // namespace xcorr::emulation
