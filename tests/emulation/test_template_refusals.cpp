// Which templates template_direct refuses.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "harness/registry.hpp"

namespace xcorr::emulation {
namespace {

// Asked only: no kernel runs.
TEST(TemplateDirect, refuses_sums_of_ncc_that_lose_digits) {
  const auto& all = variants();
  const auto found = std::find_if(
      all.begin(), all.end(), [](const Variant& v) { return v.id == "emulated.template_direct"; });
  if (found == all.end()) GTEST_SKIP() << "not in this program";
  const auto asked = [&](const char* shapes, const char* fields, const char* row_parts) {
    const Problem q = parse_problem("one-to-one/" + std::string(shapes) + "/1:1/valid" + fields);
    Params params;
    params.set("overlap_tile", "8x4");
    params.set("row_parts", row_parts);
    return found->supports({q, params});
  };
  const Support refused = asked("64x64/400x400", "/score=ncc:0.3", "1");
  EXPECT_FALSE(refused);
  EXPECT_EQ(refused.reason.find("row_parts: float32 sums of ncc"), 0u) << refused.reason;
  for (const char* const templates : {"24x32/400x400", "62x66/400x400", "256x200/600x600"}) {
    EXPECT_FALSE(asked(templates, "/score=ncc:0.3", "1")) << templates;
    // The products of other scores have both signs, or their bound is wider.
    for (const char* const fields : {"", "/score=covariance", "/score=zncc:0.3"}) {
      EXPECT_TRUE(asked(templates, fields, "1")) << templates << fields;
    }
  }
  EXPECT_TRUE(asked("8x8/400x400", "/score=ncc:0.3", "1"));
  EXPECT_FALSE(asked("16x16/400x400", "/score=ncc:0.3", "1"));
  EXPECT_TRUE(asked("16x16/400x400", "/score=ncc:0.3", "4"));
  // Few shifts: threads share the rows of the template.
  EXPECT_TRUE(asked("32x32/35x35", "/score=ncc:0.3", "1"));
  EXPECT_FALSE(asked("32x32/400x400", "/score=ncc:0.3", "1"));
}

}  // namespace
}  // namespace xcorr::emulation
