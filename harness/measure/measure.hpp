// One point: a variant, its parameters, a problem, a mode and an input. It is checked, timed and
// checked again (docs/design.md, Checks and Time).
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "harness/compilation.hpp"
#include "harness/device/device.hpp"
#include "harness/registry.hpp"

namespace xcorr {

enum class Outcome { passed, incorrect, not_supported, out_of_memory, failed };
std::string_view to_string(Outcome outcome);

struct Repetition {
  Index iterations = 0;
  double compute_us = 0;
  double sm_mhz = 0;  // 0 where it is not known
};

struct PointRequest {
  const Variant* variant = nullptr;
  Params params;
  Precision precision = Precision::fp32;
  Problem problem;
  Mode mode = Mode::stream;
  InputKind input = InputKind::uniform;
  std::uint64_t seed = 1;
  Seconds energy_time = 0;  // energy is counted for at least this long; 0: not at all
  // One plan, no phases, transfers or calls in turn, and one verification: of the outputs of the
  // timed loop. A first call that takes as long as a sample is the sample. Enough to choose among
  // points, whose choice is then measured without it.
  bool brief = false;
  Seconds sample_time = 0;  // a sample takes at least so long; 0: not known
};

class Point {
 public:
  Point(PointRequest request, Device& device);
  ~Point();

  const PointRequest& request() const { return request_; }
  // `variant/params/precision/problem/mode`
  std::string name() const;

  // Allocates, plans and verifies, in the first call only: Google Benchmark calls a benchmark
  // several times. A fault of the variant is not thrown but named by the outcome. `passed` means
  // that the point may be timed; the record says `failed` until finish() has checked the rest.
  Outcome prepare();
  // Makes a plan and throws it away. False where there is none: prepare() names the fault. May run in
  // any thread, before prepare(), beside those of other points.
  bool plan_ahead() const;
  // Known after prepare().
  bool is_compiled_at_run_time() const { return compilation_.has_value(); }
  // Calls of compute in one timed batch.
  Index batch() const { return batch_; }
  // Time of `count` calls, measured again where the clock of the device was slow. 0 after a fault of
  // the variant, which the outcome names.
  Timed time(Index count);

  // Comes after the last repetition. Verifies the outputs of the timed loop and the inputs, applies
  // the roofline guard and releases the memory. `stopped`: the condition that ended the repetitions.
  void finish(std::vector<Repetition> repetitions, std::string_view stopped = "repetitions");

  Outcome outcome() const { return outcome_; }
  const std::string& reason() const { return reason_; }
  // True where no later call to the device can succeed.
  bool device_lost() const { return device_lost_; }
  // One line of --records, without times where the point did not pass.
  nlohmann::json record() const;

 private:
  struct Memory;
  std::vector<InputKind> inputs() const;
  void fill(InputKind kind);
  bool verify(InputKind kind);
  bool check_output(InputKind kind, const std::string& when);
  bool check_calls_in_turn();
  void choose_batch();
  PlanRequest plan_request() const;  // without a workspace
  void measure_plans(PlanRequest plan);
  void measure_phases();
  void measure_transfers();
  void measure_energy();
  void reject(Outcome outcome, std::string reason);
  void run_once();
  Timed sample(Index count);
  // Whether the pace of the host is in the time: "yes" or "no" in mode stream on a GPU, else "".
  const char* host_paced() const;
  bool slow(double sm_mhz) const;
  void guarded(const std::function<void()>& steps);

  PointRequest request_;
  Device& device_;
  bool prepared_ = false, finished_ = false;
  Outcome outcome_ = Outcome::failed;  // until everything has been checked
  std::string reason_ = "the point was not checked";
  bool device_lost_ = false;
  std::unique_ptr<Memory> memory_;
  Index batch_ = 1;
  std::optional<Timed> first_;  // a call of prepare() that is the first sample
  Pace pace_;

  std::vector<double> plans_us_;  // ascending
  std::optional<double> allocate_us_, upload_us_, download_us_, energy_uj_, launch_us_;
  std::optional<Compilation> compilation_;
  std::map<std::string, double> phases_us_;
  std::optional<Check> exact_, statistical_;
  std::vector<Repetition> repetitions_;
  std::string overlap_checked_;  // "yes" or "no: why"; empty before
  std::string stopped_;          // "repetitions", "noise" or "time"; empty before
};

}  // namespace xcorr
