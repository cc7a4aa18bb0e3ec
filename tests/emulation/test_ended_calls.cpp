// A call that ends between its launches leaves nothing behind that the next call of its plan finds: counters and lists in the
// workspace are put back.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tests/emulation/emulation.hpp"
#include "tests/emulation/global_memory.hpp"
#include "tests/emulation/sample.hpp"
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
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(EndedCalls);
// Of variants for templates: their calls are several launches that hand on counters and lists.
INSTANTIATE_TEST_SUITE_P(Variants, EndedCalls, testing::ValuesIn(for_templates()),
                         [](const auto& info) {
                           return info.param.id.substr(info.param.id.find('.') + 1);
                         });

TEST_P(EndedCalls, leave_nothing_for_the_next) {
  const Variant& v = GetParam();
  int ended = 0;
  for (const std::string text : {"n-to-m/5x7/23x40/2:2/valid/score=zncc:0.3/result=peak",
                                 "n-to-m/5x7/23x40/2:2/valid/score=zncc:0.3",
                                 "one-to-one/5x7/23x40/1:1/valid/score=zncc:0.3",
                                 "n-to-m/5x7/23x40/2:2/valid/result=peak"}) {
    const Problem q = parse_problem(text);
    GlobalMemory left(floats(q.left_elements())), right(floats(q.right_elements()));
    for (Index i = 0; i < q.left_elements(); ++i)
      left.get<float>()[i] = static_cast<float>(i * 7 % 11);
    for (Index i = 0; i < q.right_elements(); ++i)
      right.get<float>()[i] = static_cast<float>(i * 5 % 13);
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
        v.plan(request)->compute({left.get(), right.get(), expected.get()});
        for (int mark = 0;; ++mark) {
          const std::unique_ptr<Plan> plan = v.plan(request);
          EndsAt marks(mark);
          set_order(1);
          try {
            plan->compute({left.get(), right.get(), out.get(), nullptr, &marks});
            break;  // it has no more of them
          } catch (const Ended&) {
          }
          out.poison();
          set_order(1);
          plan->compute({left.get(), right.get(), out.get()});
          EXPECT_EQ(std::memcmp(out.get(), expected.get(), size), 0)
              << text << ' ' << params.canonical() << ", after a call that ended at mark " << mark;
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
