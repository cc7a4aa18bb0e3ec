// A GPU and processes that fork, through the C API. device.cpp is compiled as in a build with CUDA here, and this file
// has the GPU, so that the test needs no card. Every process that uses the GPU is a child of the test's.
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <functional>

#include "tests/stress/api.hpp"
#include "tests/support/forwarding_device.hpp"

namespace xcorr {
namespace {

int buffers = 0;  // of the GPU, in this process

// The memory of a GPU: a child that releases it takes it from the parent.
struct Gpu : ForwardingDevice {
  bool host_memory() const override { return false; }
  Buffer allocate(std::size_t bytes) override {
    ++buffers;
    Buffer memory = ForwardingDevice::allocate(bytes);
    return {memory.release(), [release = memory.get_deleter()](void* released) {
              --buffers;
              release(released);
            }};
  }
};

}  // namespace

std::unique_ptr<Device> open_cuda(int) { return std::make_unique<Gpu>(); }

namespace {

using ::testing::StartsWith;

// What `steps` returns in a child of this process, or the message of what it throws.
std::string in_child(const std::function<std::string()>& steps) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) return "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    std::string said;
    try {
      said = steps();
    } catch (const std::exception& error) {
      said = error.what();
    }
    const bool told = write(ends[1], said.data(), said.size()) == static_cast<ssize_t>(said.size());
    _exit(told ? 0 : 1);
  }
  close(ends[1]);
  std::string said;
  char c;
  while (read(ends[0], &c, 1) == 1) said += c;
  close(ends[0]);
  int status = 1;
  waitpid(child, &status, 0);
  return status == 0 ? said : said + ", ended with status " + std::to_string(status);
}

std::string open(const std::string& device) {
  stress::answer([&](auto... into) { return xcorr_machine(device.c_str(), into...); });
  return "opened";
}

constexpr const char* kForked = "this process was forked from one that had used CUDA";

TEST(Forks, NoChildOfAProcessThatUsedAGpuUsesOne) {
  for (const std::string name : {"cuda", "cuda:0"}) {
    EXPECT_THAT(in_child([&] {
                  open("cuda");
                  open("cuda");
                  return in_child([&] { return open(name); });
                }),
                StartsWith("device '" + name + "': " + kForked));
  }
  EXPECT_EQ(in_child([] {
              open("cuda");
              return in_child([] { return open("cpu"); });
            }),
            "opened");
  EXPECT_THAT(in_child([] {
                open("cuda");
                return in_child([] { return in_child([] { return open("cuda"); }); });
              }),
              StartsWith("device 'cuda': "));
}

TEST(Forks, AChildUsesAGpuWhereNoAncestorHas) {
  EXPECT_EQ(in_child([] {
              open("cpu");
              for (int child = 0; child < 2; ++child) {
                if (const auto said = in_child([] { return open("cuda"); }); said != "opened") {
                  return said;
                }
              }
              return open("cuda");
            }),
            "opened");
}

// A session that multiplies two numbers.
struct Product {
  void* session = nullptr;

  explicit Product(const std::string& device) {
    const nlohmann::json request = {{"form", "one-to-one"},
                                    {"left", {1, 1}},
                                    {"right", {1, 1}},
                                    {"lefts", 1},
                                    {"rights", 1},
                                    {"window", "full"},
                                    {"variant", "cpu_definition"},
                                    {"device", device}};
    stress::checked([&](char* error, std::size_t n) {
      return xcorr_open(request.dump().c_str(), &session, error, n);
    });
  }
  std::string compute() const {
    const float left = 2, right = 3;
    float out = 0;
    stress::checked([&](char* error, std::size_t n) {
      return xcorr_compute(session, &left, &right, &out, error, n);
    });
    return out == 6 ? "right" : "wrong";
  }
  void close() const {
    stress::checked([&](char* error, std::size_t n) { return xcorr_close(session, error, n); });
  }
};

TEST(Forks, ASessionOnAGpuIsTheParents) {
  EXPECT_THAT(in_child([] {
                const Product product("cuda:0");
                return in_child([&] { return product.compute(); });
              }),
              StartsWith("session: was opened on a GPU before this process was forked; "));
  // A child that closes it leaves the memory to the parent, which goes on.
  const auto closed = [](const Product& product) {
    product.close();
    return buffers == 0 ? "released" : "kept";
  };
  EXPECT_EQ(in_child([&] {
              const Product product("cuda:0");
              std::string said = in_child([&] { return closed(product); });
              said += ", " + product.compute();
              return said + ", " + closed(product);
            }),
            "kept, right, released");
}

TEST(Forks, ASessionOnTheCpuGoesOnBesideAGpu) {
  EXPECT_EQ(in_child([] {
              const Product gpu("cuda:0"), cpu("cpu");
              return in_child([&] { return cpu.compute(); });
            }),
            "right");
}

}  // namespace
}  // namespace xcorr
