#include "harness/measure/measure.hpp"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "harness/compilation.hpp"
#include "harness/measure/banded.hpp"
#include "harness/measure/median.hpp"
#include "harness/measure/operands.hpp"
#include "harness/measure/overlapping.hpp"
#include "harness/problem/error.hpp"
#include "harness/reduce/reduce.hpp"

namespace xcorr {
namespace {

// Plans are made ten times, and three times where that takes long, as for kernels that are compiled at
// run time and for measured plans of FFTW.
constexpr std::size_t kPlans = 10, kLongPlans = 3;
constexpr double kPlansTime_us = 5e5;
// A sample with a clock below this share of the device's default is measured again so many times.
constexpr double kLowestClock = 0.75;
constexpr int kSlowSamples = 3;
// Larger transfers would take longer than the measurement.
constexpr std::size_t kLargestTransfer = std::size_t{1} << 30;

template <typename F>
double microseconds(F&& steps) {
  const auto start = std::chrono::steady_clock::now();
  steps();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start)
      .count();
}

// Keeps the worse errors, relative to their bounds.
void worsen(std::optional<Check>& into, const Check& check) {
  if (!into) {
    into = check;
    return;
  }
  // A wrong check is the last one of a point and always replaces.
  if (!check.passed() || check.error * into->bound > into->error * check.bound) {
    into->error = check.error;
    into->bound = check.bound;
  }
  // A pair whose truth is all 0 has no bound.
  if (check.wrong_pairs > 0 || into->rel_l2_bound == 0 ||
      check.rel_l2_error * into->rel_l2_bound > into->rel_l2_error * check.rel_l2_bound) {
    into->rel_l2_error = check.rel_l2_error;
    into->rel_l2_bound = check.rel_l2_bound;
  }
  into->argmax_agrees &= check.argmax_agrees;
  into->normalised_error = std::max(into->normalised_error, check.normalised_error);
}

}  // namespace

struct Point::Memory {
  Operands operands;
  Banded out;
  Buffer workspace;
  std::shared_ptr<Truth> truth;
  std::unique_ptr<Plan> plan;
  Call call;
};

std::string_view to_string(Outcome outcome) {
  constexpr std::string_view kNames[] = {"passed", "incorrect", "not_supported", "out_of_memory",
                                         "failed"};
  return kNames[static_cast<std::size_t>(outcome)];
}

Point::Point(PointRequest request, Device& device) : request_(std::move(request)), device_(device) {
  constexpr Index kMany = 512;  // matrices, of which each may have a launch: half of a queue
  pace_.may_be_many = std::max(request_.problem.lefts, request_.problem.rights) > kMany;
}
Point::~Point() = default;

std::string Point::name() const {
  return request_.variant->id + "/" + request_.params.canonical() + "/" +
         std::string(to_string(request_.precision)) + "/" + request_.problem.id() + "/" +
         std::string(to_string(request_.mode));
}

void Point::reject(Outcome outcome, std::string reason) {
  outcome_ = outcome;
  reason_ = std::move(reason);
  memory_.reset();
}

void Point::guarded(const std::function<void()>& steps) {
  try {
    return steps();
  } catch (const OutOfMemory& error) {
    reject(Outcome::out_of_memory, error.what());
  } catch (const std::bad_alloc&) {
    reject(Outcome::out_of_memory,
           "host memory: the system refused an allocation of the variant; use a smaller problem");
  } catch (const std::exception& error) {
    reject(Outcome::failed, error.what());
  } catch (...) {
    reject(Outcome::failed,
           "the variant threw a value whose type does not derive from std::exception, so that its "
           "message is unknown; throw std::runtime_error with a message");
  }
  device_lost_ = device_.lost();
}

void Point::run_once() {
  memory_->plan->compute(memory_->call);
  device_.synchronize();
}

Outcome Point::prepare() {
  if (prepared_) return outcome_;
  prepared_ = true;
  const Variant& variant = *request_.variant;
  const Problem& problem = request_.problem;
  PlanRequest plan = plan_request();
  guarded([&] {
    if (const Support support = device_.runs(variant, plan); !support) {
      return reject(Outcome::not_supported, support.reason);
    }
    if (const Support mode = device_.supports(request_.mode); !mode) {
      return reject(Outcome::not_supported, mode.reason);
    }
    const auto result =
        static_cast<std::size_t>(problem.result_bytes(scalar_bytes(request_.precision)));
    const std::size_t workspace = plan_workspace_bytes(variant, plan);
    const std::size_t data = Operands::bytes(problem, request_.precision, request_.seed) + result;
    const std::size_t bands = 2 * kBand * (Operands::arrays(problem) + 1);
    const std::size_t available = device_.available_bytes();
    const std::size_t checking =
        device_.truth_bytes(problem, request_.precision, variant.algorithm_class, request_.seed);
    const std::size_t needed = data + workspace + checking + bands;
    if (needed > available) {
      throw OutOfMemory("needs " + bytes_text(needed) + " (inputs and outputs " + bytes_text(data) +
                        ", workspace " + bytes_text(workspace) + ", checking " +
                        bytes_text(checking) + "), " + bytes_text(available) +
                        " are available; use fewer or smaller matrices");
    }
    allocate_us_ = microseconds([&] {
      memory_.reset(new Memory{Operands(problem, request_.precision, device_, request_.seed),
                               Banded(device_, result),
                               device_.allocate(std::max<std::size_t>(workspace, 1)),
                               nullptr,
                               nullptr,
                               {}});
    });
    memory_->truth =
        device_.truth(problem, request_.precision, variant.algorithm_class, request_.seed);
    memory_->operands.poison(device_);
    memory_->out.poison(device_);
    memory_->call = memory_->operands.call(memory_->out.data(), device_);
    plan.workspace = memory_->workspace.get();
    measure_plans(plan);
    if (request_.brief) {
      memory_->truth->set_round(0);
      fill(request_.input);
    } else {
      for (const InputKind kind : inputs()) {
        if (!verify(kind)) return;
      }
      measure_phases();
      measure_transfers();
    }
    choose_batch();
    if (!first_) {  // so finish() checks outputs of the timed loop
      device_.fill(memory_->out.data(), kPoison, memory_->out.bytes);
      device_.synchronize();
    }
    outcome_ = Outcome::passed;
    reason_.clear();
  });
  return outcome_;
}

// Calls for a batch that one trial of Google Benchmark finds long enough, where samples are as short.
void Point::choose_batch() {
  constexpr Index kSome = 16;  // tell what a call takes in a batch: alone it waits for its launch
  constexpr double kMargin = 1.25;  // so that a batch is not too short by the noise of this
  const Seconds shortest = device_.shortest_batch();
  const Timed first = sample(1);
  if (request_.brief && first.seconds >= shortest) {
    first_ = first;
    return;
  }
  const Seconds wanted =
      request_.sample_time > 0 ? std::min(shortest, request_.sample_time) : shortest;
  Seconds once = first.seconds;
  if (once * kSome < wanted) once = sample(kSome).seconds / static_cast<double>(kSome);
  batch_ = std::clamp<Index>(static_cast<Index>(kMargin * wanted / std::max(once, 1e-9)), 1, 10000);
}

PlanRequest Point::plan_request() const {
  return {request_.problem, request_.params,  request_.precision,
          nullptr,          device_.stream(), Planning::measured};
}

bool Point::plan_ahead() const {
  const PlanRequest plan = plan_request();
  try {
    device_.make_current();
    return device_.runs(*request_.variant, plan) && make_plan(*request_.variant, plan);
  } catch (...) {
    return false;
  }
}

// The last plan is kept.
void Point::measure_plans(PlanRequest plan) {
  std::vector<double> load_times;
  const std::size_t least = request_.brief ? 1 : kLongPlans, most = request_.brief ? 1 : kPlans;
  for (double spent = 0;
       plans_us_.size() < least || (plans_us_.size() < most && spent < kPlansTime_us);
       spent += plans_us_.back()) {
    memory_->plan.reset();
    plans_us_.push_back(microseconds([&] {
      memory_->plan = make_plan(*request_.variant, plan);
      device_.synchronize();
    }));
    const auto* compiled = dynamic_cast<const CompiledAtRunTime*>(memory_->plan.get());
    if (compiled == nullptr) continue;
    compilation_ = compiled->compilation();
    load_times.push_back(compilation_->load_us);
  }
  std::sort(plans_us_.begin(), plans_us_.end());
  if (compilation_) compilation_->load_us = median(load_times);
}

// The timed input comes last: the timed loop uses the last inputs that were filled in.
std::vector<InputKind> Point::inputs() const {
  const bool definition = is_definition(request_.variant->algorithm_class);
  // Beyond 2^24 products of an output only sparse inputs have exact float32 sums.
  const bool many = definition && request_.problem.max_overlap() > kExactSum;
  std::vector<InputKind> kinds = {many ? InputKind::sparse : InputKind::integer,
                                  InputKind::zero_mean};
  if (!definition) kinds.push_back(InputKind::flat_spectrum);
  if (std::count(kinds.begin(), kinds.end(), request_.input)) kinds.push_back(InputKind::uniform);
  std::erase(kinds, request_.input);
  kinds.push_back(request_.input);
  return kinds;
}

void Point::fill(InputKind kind) {
  memory_->truth->fill(kind, memory_->operands.left(), memory_->operands.right());
}

bool Point::verify(InputKind kind) {
  const Index rounds = kind == InputKind::sparse ? sparse_rounds(request_.problem) : 1;
  for (Index round = 0; round < rounds; ++round) {
    memory_->truth->set_round(round);
    fill(kind);
    device_.fill(memory_->out.data(), kPoison, memory_->out.bytes);
    run_once();
    if (!check_output(kind, "")) return false;
  }
  return true;
}

bool Point::check_output(InputKind kind, const std::string& when) {
  const Memory& m = *memory_;
  auto [check, fault] = checked_call(*m.truth, request_.problem, kind, m.call, when);
  worsen(is_exact(kind) ? exact_ : statistical_, check);
  if (fault.empty()) {
    const std::string beside = m.out.bands_intact(device_) ? m.operands.written(device_)
                                                           : "memory beside the output was written";
    if (!beside.empty()) fault = input_text(kind, when) + beside;
  }
  if (!fault.empty()) reject(Outcome::incorrect, fault);
  return fault.empty();
}

void Point::measure_transfers() {
  const Memory& m = *memory_;
  const Operands& in = m.operands;
  if (device_.host_memory() || in.left_bytes() + in.right_bytes() + m.out.bytes > kLargestTransfer)
    return;
  const TransferBytes sizes{in.left_bytes(), in.right_bytes(), m.out.bytes};
  std::map<TransferBytes, Transfers>& known = device_.known_transfers();
  auto found = known.find(sizes);
  if (found == known.end()) {
    std::vector<char> left(in.left_bytes()), right(in.right_bytes()), out(m.out.bytes);
    device_.download(left.data(), in.left(), left.size());
    device_.download(right.data(), in.right(), right.size());
    const double upload_us = microseconds([&] {
      device_.upload(in.left(), left.data(), left.size());
      if (!right.empty()) device_.upload(in.right(), right.data(), right.size());
      device_.synchronize();
    });
    const double download_us =
        microseconds([&] { device_.download(out.data(), m.out.data(), out.size()); });
    found = known.emplace(sizes, Transfers{upload_us, download_us}).first;
  }
  upload_us_ = found->second.upload_us;
  download_us_ = found->second.download_us;
}

void Point::measure_phases() {
  const auto phases = device_.phases([&](PhaseMarks& marks) {
    Call call = memory_->call;
    call.marks = &marks;
    memory_->plan->compute(call);
  });
  for (const auto& [name, seconds] : phases) phases_us_[name] = seconds * 1e6;
}

// A batch takes a tenth of the requested time, so that pauses between batches are few. The energy
// counter of a GPU changes only every few tens of milliseconds.
void Point::measure_energy() {
  if (request_.energy_time <= 0 || repetitions_.empty()) return;
  const Seconds once = repetitions_.front().compute_us * 1e-6;
  const auto batch = std::max(batch_, static_cast<Index>(request_.energy_time / 10 / once));
  // A closed gate would spend energy that no call needs.
  const Mode mode = request_.mode == Mode::stream ? Mode::paper : request_.mode;
  device_.synchronize();
  const std::optional<double> before = device_.energy_uj();
  if (!before) return;
  Index calls = 0;
  for (Seconds spent = 0; spent < request_.energy_time; calls += batch) {
    spent += device_.time([&] { memory_->plan->compute(memory_->call); }, batch, mode);
  }
  device_.synchronize();
  const std::optional<double> after = device_.energy_uj();
  if (after) energy_uj_ = (*after - *before) / static_cast<double>(calls);
}

Timed Point::sample(Index count) {
  return device_.sample([&] { memory_->plan->compute(memory_->call); }, count, request_.mode,
                        pace_);
}

bool Point::slow(double sm_mhz) const {
  return sm_mhz > 0 && sm_mhz < kLowestClock * device_.default_clock_mhz();
}

const char* Point::host_paced() const {
  if (request_.mode != Mode::stream || device_.backend() != Backend::cuda) return "";
  return pace_.by_host ? "yes" : "no";
}

Timed Point::time(Index count) {
  Timed timed;
  guarded([&] {
    timed = first_ && count == 1 ? *first_ : sample(count);
    first_.reset();
    for (int again = 0; again < kSlowSamples && slow(timed.sm_mhz); ++again) timed = sample(count);
  });
  return timed;
}

bool Point::check_calls_in_turn() {
  Memory& m = *memory_;
  const Seconds once = repetitions_.empty() ? 0 : repetitions_.front().compute_us * 1e-6;
  const auto [wrong, skipped] =
      check_overlapping(device_, *m.truth, request_.problem, request_.precision, request_.seed,
                        *m.plan, m.call, request_.input, overlapping_calls(once));
  overlap_checked_ = skipped.empty() ? "yes" : "no: " + skipped;
  if (wrong.empty()) return true;
  reject(Outcome::incorrect, "calls in turn: " + wrong);
  return false;
}

void Point::finish(std::vector<Repetition> repetitions, std::string_view stopped) {
  if (outcome_ != Outcome::passed || !memory_) return;
  repetitions_ = std::move(repetitions);
  stopped_ = stopped;
  guarded([&] {
    if (repetitions_.empty()) {
      return reject(Outcome::failed, "Google Benchmark timed no repetition of the point");
    }
    device_.synchronize();
    measure_energy();
    const bool gated = host_paced() == std::string_view("no");
    const Mode launches = gated ? Mode::stream : Mode::paper;
    if (const auto launch = device_.empty_launch(launches)) launch_us_ = *launch * 1e6;
    if (!check_output(request_.input, " after the timed loop")) return;
    if (request_.brief) {
      overlap_checked_ = "no: brief";
    } else if (!check_calls_in_turn()) {
      return;
    }
    for (const Repetition& repetition : repetitions_) {
      const std::string impossible =
          roofline_guard(request_.problem, request_.precision, request_.variant->algorithm_class,
                         repetition.compute_us * 1e-6, device_.peaks(request_.precision));
      if (!impossible.empty()) return reject(Outcome::failed, impossible);
    }
    finished_ = true;
  });
  memory_.reset();
}

}  // namespace xcorr
