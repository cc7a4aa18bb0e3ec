// A session plans once, keeps its memory, and computes as often as it is asked to.
#include <gtest/gtest.h>

#include <functional>
#include <thread>
#include <vector>

#include "harness/library/session.hpp"
#include "harness/measure/measure.hpp"
#include "harness/registry.hpp"
#include "tests/support/fixture.hpp"
#include "tests/support/forwarding_device.hpp"

namespace xcorr {
namespace {

int plans = 0, allocations = 0, exclusive = 0, made_current = 0;

// left[0] * right[0], right for 1 x 1.
struct Product : Plan {
  explicit Product(const PlanRequest&) { ++plans; }
  void compute(const Call& call) override {
    exclusive += call.exclusive;
    call.outs<float>()[0] = call.lefts<float>()[0] * call.rights<float>()[0];
  }
};

Variant product() {
  Variant variant;
  variant.id = "product";
  variant.forms = {Form::one_to_one};
  variant.workspace_bytes = [](const PlanRequest&) -> std::size_t { return 100; };
  variant.supports = [](const PlanRequest& request) {
    return request.problem.left.rows == 1 ? yes() : no("more than one row");
  };
  variant.plan = make_plan<Product>;
  return variant;
}

PlanRequest request_of(const std::string& problem) { return {parse_problem(problem)}; }

// A device whose memory the host does not read by itself, as that of a card.
struct Apart : ForwardingDevice {
  bool host_memory() const override { return false; }
  void make_current() override { ++made_current; }
  Buffer allocate(std::size_t bytes) override {
    ++allocations;
    return ForwardingDevice::allocate(bytes);
  }
};

constexpr const char* kSmall = "one-to-one/1x1/1x1/1:1/full";

template <typename D>
void computes_twice_and_plans_once(int expected_allocations) {
  plans = allocations = 0;
  const Variant variant = product();
  Session session(variant, request_of(kSmall), std::make_unique<D>());
  for (const float value : {2.0f, 5.0f}) {
    const float left = value, right = 3.0f;
    float out = 0;
    session.compute({&left, &right, &out});
    EXPECT_EQ(out, 3.0f * value);
  }
  EXPECT_EQ(plans, 1);
  EXPECT_EQ(allocations, expected_allocations);
}

TEST(Session, TheSecondComputationDoesNotPlan) {
  computes_twice_and_plans_once<ForwardingDevice>(0);
}

TEST(Session, NorDoesItAllocateOnADevice) { computes_twice_and_plans_once<Apart>(4); }

// Its caller may have anything else on the device, of which the library knows nothing. The harness
// has the device to itself.
TEST(Session, IsNeverAloneOnTheDevice) {
  exclusive = 0;
  computes_twice_and_plans_once<ForwardingDevice>(0);
  computes_twice_and_plans_once<Apart>(4);
  EXPECT_EQ(exclusive, 0);

  const Variant variant = product();
  const auto device = open_device("cpu");
  EXPECT_EQ(Point({&variant, {}, Precision::fp32, parse_problem(kSmall)}, *device).prepare(),
            Outcome::passed);
  EXPECT_GT(exclusive, 0);
}

// The thread that computes may have another device than the one that opened the session.
TEST(Session, ComputesOnItsOwnDevice) {
  made_current = 0;
  computes_twice_and_plans_once<Apart>(4);
  EXPECT_EQ(made_current, 2);
}

// FFTW's planner is one for the process: a variant of the CPU plans with it, and so does a
// reference.
TEST(Session, PlansWhileAReferenceDoes) {
  const Variant& variant = find_variant("cpu_fft");
  std::thread sessions([&] {
    for (int i = 0; i < 100; ++i) {
      PlanRequest request = request_of(i % 2 == 0 ? "one-to-one/12x14/12x14/1:1/full"
                                                  : "one-to-one/9x7/9x7/1:1/full");
      request.params = grid_points(variant).front();
      request.precision = Precision::fp64;
      Session(variant, request, open_device("cpu"));
    }
  });
  const Problem problem = parse_problem("one-to-one/33x31/33x31/1:1/full");
  const std::vector<double> ones(static_cast<std::size_t>(problem.left_elements()), 1.0);
  std::vector<double> out(problem.out_elements());
  for (int i = 0; i < 1000; ++i) {
    FftReference(problem, ones.data(), ones.data()).correlate(0, 1, out.data());
    ASSERT_NEAR(out[0], 1.0, 1e-9);
  }
  sessions.join();
}

// A surface of the pair's left values, masked by the mask and found through the view, so that a test
// sees what the variant was given.
struct Copied : Plan {
  explicit Copied(const PlanRequest& request) : problem(request.problem) {}
  void compute(const Call& call) override {
    for (Index i = 0; i < problem.left.cols; ++i) {
      const Index at = call.left_view.offsets ? call.left_view.offsets[0] + i : i;
      const bool valid = !call.left_mask || call.left_mask[i];
      call.outs<float>()[i] = valid ? call.lefts<float>()[at] + call.rights<float>()[0] : 0.0f;
    }
  }
  Problem problem;
};

Variant copied() {
  Variant variant = product();
  variant.scores = {ScoreKind::product, ScoreKind::ncc};
  variant.masks = true;
  variant.views = {Views::dense, Views::windows, Views::channels};
  variant.supports = [](const PlanRequest&) { return yes(); };
  variant.plan = make_plan<Copied>;
  return variant;
}

// Four outputs, at shifts 0 to 3.
constexpr const char* kFour = "one-to-one/1x4/1x4/1:1/sy:0..0,sx:0..3";

template <typename D>
void passes_masks_and_views() {
  const Variant variant = copied();
  const float left[] = {1, 2, 3, 4, 5, 6, 7, 8}, right[] = {10, 0, 0, 0};
  const std::uint8_t mask[] = {1, 0, 1, 1};
  const Index offset[] = {3}, zero[] = {0};
  float out[4];
  const auto computed = [&](const std::string& fields, const std::function<void(Arrays&)>& set) {
    Session session(variant, request_of(kFour + fields), std::make_unique<D>());
    Arrays arrays{left, right, out};
    set(arrays);
    session.compute(arrays);
    return std::vector<float>(out, out + 4);
  };
  EXPECT_EQ(computed("/score=ncc/masks=left", [&](Arrays& a) { a.left_mask = mask; }),
            (std::vector<float>{11, 0, 13, 14}));
  const auto views = [&](Arrays& a) {
    a.left_view = {offset, 4};
    a.right_view = {zero, 4};
    a.left_elements = 8;
    a.right_elements = 4;
  };
  EXPECT_EQ(computed("/views=windows", views), (std::vector<float>{14, 15, 16, 17}));
  EXPECT_EQ(computed("/same=yes", [](Arrays& a) { a.right = nullptr; }),
            (std::vector<float>{2, 3, 4, 5}));
  const auto refuses = [&](const std::string& fields, const std::function<void(Arrays&)>& set,
                           const std::string& why) {
    expect_says(user_error([&] { computed(fields, set); }), why);
  };
  const auto nothing = [](Arrays&) {};
  const auto shorter = [&](Index Arrays::* elements, Index count) {
    return [&views, elements, count](Arrays& a) {
      views(a);
      a.*elements = count;
    };
  };
  refuses("/score=ncc/masks=left", nothing, "the left masks are missing");
  refuses("/views=windows", nothing, "the left offsets are missing");
  refuses("/views=windows", shorter(&Arrays::left_elements, 6),
          "matrix 0 at offset 3 leaves the array of 6 elements");
  refuses("/views=channels", shorter(&Arrays::right_elements, 3),
          "the right row 0 at offset 0 leaves the array of 3");
}

TEST(Session, PassesMasksAndViews) { passes_masks_and_views<ForwardingDevice>(); }
TEST(Session, CopiesMasksAndViewsToADevice) { passes_masks_and_views<Apart>(); }

struct Card : Apart {
  Backend backend() const override { return Backend::cuda; }
};

// Kernels number the elements of a window with 32 bits. The arrays are not there: the refusal comes before
// they are read.
TEST(Session, RefusesWindowsThatAGpuCannotNumber) {
  Variant variant = copied();
  const auto refused = [&](const std::string& problem, Index pitch,
                           std::unique_ptr<Device> device) {
    variant.backend = device->backend();
    Session session(variant, request_of(problem), std::move(device));
    const Index offset[] = {1};
    Arrays arrays;
    arrays.left = arrays.right = offset;  // refused before it is read
    arrays.left_view = arrays.right_view = {offset, pitch};
    arrays.left_elements = Index{1} << 32;
    arrays.right_elements = 1;  // of the next refusal
    return user_error([&] { session.compute(arrays); });
  };
  constexpr const char* kWindows = "one-to-one/32x32/32x32/1:1/sy:0..0,sx:0..3/views=windows";
  const std::string next = "the right pitch is ";
  EXPECT_EQ(
      refused(kWindows, 70'000'000, std::make_unique<Card>()),
      "views 'windows': the left windows of 32 rows span 2170000032 elements of the array at "
      "a pitch of 70000000, more than 2^31 - 1; use arrays with fewer columns, or device cpu");
  // 31 rows and 32 elements: 2^31 - 1, and 30 more.
  expect_says(refused(kWindows, 69273665, std::make_unique<Card>()), next);
  expect_says(refused(kWindows, 69273666, std::make_unique<Card>()), "span 2147483678");
  expect_says(refused(kWindows, 70'000'000, std::make_unique<ForwardingDevice>()), next);
  // One row has no pitch.
  constexpr const char* kRow = "one-to-one/1x32/1x32/1:1/sy:0..0,sx:0..3/views=windows";
  expect_says(refused(kRow, Index{1} << 32, std::make_unique<Card>()), next);
}

TEST(Session, MoreDetectionsThanTheCapacityAreAnError) {
  const Variant variant = copied();
  const float left[] = {1, 2, 3, 4}, right[] = {10, 0, 0, 0};
  for (const auto& [capacity, fits] : {std::pair{"3", true}, {"2", false}}) {
    Session session(variant, request_of(kFour + ("/result=above:11.5:" + std::string(capacity))),
                    std::make_unique<Apart>());
    char out[16 + 3 * 16];
    const std::string said = user_error([&] { session.compute({left, right, out}); });
    EXPECT_EQ(said.empty(), fits) << said;
    if (!fits) {
      EXPECT_EQ(said,
                "result 'above:11.5:2': 3 outputs are at least the threshold, the capacity is 2; "
                "use a larger capacity or threshold, or a least distance (above:t:c:d)");
    }
  }
}

TEST(Session, AskingPlansNothing) {
  plans = 0;
  const Variant variant = product();
  EXPECT_TRUE(supported(variant, request_of(kSmall), cpu()));
  EXPECT_EQ(supported(variant, request_of("one-to-one/2x1/2x1/1:1/full"), cpu()).reason,
            "more than one row");
  EXPECT_EQ(supported(variant, request_of("n-to-m/1x1/1x1/2:2/full"), cpu()).reason,
            "form n-to-m: the variant computes only one-to-one");
  EXPECT_EQ(plans, 0);
}

TEST(Session, RefusesWhatIsNotSupported) {
  const Variant variant = product();
  expect_says(user_error([&] {
                Session(variant, request_of("one-to-one/2x1/2x1/1:1/full"), open_device("cpu"));
              }),
              "'product': not supported: more than one row");
}

}  // namespace
}  // namespace xcorr
