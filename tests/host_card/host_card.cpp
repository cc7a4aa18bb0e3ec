// Two GPUs whose memory is that of the host, and variants of the CPU that compute on them. What a call
// makes them do is counted.
#include <dlfcn.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "harness/problem/error.hpp"
#include "harness/reduce/reduce.hpp"
#include "harness/registry.hpp"
#include "tests/support/forwarding_device.hpp"

namespace xcorr {
namespace {

struct Counts {
  std::int64_t allocations = 0, copies = 0, waits = 0, conversions = 0, calls = 0, stream = 0;
};
Counts seen;
thread_local bool recording = false;

struct Streams final : CallerStreams {
  Enqueued record(const std::function<void(void*)>& compute) override {
    recording = true;
    Enqueued found;
    try {
      compute(nullptr);
    } catch (const std::exception& error) {
      found.support = no(error.what());
    }
    recording = false;
    return found;
  }
  void pack(const Packing& packing, const void* from, void* to, void* stream) override {
    ++seen.conversions;
    CallerStreams::pack(packing, from, to, stream);
  }
  void wait(void* /*stream*/) override { ++seen.waits; }
  void wait_for_all() override { ++seen.waits; }
};

class HostCard final : public ForwardingDevice {
 public:
  Backend backend() const override { return Backend::cuda; }
  std::string machine_key() const override { return "host-card"; }
  nlohmann::json facts() const override {
    return {{"device", "cuda:0"}, {"compute_capability", "9.0"}, {"multiprocessors", 132}};
  }
  bool host_memory() const override { return false; }
  std::unique_ptr<CallerStreams> caller_streams() override { return std::make_unique<Streams>(); }
  Buffer allocate(std::size_t bytes) override {
    ++seen.allocations;
    return ForwardingDevice::allocate(bytes);
  }
  void upload(void* device, const void* host, std::size_t bytes) override {
    ++seen.copies;
    ForwardingDevice::upload(device, host, bytes);
  }
  void download(void* host, const void* device, std::size_t bytes) override {
    ++seen.copies;
    ForwardingDevice::download(host, device, bytes);
  }
  void synchronize() override { ++seen.waits; }
};

// The variants of the card, and those of the CPU that compute for them. The last one waits for its work.
constexpr std::array<std::pair<const char*, const char*>, 4> kVariants = {
    {{"card_definition", "cpu_definition"},
     {"card_fft", "cpu_fft"},
     {"card_normalised", "template_fft_cpu"},
     {"card_waits", "cpu_definition"}}};

const std::vector<Variant>& built_variants() {
  using Variants = const std::vector<Variant>& (*)();
  static const auto next = reinterpret_cast<Variants>(dlsym(RTLD_NEXT, "_ZN5xcorr8variantsEv"));
  if (!next) throw std::runtime_error("host card: libxcorr.so has no xcorr::variants()");
  return next();
}

const Variant& original(std::size_t i) {
  for (const Variant& variant : built_variants()) {
    if (variant.id == kVariants[i].second) return variant;
  }
  throw std::runtime_error(std::string("host card: the build lacks ") + kVariants[i].second);
}

class CardPlan final : public Plan {
 public:
  CardPlan(std::unique_ptr<Plan> plan, bool waits) : plan_(std::move(plan)), waits_(waits) {}
  void compute(const Call& call) override {
    if (recording && waits_) throw std::runtime_error("operation not permitted in a capture");
    if (recording) return;
    ++seen.calls;
    seen.stream = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(call.stream));
    plan_->compute(call);
  }

 private:
  std::unique_ptr<Plan> plan_;
  bool waits_;
};

template <std::size_t I>
Variant on_card() {
  Variant variant = original(I);
  variant.id = kVariants[I].first;
  variant.backend = Backend::cuda;
  if (I == 1) variant.views = {Views::dense};  // as most variants of a GPU
  variant.plan = [](const PlanRequest& request) -> std::unique_ptr<Plan> {
    return std::make_unique<CardPlan>(original(I).plan(request), I + 1 == kVariants.size());
  };
  return variant;
}

}  // namespace

std::unique_ptr<Device> open_cuda(int index) {
  if (index > 1) {
    throw UserError("device 'cuda:" + std::to_string(index) +
                    "': this machine has cuda:0 to cuda:1; use one of these");
  }
  return std::make_unique<HostCard>();
}

const std::vector<Variant>& variants() {
  static const std::vector<Variant> all = [] {
    std::vector<Variant> made = {on_card<0>(), on_card<1>(), on_card<2>(), on_card<3>()};
    for (const Variant& variant : built_variants()) {
      if (variant.backend == Backend::cpu) made.push_back(variant);
    }
    return made;
  }();
  return all;
}

void reduce_on_cuda(const Problem& problem, Precision precision, const void* surface, void* scratch,
                    void* out, void* /*stream*/) {
  reduce_on_cpu(problem, precision, surface, scratch, out);
}

}  // namespace xcorr

// What the card did since the last call: allocations, copies between host and device, waits, conversions,
// computations, and the stream of the last one.
extern "C" void host_card_counts(std::int64_t* into) {
  std::memcpy(into, &xcorr::seen, sizeof xcorr::seen);
  xcorr::seen = {};
}
