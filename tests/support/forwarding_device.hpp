// A device whose single answers a test replaces.
#pragma once

#include <nlohmann/json.hpp>

#include "harness/device/device.hpp"

namespace xcorr {

// The CPU, every question passed on: tests replace single answers.
class ForwardingDevice : public Device {
 public:
  Backend backend() const override { return cpu_->backend(); }
  std::string machine_key() const override { return cpu_->machine_key(); }
  nlohmann::json facts() const override { return cpu_->facts(); }
  Peaks peaks(Precision precision) const override { return cpu_->peaks(precision); }
  Support supports(Mode mode) const override { return cpu_->supports(mode); }
  nlohmann::json ceilings() override { return cpu_->ceilings(); }
  std::size_t available_bytes() const override { return cpu_->available_bytes(); }
  Buffer allocate(std::size_t bytes) override { return cpu_->allocate(bytes); }
  void upload(void* device, const void* host, std::size_t bytes) override {
    cpu_->upload(device, host, bytes);
  }
  void download(void* host, const void* device, std::size_t bytes) override {
    cpu_->download(host, device, bytes);
  }
  void fill(void* device, unsigned char byte, std::size_t bytes) override {
    cpu_->fill(device, byte, bytes);
  }
  bool host_memory() const override { return true; }
  void* stream() override { return nullptr; }
  void synchronize() override { cpu_->synchronize(); }
  Timed sample(const std::function<void()>& compute, Index count, Mode mode, Pace& pace) override {
    return cpu_->sample(compute, count, mode, pace);
  }
  Seconds shortest_batch() const override { return cpu_->shortest_batch(); }
  std::map<std::string, Seconds> phases(const std::function<void(PhaseMarks&)>& compute) override {
    return cpu_->phases(compute);
  }

 protected:
  std::unique_ptr<Truth> make_truth(const Problem& problem, Precision precision,
                                    AlgorithmClass algorithm_class, std::uint64_t seed) override {
    return std::make_unique<HostTruth>(problem, precision, algorithm_class, seed, kKeepBytes);
  }
  std::size_t new_truth_bytes(const Problem& problem) const override {
    return HostTruth::host_bytes(problem, kKeepBytes);
  }

  std::unique_ptr<Device> cpu_ = open_cpu();

 private:
  static constexpr std::size_t kKeepBytes = std::size_t{1} << 20;
};

}  // namespace xcorr
