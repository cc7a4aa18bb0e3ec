// One point (variant, parameters, problem, mode, input): checked first, then timed, then checked
// again.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "harness/device.hpp"
#include "harness/registry.hpp"

namespace xcorr {

enum class Outcome { passed, incorrect, not_supported, out_of_memory, failed };
std::string_view to_string(Outcome outcome);

struct Repetition {
  Index iterations = 0;
  double compute_us = 0;
};

struct PointRequest {
  const Variant* variant = nullptr;
  Params params;
  Precision precision = Precision::fp32;
  Problem problem;
  Mode mode = Mode::stream;
  InputKind input = InputKind::uniform;
  std::uint64_t seed = 1;
  Seconds energy_time = 0;  // how long energy is counted for, at least; 0: it is not
};

class Point {
 public:
  Point(PointRequest request, Device& device);
  ~Point();

  const PointRequest& request() const { return request_; }
  // `variant/params/precision/problem/mode`
  std::string name() const;

  // Allocates, plans, verifies; memoised, since Google Benchmark calls a benchmark several times.
  // Never throws for a variant's fault: the outcome says what happened. `passed` means that the
  // point may be timed; its record says `failed` until finish() has checked the rest.
  Outcome prepare();
  // Calls of compute in one timed batch.
  Index batch() const { return batch_; }
  // 0 after a fault of the variant, which the outcome then tells.
  Seconds time(Index count);

  // After the last repetition: verifies the outputs of the timed loop and the inputs, applies the
  // roofline guard, releases the memory.
  void finish(std::vector<Repetition> repetitions);

  Outcome outcome() const { return outcome_; }
  const std::string& reason() const { return reason_; }
  // True when this point's fault took the device with it: points that follow would fail innocently.
  bool device_lost() const { return device_lost_; }
  // One line of --records; the times of a point that did not pass are left out.
  nlohmann::json record() const;

 private:
  struct Memory;
  std::vector<InputKind> inputs() const;
  bool verify(InputKind kind);
  bool check_output(InputKind kind, const std::string& when);
  bool check_calls_in_turn();
  void measure_phases();
  void measure_transfers();
  void measure_energy();
  void reject(Outcome outcome, std::string reason);
  void run_once();
  void guarded(const std::function<void()>& steps);

  PointRequest request_;
  Device& device_;
  bool prepared_ = false, finished_ = false;
  Outcome outcome_ = Outcome::failed;  // until everything has been checked
  std::string reason_ = "it was not checked";
  bool device_lost_ = false;
  std::unique_ptr<Memory> memory_;
  Index batch_ = 1;

  std::optional<double> plan_us_, allocate_us_, upload_us_, download_us_, energy_uj_, launch_us_;
  std::map<std::string, double> phases_us_;
  std::optional<Check> exact_, statistical_;
  std::vector<Repetition> repetitions_;
  std::string overlap_checked_;  // "yes" or "no: why"; empty before
};

}  // namespace xcorr
