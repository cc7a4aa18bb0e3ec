// Conformance: every registered variant that the device can run x every point of its grid x every
// precision class x every form it declares, on the shapes, counts and windows at which kernels
// break; or on random problems, one case, or the errors as a table. It checks exact and statistical
// inputs, the memory beside every buffer, a second call, and calls that alternate between two sets
// of inputs and outputs. Each failure is printed with the command that repeats it. Exits 1 on a
// failure, or when nothing ran.
#include <omp.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "harness/problem/error.hpp"
#include "harness/problem/whole_numbers.hpp"
#include "tests/conformance/errors.hpp"
#include "tests/conformance/problems.hpp"
#include "tests/conformance/properties.hpp"
#include "tests/conformance/random_run.hpp"

namespace xcorr::conformance {
namespace {

constexpr std::uint64_t kSeed = 7;

struct Options {
  std::string program, device = "cpu", problem, params, precision, property, record, errors;
  std::vector<std::string> variants, inputs, shard;
  Index random = 0, properties = 0, largest_side = 0, bytes = 0, work = 0;
  std::uint64_t seed = kSeed;
  bool one_point = false;  // params were given, "" for a variant without any
};

std::pair<Index, Index> parse_part(const std::vector<std::string>& shard) {
  if (shard.empty()) return {1, 1};
  std::string text = shard[0];
  for (std::size_t i = 1; i < shard.size(); ++i) text += "/" + shard[i];
  Index k = 0, n = 0;
  const char* const end = text.data() + text.size();
  const auto [slash, first] = std::from_chars(text.data(), end, k);
  if (first == std::errc{} && slash != end && *slash == '/') {
    const auto [stop, second] = std::from_chars(slash + 1, end, n);
    if (second == std::errc{} && stop == end && k >= 1 && k <= n) return {k, n};
  }
  throw UserError("--shard " + text + ": write K/N with 1 <= K <= N, as 1/4");
}

struct Tally {
  Index passed = 0, failed = 0, skipped = 0;
  std::map<std::string, Index> ran;                              // cases of a variant
  std::map<std::pair<std::string, std::string>, Index> reasons;  // (variant, why) -> cases skipped
};

// Runs the variants that were chosen.
class Program {
 public:
  explicit Program(Options options)
      : options_(std::move(options)),
        part_(parse_part(options_.shard)),
        device_(open_device(options_.device)) {
    // Parts run at once and share the cores. If each part had a thread for every core, waiting
    // threads would take the time of computing ones (two parts on two cores: 14 s, not 1 s).
    if (part_.second > 1) {
      omp_set_num_threads(static_cast<int>(std::max<Index>(1, omp_get_num_procs() / part_.second)));
    }
    if (!options_.precision.empty()) precision_ = parse_precision(options_.precision);
    for (const std::string& input : options_.inputs) inputs_.push_back(parse_input_kind(input));
    for (const std::string& id : options_.variants) chosen_.push_back(&find_variant(id));
    if (chosen_.empty()) {
      for (const Variant& variant : variants()) chosen_.push_back(&variant);
    }
    // A variant that computes nothing on this device is one line of the output, not one a case.
    std::erase_if(chosen_, [&](const Variant* v) {
      const Support support = device_->runs(*v);
      if (support) return false;
      ++tally_.reasons[{v->id, support.reason}];
      ++tally_.skipped;
      return true;
    });
    if (options_.one_point && chosen_.size() != 1) {
      throw UserError("--params: is for one variant; name it with --variant");
    }
  }

  int run() {
    if (options_.random > 0 || options_.properties > 0) return run_random_ones();
    if (!options_.errors.empty()) {
      const Index work = options_.work > 0 ? options_.work : Index{1} << 40;
      const Index lines =
          write_errors(options_.errors, chosen_, precision_, work, options_.seed, *device_);
      std::cout << options_.errors << ": " << lines << " lines\n";
      return lines > 0 ? 0 : 1;
    }
    return run_fixed_ones();
  }

 private:
  int run_random_ones() {
    RandomRun run;
    run.properties = options_.properties > 0;
    run.cases = run.properties ? options_.properties : options_.random;
    run.seed = options_.seed;
    run.part = part_;
    run.variants = chosen_;
    run.precision = precision_;
    run.limits = default_limits(device_->backend());
    // The laws are those of products of two arrays that change apart.
    run.limits.fields = !run.properties;
    if (options_.largest_side > 0) run.limits.side = options_.largest_side;
    if (options_.bytes > 0) run.limits.bytes = static_cast<std::size_t>(options_.bytes);
    if (options_.work > 0) run.limits.fmas = options_.work;
    run.program = options_.program;
    run.device_name = options_.device;
    run.record = options_.record;
    return run_random(run, *device_);
  }

  std::vector<Problem> problems() const {
    if (!options_.problem.empty()) return {parse_problem(options_.problem)};
    std::vector<Problem> mine;
    Index turn = 0;
    std::vector<Problem> all = fixed_problems(device_->backend());
    for (Problem& problem : field_problems()) all.push_back(std::move(problem));
    for (const Problem& problem : all) {
      // By fours, so that every part has every form.
      if (turn++ / 4 % part_.second == part_.first - 1) mine.push_back(problem);
    }
    return mine;
  }

  std::vector<Params> points(const Variant& variant) const {
    if (options_.one_point) return {parse_params(variant, options_.params)};
    return grid_points(variant);
  }

  int run_fixed_ones() {
    for (const Problem& problem : problems()) run_problem(problem);
    for (const auto& [key, count] : tally_.reasons) {
      std::cout << "skipped " << key.first << ": " << key.second << " (" << count << ")\n";
    }
    if (options_.problem.empty() && part_.second == 1) {
      for (const Variant* v : chosen_) {
        if (tally_.ran[v->id] > 0) continue;
        std::cout << "FAILED " << v->id << ": supports none of the problems\n";
        ++tally_.failed;
      }
    }
    if (tally_.passed + tally_.failed == 0) std::cout << "FAILED: nothing ran\n";
    std::cout << tally_.passed << " passed, " << tally_.failed << " failed, " << tally_.skipped
              << " skipped\n";
    return tally_.failed > 0 || tally_.passed == 0 ? 1 : 0;
  }

  void run_problem(const Problem& problem) {
    std::map<std::pair<Precision, AlgorithmClass>, std::shared_ptr<Truth>> truths;
    for (const Variant* v : chosen_) {
      for (const Precision precision : v->precisions) {
        if (precision_ && precision != *precision_) continue;
        for (const Params& params : points(*v)) {
          Case c{v, params, precision, problem, inputs_, options_.seed};
          if (inputs_.empty()) c.inputs = usual_inputs(problem);
          std::erase_if(c.inputs, [&](InputKind kind) { return !holds(precision, kind); });
          auto& truth = truths[{precision, v->algorithm_class}];
          run_case(c, truth);
        }
      }
    }
  }

  void run_case(const Case& c, std::shared_ptr<Truth>& truth) {
    Outcome outcome;
    if (options_.property.empty()) {
      outcome = conformance::run(c, *device_, truth);
      // Kept by the device as the last one made.
      if (!truth && outcome.kind == Outcome::passed) {
        truth = device_->truth(c.problem, c.precision, c.variant->algorithm_class, c.seed);
      }
    } else {
      outcome = run_property(options_.property, c, *device_);
    }
    if (outcome.kind == Outcome::refused) {
      ++tally_.skipped;
      ++tally_.reasons[{c.variant->id, outcome.what}];
      return;
    }
    ++tally_.ran[c.variant->id];
    ++(outcome.kind == Outcome::passed ? tally_.passed : tally_.failed);
    if (outcome.kind == Outcome::passed) return;
    std::cout << "FAILED " << name_of(c) << ": " << outcome.what
              << "\n  repeat: " << command_of(c, options_.program, options_.device)
              << (options_.property.empty() ? "" : " --property " + options_.property) << std::endl;
    if (device_->lost()) throw DeviceLost("device: lost by this case; the others did not run");
  }

  Options options_;
  std::pair<Index, Index> part_;
  std::unique_ptr<Device> device_;
  std::optional<Precision> precision_;
  std::vector<InputKind> inputs_;
  std::vector<const Variant*> chosen_;
  Tally tally_;
};

int start(int argc, char** argv) {
  Options o;
  o.program = argv[0];
  CLI::App app(
      "Runs every variant of the build on the problems at which kernels break, on random problems "
      "or on one.\n"
      "Examples: conformance --device cpu --variant cpu_fft --problem "
      "n-to-m/33x33/33x33/3:5/full\n"
      "          conformance --random 2000 --seed 1 --device cuda --shard 1/4\n"
      "          conformance --errors accuracy_offset.csv --device cuda");
  const auto positive = CLI::PositiveNumber;
  app.add_option("--device", o.device, "cpu, cuda or cuda:N")->capture_default_str();
  app.add_option("--variant", o.variants, "only these ids; default all that the device can run");
  auto* params = app.add_option("--params", o.params, "only this point of the variant's grid");
  app.add_option("--precision", o.precision, "only this precision class");
  app.add_option("--problem", o.problem, "only this problem");
  app.add_option(
      "--input", o.inputs,
      "only these kinds of input; default integer, zero-mean and those at which a score breaks");
  app.add_option("--seed", o.seed, "of the draws of --random and --properties, else of the inputs")
      ->capture_default_str();
  auto* random = app.add_option("--random", o.random,
                                "so many random cases: a variant, a point of its grid, a problem "
                                "and an input, judged by the truth")
                     ->check(positive);
  auto* laws =
      app.add_option("--properties", o.properties,
                     "so many random cases, judged by linearity, shift, swap, window and symmetry")
          ->check(positive);
  app.add_option("--property", o.property, "with --problem: judge it by this property");
  app.add_option("--largest-side", o.largest_side, "of drawn matrices; default 160, cuda 3000")
      ->check(positive);
  app.add_option("--bytes", o.bytes,
                 "of inputs and outputs of a drawn problem; default 4194304, cuda 134217728")
      ->check(positive);
  app.add_option("--work", o.work,
                 "FMAs of a problem, of --random and --errors; default of --random 2097152, cuda "
                 "2147483648")
      ->check(positive);
  app.add_option("--shard", o.shard,
                 "K/N: only part K of N of the problems or cases, on its share of the cores")
      ->expected(1, 2);
  app.add_option("--record", o.record, "with --random or --properties: facts as JSON, a file");
  auto* errors = app.add_option("--errors", o.errors,
                                "write the errors of the variants on fixed problems, a CSV file");
  random->excludes(laws)->excludes(errors);
  laws->excludes(errors);
  refuse_beyond_64_bits(app);
  CLI11_PARSE(app, argc, argv);
  o.one_point = params->count() > 0;
  return Program(std::move(o)).run();
}

}  // namespace
}  // namespace xcorr::conformance

int main(int argc, char** argv) {
  try {
    return xcorr::conformance::start(argc, argv);
  } catch (const xcorr::UserError& error) {
    std::cerr << "error: " << error.what() << "\n";
    return 2;
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << "\n";
    return 1;
  }
}
