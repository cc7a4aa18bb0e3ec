// Plans that are compiled at run time are made ahead, and only those.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness/compilation.hpp"
#include "harness/measure/ahead.hpp"
#include "harness/registry.hpp"
#include "tests/support/fixture.hpp"

namespace xcorr {
namespace {

constexpr const char* kProblems[] = {"one-to-one/1x1/1x1/1:1/full", "one-to-one/2x1/2x1/1:1/full",
                                     "one-to-one/3x1/3x1/1:1/full", "one-to-one/4x1/4x1/1:1/full"};

std::mutex mutex;
std::vector<std::string> plans;  // problems, in the order of their plans

struct Copied : Plan {
  explicit Copied(const PlanRequest& request) : plan(find_variant("cpu_definition").plan(request)) {
    const std::lock_guard lock(mutex);
    plans.push_back(request.problem.id());
    if (request.problem.left.rows == 3) throw std::runtime_error("does not compile");
  }
  void compute(const Call& call) override { plan->compute(call); }
  std::unique_ptr<Plan> plan;
};
struct Compiled : Copied, CompiledAtRunTime {
  using Copied::Copied;
  Compilation compilation() const override { return {}; }
};

// How often each of the problems had a plan, the first time that a point of each was prepared.
template <typename P>
std::vector<Index> plans_of(unsigned threads) {
  Variant variant = find_variant("cpu_definition");
  variant.plan = [](const PlanRequest& request) -> std::unique_ptr<Plan> {
    return std::make_unique<P>(request);
  };
  std::vector<std::unique_ptr<Point>> points;
  std::vector<Point*> in_order;
  for (const char* const problem : kProblems) {
    PointRequest request{&variant, Params{}, Precision::fp32, parse_problem(problem)};
    request.brief = true;
    in_order.push_back(points.emplace_back(std::make_unique<Point>(request, cpu())).get());
  }
  plans.clear();
  Ahead ahead(in_order, threads);
  std::vector<Index> found;
  for (std::size_t i = 0; i < points.size(); ++i) {
    ahead.before(*points[i]);
    const Outcome outcome = points[i]->prepare();
    EXPECT_EQ(outcome, i == 2 ? Outcome::failed : Outcome::passed) << points[i]->reason();
    ahead.after(*points[i]);
    found.push_back(std::count(plans.begin(), plans.end(), points[i]->request().problem.id()));
  }
  EXPECT_EQ(points[2]->reason(), "does not compile");
  return found;
}

TEST(Ahead, EachPlanButTheFirstIsMadeBeforeItsPointIsPrepared) {
  for (const unsigned threads : {0u, 1u, 2u, 16u}) {
    EXPECT_EQ(plans_of<Compiled>(threads), (std::vector<Index>{1, 2, 2, 2})) << threads;
  }
}

TEST(Ahead, WhatIsNotCompiledIsPlannedOnce) {
  EXPECT_EQ(plans_of<Copied>(2), (std::vector<Index>{1, 1, 1, 1}));
}

}  // namespace
}  // namespace xcorr
