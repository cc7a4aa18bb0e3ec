// The CPU device, and the outcomes of points that it cannot run.
#include <gtest/gtest.h>

#include <cctype>
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>

#include "harness/compilation.hpp"
#include "harness/device/device.hpp"
#include "harness/device/host_memory.hpp"
#include "harness/library/catalogue.hpp"
#include "tests/support/fixture.hpp"
#include "tests/support/forwarding_device.hpp"

namespace xcorr {
namespace {

bool aligned(const void* memory) { return reinterpret_cast<std::uintptr_t>(memory) % 256 == 0; }

// Right for 1 x 1; checks what it is given, marks its phases.
struct Probe : Plan {
  explicit Probe(const PlanRequest& request) {
    if (!aligned(request.workspace)) throw std::runtime_error("the workspace is not aligned");
  }
  void compute(const Call& call) override {
    if (!aligned(call.left) || !aligned(call.right) || !aligned(call.out)) {
      throw std::runtime_error("a buffer is not aligned");
    }
    for (const char* phase : {"build", "forward", "hadamard", "inverse"}) call.phase(phase);
    call.outs<float>()[0] = call.lefts<float>()[0] * call.rights<float>()[0];
  }
};

Variant probe() {
  Variant variant;
  variant.id = "probe";
  variant.forms = {Form::one_to_one};
  variant.workspace_bytes = [](const PlanRequest&) -> std::size_t { return 100; };
  variant.plan = make_plan<Probe>;
  return variant;
}

PointRequest request_of(const Variant& variant, const char* problem) {
  return {&variant, {}, Precision::fp32, parse_problem(problem)};
}

constexpr const char* kSmall = "one-to-one/1x1/1x1/1:1/full";

TEST(CpuDevice, NamesItself) {
  const std::unique_ptr<Device> device = open_device("cpu");
  EXPECT_EQ(device->backend(), Backend::cpu);
  const std::string key = device->machine_key();
  expect_says(key, "-core");
  EXPECT_GT(key.size(), 8u);
  for (const char c : key) EXPECT_TRUE(std::islower(c) || std::isdigit(c) || c == '-') << key;
  const nlohmann::json facts = machine_facts(*device);
  for (const char* name :
       {"machine_key", "device_name", "guard", "compiler", "flags", "package_version"}) {
    EXPECT_FALSE(facts.at(name).get<std::string>().empty()) << name;
  }
  EXPECT_GE(facts.at("cores"), 1);
  EXPECT_GT(facts.at("memory_bytes"), 1e6);
  EXPECT_GT(facts.at("peak_fma_per_s"), 1e9);
  EXPECT_GT(facts.at("peak_bytes_per_s"), 1e9);
}

TEST(CpuDevice, KnowsItsMemory) {
  EXPECT_GT(cpu().available_bytes(), std::size_t{1} << 20);
  EXPECT_LE(static_cast<double>(cpu().available_bytes()), cpu().facts().at("memory_bytes"));
  EXPECT_TRUE(cpu().host_memory());
  for (const std::size_t bytes : {1u, 255u, 256u, 257u, 100000u}) {
    EXPECT_TRUE(aligned(cpu().allocate(bytes).get())) << bytes;
  }
}

TEST(CpuDevice, MovesMemory) {
  const Buffer buffer = cpu().allocate(8);
  const char sent[] = "abcdefg";
  char back[8] = {};
  cpu().upload(buffer.get(), sent, 8);
  cpu().download(back, buffer.get(), 8);
  EXPECT_STREQ(back, sent);
  cpu().fill(buffer.get(), 'z', 8);
  cpu().download(back, buffer.get(), 8);
  EXPECT_EQ(back[7], 'z');
}

TEST(Devices, UnknownOnesAreUserErrors) {
  expect_says(user_error([] { open_device("tpu"); }), "use cpu, cuda or cuda:N");
  EXPECT_NE(user_error([] { open_device("cudax"); }), "");
}

TEST(Memory, IsToldInPowersOfAThousand) {
  EXPECT_EQ(bytes_text(0), "0 B");
  EXPECT_EQ(bytes_text(999), "999 B");
  EXPECT_EQ(bytes_text(4294967296), "4.29 GB");
  EXPECT_EQ(bytes_text(10'000'000'000'000'000'000u), "10 EB");
}

TEST(Modes, ParseAndName) {
  for (const char* name : {"stream", "latency", "graph", "cold", "paper"}) {
    EXPECT_EQ(to_string(parse_mode(name)), name);
  }
  EXPECT_NE(user_error([] { parse_mode("hot"); }), "");
}

TEST(Outcomes, AProbePassesWithItsPhases) {
  const std::unique_ptr<Device> device = open_cpu();
  const Variant variant = probe();
  Point point(request_of(variant, kSmall), *device);
  EXPECT_EQ(live(point, 2), Outcome::passed) << point.reason();
  const nlohmann::json record = point.record();
  EXPECT_GE(record["plan_us"], 0);
  EXPECT_GE(record["allocate_us"], 0);
  EXPECT_TRUE(record["upload_us"].is_null()) << "the host's memory is the device's";
  ASSERT_EQ(record["repetitions"].size(), 2u);
  for (const char* phase : {"build_us", "forward_us", "hadamard_us", "inverse_us"}) {
    EXPECT_GE(record["repetitions"][1][phase], 0) << phase;
  }
}

struct Compiled : Probe, CompiledAtRunTime {
  using Probe::Probe;
  Compilation compilation() const override { return {500, 20, 40}; }
};

TEST(Outcomes, WhatCompilingTookHasColumnsOfItsOwn) {
  Variant variant = probe();
  Point plain(request_of(variant, kSmall), cpu());
  EXPECT_EQ(live(plain, 1), Outcome::passed) << plain.reason();
  EXPECT_TRUE(plain.record()["compile_us"].is_null());
  EXPECT_TRUE(plain.record()["load_us"].is_null());
  variant.plan = make_plan<Compiled>;
  Point compiled(request_of(variant, kSmall), cpu());
  EXPECT_EQ(live(compiled, 1), Outcome::passed) << compiled.reason();
  EXPECT_EQ(compiled.record()["compile_us"], 500);
  EXPECT_EQ(compiled.record()["load_us"], 20);
  EXPECT_EQ(compiled.record()["registers"], 40);
}

TEST(Outcomes, AbsurdProblemsRunOutOfMemoryAndTheBytesAreNamed) {
  const Variant variant = probe();
  for (const auto& [problem, unit] : {std::pair{"one-to-one/1x1/1048576x1048576/1:1/full", "TB"},
                                      {"one-to-one/65536x65536/8x8/1:1/full", "GB"},
                                      {"one-to-one/1x4294967296/1x4096/1:1/full", "GB"},
                                      {"one-to-one/1x1/536870912x536870912/1:1/full", "EB"}}) {
    Point point(request_of(variant, problem), cpu());
    EXPECT_EQ(point.prepare(), Outcome::out_of_memory) << problem << ": " << point.reason();
    EXPECT_EQ(point.reason().rfind("needs ", 0), 0u) << point.reason();
    expect_says(point.reason(), unit);
    expect_says(point.reason(), "are available");
  }
}

TEST(Outcomes, AnAbsurdWorkspaceRunsOutOfMemory) {
  Variant variant = probe();
  variant.workspace_bytes = [](const PlanRequest&) { return std::size_t{1} << 50; };
  Point point(request_of(variant, kSmall), cpu());
  EXPECT_EQ(point.prepare(), Outcome::out_of_memory);
  expect_says(point.reason(), "workspace 1.13 PB");
}

TEST(Outcomes, WhatTheDeviceOrTheVariantLacksIsNotSupported) {
  const std::unique_ptr<Device> device = open_cpu();
  const auto reason = [&](const PointRequest& request) {
    Point point(request, *device);
    EXPECT_EQ(point.prepare(), Outcome::not_supported);
    EXPECT_EQ(point.record()["repetitions"].size(), 0u);
    return point.reason();
  };
  const Variant variant = probe();
  PointRequest graph = request_of(variant, kSmall);
  graph.mode = Mode::graph;
  expect_says(reason(graph), "graph");

  Variant cuda = probe();
  cuda.backend = Backend::cuda;
  expect_says(reason(request_of(cuda, kSmall)), "needs a cuda device");

  EXPECT_EQ(reason(request_of(variant, "n-to-m/1x1/1x1/1:1/full")),
            "form n-to-m: the variant computes only one-to-one");
  PointRequest precise = request_of(variant, kSmall);
  precise.precision = Precision::fp64;
  EXPECT_EQ(reason(precise), "precision fp64: the variant computes only fp32");

  Variant picky = probe();
  picky.supports = [](const PlanRequest&) { return no("only odd sizes"); };
  EXPECT_EQ(reason(request_of(picky, kSmall)), "only odd sizes");
}

// Takes 7 microjoules for each call of compute.
class MeteredDevice final : public ForwardingDevice {
 public:
  std::optional<double> energy_uj() override { return taken_; }
  Timed sample(const std::function<void()>& compute, Index count, Mode mode, Pace& pace) override {
    taken_ += 7.0 * static_cast<double>(count);
    return ForwardingDevice::sample(compute, count, mode, pace);
  }

 private:
  double taken_ = 1e9;
};

nlohmann::json energy_of(Device& device, Seconds energy_time) {
  const Variant variant = probe();
  PointRequest request = request_of(variant, kSmall);
  request.energy_time = energy_time;
  Point point(request, device);
  EXPECT_EQ(point.prepare(), Outcome::passed) << point.reason();
  point.time(point.batch());
  point.finish({{100, 0.5}});
  EXPECT_EQ(point.outcome(), Outcome::passed) << point.reason();
  return point.record().at("energy_uj");
}

TEST(Energy, IsThatOfOneCall) {
  MeteredDevice metered;
  EXPECT_DOUBLE_EQ(energy_of(metered, 0.001).get<double>(), 7);
  EXPECT_TRUE(energy_of(metered, 0).is_null()) << "counted although nobody asked";
  EXPECT_TRUE(energy_of(*open_cpu(), 0.001).is_null()) << "nothing counts the energy of the CPU";
}

std::string file_with(const std::string& name, const std::string& text) {
  const std::string path = testing::TempDir() + "/" + name;
  std::ofstream(path) << text;
  return path;
}

TEST(HostMemory, UnknownIsNotNone) {
  const std::string none = testing::TempDir() + "/no/such/file";
  EXPECT_GT(available_host_bytes({none, none, none}), std::size_t{1} << 20) << "without /proc";
  const std::string old = file_with("old", "MemTotal: 9 kB\nMemFree: 7 kB\n");
  EXPECT_GT(available_host_bytes({old, none, none}), std::size_t{1} << 20) << "an old kernel";
}

TEST(HostMemory, IsTheLeastOfWhatIsTold) {
  const std::string none = testing::TempDir() + "/no/such/file";
  const std::string meminfo =
      file_with("meminfo", "MemTotal: 99 kB\nMemAvailable:   10 kB\nX: 1\n");
  const std::string used = file_with("used", "3000\n");
  EXPECT_EQ(available_host_bytes({meminfo, none, none}), 10240u);
  EXPECT_EQ(available_host_bytes({meminfo, file_with("max", "max\n"), used}), 10240u);
  EXPECT_EQ(available_host_bytes({meminfo, file_with("limit", "8000\n"), used}), 5000u);
  EXPECT_EQ(available_host_bytes({none, file_with("limit", "8000\n"), used}), 5000u);
  EXPECT_EQ(available_host_bytes({none, file_with("limit", "2000\n"), used}), 0u) << "overdrawn";
  EXPECT_EQ(available_host_bytes({file_with("zero", "MemAvailable: 0 kB\n"), none, none}), 0u);
}

}  // namespace
}  // namespace xcorr
