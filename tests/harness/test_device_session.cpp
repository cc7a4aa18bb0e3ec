// A session for arrays of a device enqueues on the caller's stream: it allocates, copies and waits
// for nothing. The device here is the host, and notes what it is asked for.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "harness/library/device_session.hpp"
#include "harness/problem/error.hpp"
#include "harness/problem/results.hpp"
#include "harness/registry.hpp"
#include "tests/support/fixture.hpp"
#include "tests/support/forwarding_device.hpp"

namespace xcorr {
namespace {

using Log = std::vector<std::string>;

Log noted;               // since `noted.clear()`
Enqueued enqueued;       // what a recorded call says
bool capturing = false;  // the caller's stream
int current = 7;         // device of the thread
char streams[4];         // the caller's 0 and 1, the session's 2 and 3
void* stream(int i) { return &streams[i]; }
std::string named(void* one) { return std::to_string(static_cast<char*>(one) - streams); }

struct Streams : CallerStreams {
  int enter() override { return std::exchange(current, 0); }
  void leave(int before) override { current = before; }
  Enqueued record(const std::function<void(void*)>& compute) override {
    compute(stream(3));
    noted.emplace_back("recorded");
    return enqueued;
  }
  bool captures(void* /*stream*/) override { return capturing; }
  void* own(bool captured) override { return stream(captured ? 3 : 2); }
  void follow(void* one, void* before) override {
    noted.push_back(named(one) + " follows " + named(before));
  }
  void pack(const Packing& packing, const void* from, void* to, void* one) override {
    noted.push_back("packed on " + named(one));
    CallerStreams::pack(packing, from, to, one);
  }
  void wait(void* one) override { noted.push_back("waited for " + named(one)); }
  void wait_for_all() override { noted.emplace_back("waited for all"); }
};

struct Card : ForwardingDevice {
  bool host_memory() const override { return false; }
  std::unique_ptr<CallerStreams> caller_streams() override { return std::make_unique<Streams>(); }
  Buffer allocate(std::size_t bytes) override {
    noted.emplace_back("allocated");
    return ForwardingDevice::allocate(bytes);
  }
  void upload(void* device, const void* host, std::size_t bytes) override {
    noted.emplace_back("uploaded");
    ForwardingDevice::upload(device, host, bytes);
  }
  void download(void* host, const void* device, std::size_t bytes) override {
    noted.emplace_back("downloaded");
    ForwardingDevice::download(host, device, bytes);
  }
  void synchronize() override { noted.emplace_back("synchronized"); }
};

// out[i] = left[i] + right[0], with the left mask and the left view.
struct Copies : Plan {
  explicit Copies(const PlanRequest& request) : problem(request.problem) {}
  void compute(const Call& call) override {
    EXPECT_EQ(current, 0);
    EXPECT_FALSE(call.exclusive);
    noted.push_back("computed on " + named(call.stream));
    if (call.stream == stream(3) && !capturing) return;  // recorded: nothing runs
    for (Index i = 0; i < problem.left_elements(); ++i) {
      const Index matrix = i / problem.left.size(), at = i % problem.left.size();
      const Index row = at / problem.left.cols, col = at % problem.left.cols;
      const View& view = call.left_view;
      const Index from = view.offsets ? view.offsets[matrix] + row * view.pitch + col : i;
      const bool valid = !call.left_mask || call.left_mask[i];
      if (problem.fields.result.kind == ResultKind::above) {
        call.outs<AboveHeader>()->count = 5;
      } else {
        call.outs<float>()[i] = valid ? call.lefts<float>()[from] + call.rights<float>()[0] : 0;
      }
    }
  }
  Problem problem;
};

Variant copies() {
  Variant variant;
  variant.id = "copies";
  variant.scores = {ScoreKind::product, ScoreKind::ncc};
  variant.masks = true;
  variant.views = {Views::dense, Views::windows, Views::channels};
  variant.results = {ResultKind::surface, ResultKind::above};
  variant.precisions = {Precision::fp32, Precision::fp64};
  variant.plan = make_plan<Copies>;
  return variant;
}

struct alignas(16) Numbers {
  float left[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, right[12] = {10}, out[64] = {};
};

constexpr const char* kMatrix = "one-to-one/2x3/2x3/1:1/sy:0..1,sx:0..2";

class DeviceSessions : public testing::Test {
 protected:
  DeviceSessions() {
    enqueued = {};
    capturing = false;
    current = 7;
    noted.clear();
  }
  std::unique_ptr<DeviceSession> open(
      const std::string& problem, const std::function<void(SideLayout&, SideLayout&)>& change = {},
      Precision precision = Precision::fp32) {
    PlanRequest request;
    request.problem = parse_problem(problem);
    request.precision = precision;
    std::array<SideLayout, 2> layouts = {dense_layout(request.problem, Side::left, precision),
                                         dense_layout(request.problem, Side::right, precision)};
    if (change) change(layouts[0], layouts[1]);
    auto session =
        std::make_unique<DeviceSession>(copies(), request, layouts, std::make_unique<Card>());
    opened_ = std::exchange(noted, {});
    return session;
  }
  Log called(DeviceSession& session, const void* left, int at = 0) {
    noted.clear();
    session.enqueue({left, numbers_.right, numbers_.out}, stream(at));
    return noted;
  }
  std::vector<float> out(int count = 6) const { return {numbers_.out, numbers_.out + count}; }

  Numbers numbers_;
  Log opened_;
};

TEST_F(DeviceSessions, ACallOnlyComputesOnTheStreamOfTheCaller) {
  const auto session = open(kMatrix);
  for (const int at : {0, 1, 0}) {
    EXPECT_EQ(called(*session, numbers_.left, at), Log{"computed on " + std::to_string(at)});
    EXPECT_EQ(current, 7);
  }
  EXPECT_EQ(out(), (std::vector<float>{11, 12, 13, 14, 15, 16}));
}

TEST_F(DeviceSessions, APlanIsCompleteBeforeItIsRecordedAndUsed) {
  open(kMatrix);
  EXPECT_EQ(opened_, (Log{"allocated", "allocated", "synchronized", "computed on 3", "recorded"}));
  EXPECT_EQ(current, 7);
}

// The variant lets the next such kernel of the process wait for the stream that it has seen last,
// which a caller may have destroyed, or may be recording.
TEST_F(DeviceSessions, CooperativeKernelsRunInAStreamOfTheSession) {
  enqueued.cooperative = true;
  const auto session = open(kMatrix);
  EXPECT_EQ(called(*session, numbers_.left), (Log{"2 follows 0", "computed on 2", "0 follows 2"}));
  capturing = true;
  EXPECT_EQ(called(*session, numbers_.left), (Log{"3 follows 0", "computed on 3", "0 follows 3"}));
}

TEST_F(DeviceSessions, AVariantThatCannotBeRecordedIsRefusedByName) {
  enqueued.support = no("it waits");
  EXPECT_THROW(open(kMatrix), NotEnqueued);
  EXPECT_EQ(user_error([&] { open(kMatrix); }),
            "variant 'copies': a call cannot be enqueued for arrays of a device (it waits); use "
            "another variant");
  EXPECT_EQ(current, 7);
}

TEST_F(DeviceSessions, AnotherTypeIsConvertedInMemoryOfTheSession) {
  const auto session =
      open(kMatrix, [](SideLayout& left, SideLayout&) { left.type = ElementType::int16; });
  const std::int16_t left[] = {-1, 2, 300, -400, 5, 6};
  EXPECT_EQ(called(*session, left), (Log{"packed on 0", "computed on 0"}));
  EXPECT_EQ(out(), (std::vector<float>{9, 12, 310, -390, 15, 16}));
}

TEST_F(DeviceSessions, StridesAndAddressesThatKernelsDoNotTakeAreCopied) {
  const auto turned =
      open(kMatrix, [](SideLayout& left, SideLayout&) { left.strides = {0, 1, 2}; });
  EXPECT_EQ(called(*turned, numbers_.left), (Log{"packed on 0", "computed on 0"}));
  EXPECT_EQ(out(), (std::vector<float>{11, 13, 15, 12, 14, 16}));
  const auto moved = open(kMatrix, [](SideLayout& left, SideLayout&) { left.aligned = false; });
  EXPECT_EQ(called(*moved, numbers_.left + 1), (Log{"packed on 0", "computed on 0"}));
  EXPECT_EQ(out(), (std::vector<float>{12, 13, 14, 15, 16, 17}));
}

TEST_F(DeviceSessions, TheStrideOfAnAxisOfOneElementHasNoMeaning) {
  const auto session =
      open(kMatrix, [](SideLayout& left, SideLayout&) { left.strides = {99, 3, 1}; });
  EXPECT_EQ(called(*session, numbers_.left), Log{"computed on 0"});
}

TEST_F(DeviceSessions, WindowsAreReadInPlace) {
  const auto session =
      open("n-to-mn/1x3/1x3/2:2/sy:0..0,sx:0..2/views=windows",
           [](SideLayout& left, SideLayout& right) { left.strides = right.strides = {5, 4, 1}; });
  EXPECT_EQ(std::count(opened_.begin(), opened_.end(), "uploaded"), 2);
  EXPECT_EQ(called(*session, numbers_.left), Log{"computed on 0"});
  EXPECT_EQ(out(), (std::vector<float>{11, 12, 13, 16, 17, 18}));
  expect_says(user_error([&] {
                open("one-to-one/2x3/2x3/1:1/full/views=windows",
                     [](SideLayout& left, SideLayout&) { left.strides = {0, 3, 2}; });
              }),
              "views 'windows': the left strides or type are not those of windows");
}

TEST_F(DeviceSessions, MasksAreThoseOfTheCaller) {
  const auto session = open(std::string(kMatrix) + "/score=ncc/masks=left");
  const std::uint8_t mask[] = {1, 0, 1, 1, 0, 1};
  noted.clear();
  session->enqueue({numbers_.left, numbers_.right, numbers_.out, mask}, stream(1));
  EXPECT_EQ(noted, Log{"computed on 1"});
  EXPECT_EQ(out(), (std::vector<float>{11, 0, 13, 14, 0, 16}));
  EXPECT_EQ(user_error([&] { called(*session, numbers_.left); }),
            "left_mask: null; give the address of the array");
}

TEST_F(DeviceSessions, WithSameThereIsOneArray) {
  const auto session = open(std::string(kMatrix) + "/same=yes");
  session->enqueue({numbers_.left, nullptr, numbers_.out}, stream(0));
  EXPECT_EQ(out(), (std::vector<float>{2, 3, 4, 5, 6, 7}));
}

TEST_F(DeviceSessions, RefusesBeforeAnythingIsEnqueued) {
  const auto session =
      open(kMatrix, [](SideLayout& left, SideLayout&) { left.type = ElementType::int16; });
  const auto refused = [&](const DeviceArrays& arrays, const std::string& why) {
    noted.clear();
    expect_says(user_error([&] { session->enqueue(arrays, stream(0)); }), why);
    EXPECT_EQ(noted, Log{});
  };
  auto& [left, right, out] = numbers_;
  refused({nullptr, right, out}, "left: null; give the address of the array");
  refused({left, nullptr, out}, "right: null");
  refused({left, right, nullptr}, "out: null");
  refused({left, right, out + 1}, "out: its address is no multiple of 16 bytes");
  refused({left, right + 1, out}, "right: its address is no multiple of 16 bytes");
}

TEST_F(DeviceSessions, RefusesTypesThatThePrecisionWouldRound) {
  const auto wide = [](SideLayout& left, SideLayout&) { left.type = ElementType::int32; };
  EXPECT_EQ(user_error([&] { open(kMatrix, wide); }),
            "left: precision 'fp32' would round numbers of type int32; use precision fp64, or "
            "convert the array first");
  EXPECT_EQ(user_error([&] { open(kMatrix, wide, Precision::fp64); }), "");
  expect_says(user_error([&] { open("one-to-one/2x3/2x3/1:1/full/views=channels"); }),
              "views 'channels': no session for arrays of a device");
}

TEST_F(DeviceSessions, TheCountOfDetectionsIsCheckedWhenItIsAskedFor) {
  for (const auto& [capacity, fits] : {std::pair{"5", true}, {"4", false}}) {
    const auto session = open(std::string(kMatrix) + "/result=above:1:" + capacity);
    EXPECT_EQ(called(*session, numbers_.left), Log{"computed on 0"});
    noted.clear();
    const std::string said = user_error([&] { session->check(numbers_.out, stream(1)); });
    EXPECT_EQ(noted, (Log{"waited for 1", "downloaded"}));
    EXPECT_EQ(said.empty(), fits) << said;
    if (!fits) expect_says(said, "5 outputs are at least the threshold, the capacity is 4");
  }
  const auto surface = open(kMatrix);
  surface->check(nullptr, stream(0));
  EXPECT_EQ(noted, Log{"waited for 0"});
}

TEST_F(DeviceSessions, ItsEndWaitsForItsCalls) {
  open(kMatrix).reset();
  EXPECT_EQ(noted, Log{"waited for all"});
  EXPECT_EQ(current, 7);
}

// Every number of 16 bits, against the definition of the formats.
TEST(Packing, ShortFloatsConvertExactly) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto number = static_cast<std::uint16_t>(bits);
    const double sign = number & 0x8000 ? -1 : 1;
    const auto value = [&](int fraction_bits, int bias, int largest) {
      const int exponent = (number & 0x7fff) >> fraction_bits;
      const int fraction = number & ((1 << fraction_bits) - 1), whole = 1 << fraction_bits;
      if (exponent == largest) {
        return fraction ? std::numeric_limits<double>::quiet_NaN()
                        : sign * std::numeric_limits<double>::infinity();
      }
      return sign * std::ldexp(exponent ? whole + fraction : fraction,
                               std::max(exponent, 1) - bias - fraction_bits);
    };
    const double half = value(10, 15, 31), brain = value(7, 127, 255);
    const double made_half = as_float(Float16Bits{number}),
                 made_brain = as_float(Bfloat16Bits{number});
    ASSERT_TRUE(std::isnan(half) ? std::isnan(made_half) : made_half == half) << bits;
    ASSERT_TRUE(std::isnan(brain) ? std::isnan(made_brain) : made_brain == brain) << bits;
    ASSERT_EQ(std::signbit(made_half), std::signbit(sign)) << bits;
  }
}

}  // namespace
}  // namespace xcorr
