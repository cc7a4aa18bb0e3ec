// Fields of a problem: ids, circular windows, work and bytes, what is refused, views.
#include <gtest/gtest.h>

#include <algorithm>

#include "harness/problem/results.hpp"
#include "harness/problem/views.hpp"
#include "harness/reduce/reduce.hpp"
#include "harness/registry.hpp"
#include "tests/support/fixture.hpp"

namespace xcorr {
namespace {

const std::string kPlain = "n-to-m/4x6/4x6/2:3/full";

std::string refusal(const std::string& id) {
  return user_error([&] { parse_problem(id); });
}

TEST(Fields, DefaultsLeaveTheIdAsItWas) {
  EXPECT_EQ(parse_problem(kPlain).id(), kPlain);
  EXPECT_TRUE(parse_problem(kPlain).is_plain());
  EXPECT_EQ(parse_problem(kPlain + "/score=product/same=no/result=surface").id(), kPlain);
}

TEST(Fields, IdsReadBack) {
  for (const std::string fields :
       {"/boundary=circular", "/boundary=circular/score=phase:0.25", "/score=zncc:0.3/masks=both",
        "/score=ncc:0.5/masks=left/result=peak", "/result=peak:gaussian",
        "/result=peak:upsample=20", "/result=peaks:5", "/result=above:0.8:1000",
        "/result=above:8mad:1000", "/result=above:0.8:1000:16", "/result=above:8mad:1000:2",
        "/result=above:0.5:1073741824", "/result=above:-100000:7", "/result=sum/views=windows",
        "/score=covariance/views=channels"}) {
    EXPECT_EQ(parse_problem(kPlain + fields).id(), kPlain + fields);
    EXPECT_FALSE(parse_problem(kPlain + fields).is_plain()) << fields;
  }
  const std::string same = "n-to-mn/4x6/4x6/3:3/full/same=yes";
  EXPECT_EQ(parse_problem(same).id(), same);
}

TEST(Fields, OneTextForEachValue) {
  EXPECT_EQ(parse_problem(kPlain + "/score=zncc").id(), kPlain + "/score=zncc:0.3");
  EXPECT_EQ(parse_problem(kPlain + "/score=zncc:0.50").id(), kPlain + "/score=zncc:0.5");
  EXPECT_EQ(parse_problem(kPlain + "/result=peak:parabola").id(), kPlain + "/result=peak");
  EXPECT_EQ(parse_problem(kPlain + "/result=above:1e5:7").id(), kPlain + "/result=above:100000:7");
  EXPECT_EQ(parse_problem(kPlain + "/result=above:-0:7").id(), kPlain + "/result=above:0:7");
  EXPECT_EQ(parse_problem(kPlain + "/result=above:2:7:1").id(), kPlain + "/result=above:2:7");
  EXPECT_EQ(parse_problem(kPlain + "/score=phase:0/boundary=circular").id(),
            kPlain + "/boundary=circular/score=phase:0");
}

TEST(Fields, NonsenseIsRefusedInOneLine) {
  struct Case {
    std::string fields, says;
  };
  for (const auto& [fields, says] : {
           Case{"/score=phase/boundary=zero", "needs boundary circular"},
           {"/score=zncc/boundary=circular", "no meaning with boundary circular"},
           {"/score=ncc/boundary=circular", "no meaning with boundary circular"},
           {"/masks=both", "only ncc and zncc use masks"},
           {"/masks=left/score=covariance", "only ncc and zncc use masks"},
           {"/result=above:3", "a capacity is missing"},
           {"/result=above:0.5:0", "capacity out of range; use 1 to 1073741824"},
           {"/result=above:0.5:99999999999", "a larger threshold or a least distance"},
           {"/result=above:0.5:549755813888", "capacity out of range; use 1 to 1073741824"},
           {"/result=above:0.5:5:0", "distance out of range; use 1 to 32767 pixels"},
           {"/result=above:0.5:5:32768", "distance out of range; use 1 to 32767 pixels"},
           {"/result=above:0.5:5:", "a number was expected"},
           {"/result=above:0.5:5:2:3", "a number was expected"},
           {"/result=above:-1mad:5", "negative number of deviations"},
           {"/result=above:x:5", "a number was expected"},
           {"/result=above:nan:5", "a number was expected"},
           {"/result=peaks:0", "out of range"},
           {"/result=peaks", "a number was expected"},
           {"/result=peak:cubic", "use peak:parabola"},
           {"/result=peak:upsample=1", "out of range"},
           {"/result=surface:3", "takes no number"},
           {"/score=zncc:0", "out of range"},
           {"/score=zncc:1.5", "out of range"},
           {"/score=phase:1/boundary=circular", "out of range"},
           {"/score=covariance:1", "takes no number"},
           {"/score=best", "use product, covariance, ncc, zncc or phase"},
           {"/same=yes", "one count"},
           {"/views=some", "use dense, windows or channels"},
           {"/colour=red", "unknown"},
           {"/score", "not understood"},
       }) {
    const std::string said = refusal(kPlain + fields);
    expect_says(said, says);
    EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 0) << fields;
  }
  expect_says(refusal("one-to-one/4x6/4x7/1:1/full/boundary=circular"), "differ");
  expect_says(refusal("one-to-one/4x6/4x7/1:1/full/same=yes"), "one shape");
  const std::string phase = "/boundary=circular/score=phase:0";
  expect_says(refusal("one-to-one/4x4/4x4/1:1/valid" + phase), "no valid window");
  expect_says(refusal("one-to-one/4x4/4x4/1:1/valid/result=peak:upsample=4"), "use window full");
}

TEST(Fields, CircularWindowIsOneTurnAroundZero) {
  const Problem odd = parse_problem("one-to-one/5x8/5x8/1:1/full/boundary=circular");
  EXPECT_EQ(odd.window.sy, (Shifts{-2, 2}));
  EXPECT_EQ(odd.window.sx, (Shifts{-4, 3}));
  EXPECT_EQ(odd.fmas(), 40 * 40);
  EXPECT_EQ(odd.max_overlap(), 40);
  expect_says(refusal("one-to-one/5x8/5x8/1:1/sy:-2..2,sx:-4..4/boundary=circular"),
              "stay within -4..3");
  for (Index y = 0; y < 5; ++y) {
    for (Index shift = -2; shift <= 2; ++shift)
      EXPECT_EQ(wrapped(y, shift, 5), (y + shift + 5) % 5);
  }
}

TEST(Fields, BytesCountWhatIsAskedFor) {
  const Index inputs = (2 + 3) * 24, outputs = 6 * 7 * 11;
  const auto bytes = [&](const std::string& fields) {
    return parse_problem(kPlain + fields).bytes(4);
  };
  EXPECT_EQ(bytes(""), 4 * (inputs + outputs));
  EXPECT_EQ(bytes("/result=peak"), 4 * inputs + 6 * 32);
  EXPECT_EQ(bytes("/result=peaks:3"), 4 * inputs + 6 * 3 * 32);
  EXPECT_EQ(bytes("/result=sum"), 4 * inputs + 6 * 8);
  EXPECT_EQ(bytes("/result=above:1:10"), 4 * inputs + 16 + 10 * 16);
  EXPECT_EQ(bytes("/result=above:1:1073741824"), 4 * inputs + 16 + outputs * 16);
  EXPECT_EQ(bytes("/score=zncc/masks=left"), 4 * (inputs + outputs) + 2 * 24);
  EXPECT_EQ(parse_problem("n-to-mn/4x6/4x6/3:3/full/same=yes").bytes(4), 4 * (3 * 24 + 3 * 77));
  const Problem half = parse_problem("one-to-one/4x6/4x6/1:1/sy:0..3,sx:-5..5/same=yes");
  EXPECT_EQ(half.fmas(), (4 + 3 + 2 + 1) * 36);
}

TEST(Fields, AVariantGetsTheSurfaceWhereTheHarnessReduces) {
  Variant variant;
  PlanRequest request;
  request.problem = parse_problem(kPlain + "/result=peak");
  EXPECT_TRUE(is_reduced(variant, request.problem));
  EXPECT_EQ(variant_request(variant, request).problem.id(), kPlain);
  variant.results.push_back(ResultKind::peak);
  EXPECT_EQ(variant_request(variant, request).problem.id(), kPlain + "/result=peak");
  variant.results.push_back(ResultKind::above);
  EXPECT_FALSE(is_reduced(variant, parse_problem(kPlain + "/result=above:1:5")));
  EXPECT_TRUE(is_reduced(variant, parse_problem(kPlain + "/result=above:1:5:3")));
}

TEST(Fields, AVariantIsAskedForNoFieldThatItDoesNotDeclare) {
  Variant variant = find_variant("cpu_definition");
  variant.boundaries = {Boundary::zero};
  variant.scores = {ScoreKind::product};
  variant.masks = false;
  variant.views = {Views::dense};
  variant.supports = [](const PlanRequest&) { return yes(); };
  const auto reason = [&](const std::string& id) {
    PlanRequest request;
    request.problem = parse_problem(id);
    return cpu().runs(variant, request).reason;
  };
  EXPECT_EQ(reason(kPlain + "/boundary=circular"),
            "boundary circular: the variant computes only zero");
  EXPECT_EQ(reason(kPlain + "/score=zncc"), "score zncc:0.3: the variant computes only product");
  EXPECT_EQ(reason(kPlain + "/views=windows"), "views windows: the variant computes only dense");
  EXPECT_EQ(reason(kPlain + "/result=peak"), "");
  EXPECT_EQ(reason("n-to-mn/4x6/4x6/3:3/full/same=yes"), "");
  variant.scores.push_back(ScoreKind::zncc);
  EXPECT_EQ(reason(kPlain + "/score=zncc/masks=left"),
            "masks left: the variant computes only none");
  variant.same_only = true;
  EXPECT_EQ(reason(kPlain), "same no: the variant computes only yes");
  EXPECT_EQ(reason("n-to-mn/4x6/4x6/3:3/full/same=yes"), "");
}

// The error of a transform of a whole signal grows with the signal, the bound of such a score does not.
TEST(Fields, NormalisedScoresOfTemplatesAlongSignalsAreNotForTransforms) {
  const Problem signal = parse_problem("n-to-m/1x5/1x300/1:1/valid/score=zncc:0.3");
  const auto is_taken = [](const Variant& variant, const Problem& problem) {
    if (std::ranges::find(variant.scores, problem.fields.score.kind) == variant.scores.end() ||
        (problem.fields.masks != Masks::none && !variant.masks)) {
      return false;
    }
    const std::vector<Params> points = grid_points(variant);
    return std::ranges::any_of(points, [&](const Params& point) {
      return static_cast<bool>(variant.supports({problem, point}));
    });
  };
  const auto found = std::ranges::find(variants(), "cufft_normalised", &Variant::id);
  if (found == variants().end()) GTEST_SKIP() << "the build has no cufft_normalised";
  for (const Params& point : grid_points(*found)) {
    EXPECT_EQ(found->supports({signal, point}).reason.rfind("templates along signals: ", 0), 0u);
  }
  for (const char* masks : {"left", "right", "both"}) {
    EXPECT_FALSE(is_taken(*found, parse_problem(signal.id() + "/masks=" + masks))) << masks;
  }
  EXPECT_TRUE(is_taken(*found, parse_problem("n-to-m/1x5/1x300/1:1/full/score=zncc:0.3")));
  EXPECT_TRUE(is_taken(*found, parse_problem("n-to-m/17x5/17x300/1:1/valid/score=zncc:0.3")));
  EXPECT_TRUE(std::ranges::any_of(variants(),
                                  [&](const Variant& other) {
                                    return other.backend == Backend::cuda &&
                                           is_taken(other, signal);
                                  }))
      << "no variant on a GPU takes " << signal.id();
}

TEST(Views, LieInTheirArrayAndOverlap) {
  for (const std::string kind : {"windows", "channels"}) {
    const Problem problem = parse_problem("n-to-m/5x7/5x7/3:8/full/views=" + kind);
    const ViewLayout layout = view_layout(problem, Side::right, 7);
    EXPECT_EQ(layout.offsets.size(), kind == "windows" ? 8u : 40u);
    EXPECT_LT(layout.elements, 2 * problem.right_elements());
    Index last = 0;
    for (Index i = 0; i < 8; ++i) {
      for (Index y = 0; y < 5; ++y) {
        EXPECT_GE(layout.row(i, y, 5), 0);
        last = std::max(last, layout.row(i, y, 5) + 7);
      }
    }
    EXPECT_EQ(last, layout.elements);
  }
  const Problem dense = parse_problem(kPlain);
  EXPECT_EQ(view_layout(dense, Side::left, 7).elements, dense.left_elements());
  EXPECT_TRUE(view_layout(dense, Side::left, 7).offsets.empty());
}

TEST(Same, BothSidesHoldTheSameNumbers) {
  const Problem problem = parse_problem("n-to-mn/4x6/4x6/3:3/full/same=yes");
  for (const InputKind kind : kInputKinds) {
    const Inputs left = make_inputs(problem, kind, 7, Side::left, 3);
    const Inputs right = make_inputs(problem, kind, 7, Side::right, 3);
    for (Index i = 0; i < problem.left_elements(); ++i) EXPECT_EQ(left.value(i), right.value(i));
  }
}

}  // namespace
}  // namespace xcorr
