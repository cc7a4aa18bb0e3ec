// A call that ends between its launches leaves nothing behind that the next call of its plan finds: the plan puts back
// counters and lists in its workspace.
#include <cstring>

#include "tests/emulation/templates.hpp"

namespace xcorr::emulation {
namespace {

struct Ended {};

// Ends the call at one of its marks, counted from 0.
class EndsAt final : public PhaseMarks {
 public:
  explicit EndsAt(int mark) : left_(mark) {}
  void mark(std::string_view) override {
    if (left_-- == 0) throw Ended();
  }

 private:
  int left_;
};

class EndedCalls : public testing::TestWithParam<Variant> {};
// The calls of variants for templates are several launches that hand on counters and lists.
XCORR_TESTS_OF_VARIANTS(EndedCalls, for_templates());

TEST_P(EndedCalls, leave_nothing_for_the_next) {
  const Variant& v = GetParam();
  int ended = 0;
  for (const Problem& q : problems_of({"n-to-m/5x7/23x40/2:2/valid/score=zncc:0.3/result=peak",
                                       "n-to-m/5x7/23x40/2:2/valid/score=zncc:0.3",
                                       "one-to-one/5x7/23x40/1:1/valid/score=zncc:0.3",
                                       "n-to-m/5x7/23x40/2:2/valid/result=peak"})) {
    const Operands in(q, [](Index i) { return i * 7 % 11; }, [](Index i) { return i * 5 % 13; });
    const void *const left = in.left.get(), *const right = in.right.get();
    const auto size = static_cast<std::size_t>(q.result_bytes(sizeof(float)));
    GlobalMemory expected(size), out(size);
    std::vector<Params> points = points_that_take(v, q);
    if (points.size() > 2) points = {points.front(), points.back()};
    for (const Params& params : points) {
      PlanRequest request{q, params, Precision::fp32};
      GlobalMemory workspace(v.workspace_bytes(request));
      request.workspace = workspace.get();
      try {
        set_order(1);
        v.plan(request)->compute({left, right, expected.get()});
        for (int mark = 0;; ++mark) {
          const std::unique_ptr<Plan> plan = v.plan(request);
          EndsAt marks(mark);
          set_order(1);
          try {
            plan->compute({left, right, out.get(), nullptr, &marks});
            break;  // it has no more of them
          } catch (const Ended&) {
          }
          out.poison();
          set_order(1);
          plan->compute({left, right, out.get()});
          EXPECT_EQ(std::memcmp(out.get(), expected.get(), size), 0)
              << q.id() << ' ' << params.canonical() << ", after a call that ended at mark "
              << mark;
          ++ended;
        }
      } catch (const NotInSample&) {
      }
    }
  }
  EXPECT_GT(ended, 0);
}

}  // namespace
}  // namespace xcorr::emulation
