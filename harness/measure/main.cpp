// xcorr-bench measures variants on the problem of its options, or on the points of a file. The
// driver of the experiments starts it and turns its records into rows.
#include <benchmark/benchmark.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <thread>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "harness/library/catalogue.hpp"
#include "harness/measure/ahead.hpp"
#include "harness/measure/measure.hpp"
#include "harness/measure/options.hpp"
#include "harness/measure/stopping.hpp"
#include "harness/problem/error.hpp"
#include "harness/problem/whole_numbers.hpp"

namespace xcorr {
namespace {

// Writes the JSON lines of --records, if given.
class Records {
 public:
  explicit Records(const std::string& path) {
    if (path == "-") {
      out_ = &std::cout;
    } else if (!path.empty()) {
      file_.open(path, std::ios::app);
      if (!file_) refuse("records", path, "cannot be written; choose another path");
      out_ = &file_;
    }
  }
  void write(const nlohmann::json& line) {
    if (!out_) return;
    *out_ << line.dump() << std::endl;  // flushed: a crash loses no finished line
    if (!*out_) throw UserError("records: writing failed; is the disk full?");
  }

 private:
  std::ofstream file_;
  std::ostream* out_ = nullptr;
};

// The message of a repetition that was left out.
constexpr const char* kEnough = "the repetitions before this one are enough";

// A point to measure. `number` counts the lines of --points from 0, and is -1 without --points.
struct Asked {
  std::unique_ptr<Point> point;
  int number = -1;
  Stopping stopping;
  int repetitions = 0;  // 0: what Google Benchmark chooses

  std::string name() const {
    return number < 0 ? point->name() : point->name() + "#" + std::to_string(number);
  }
  nlohmann::json line(const char* what, nlohmann::json content) const {
    nlohmann::json line = {{what, std::move(content)}};
    if (number >= 0) line["point"] = number;
    return line;
  }
};

// Finishes each point after its last repetition, and writes its record.
class PointReporter : public benchmark::ConsoleReporter {
 public:
  PointReporter(std::map<std::string, Asked*> points, Records& records, bool silent)
      : ConsoleReporter(OO_Tabular),
        points_(std::move(points)),
        records_(records),
        silent_(silent) {}

  bool ReportContext(const Context& context) override {
    if (silent_) return true;
    std::stringstream said;
    SetErrorStream(&said);
    const bool goes_on = ConsoleReporter::ReportContext(context);
    SetErrorStream(&std::cerr);
    // Debug builds of the library, as in a distribution's package, only count here: the time comes
    // from the device, and machine_facts() names the library.
    for (std::string line; std::getline(said, line);) {
      if (line.find("Library was built as DEBUG") == std::string::npos) std::cerr << line << "\n";
    }
    return goes_on;
  }

  void ReportRuns(const std::vector<Run>& reported) override {
    std::vector<Run> runs = reported;
    std::erase_if(runs, [](const Run& run) { return run.error_message == kEnough; });
    if (!silent_) ConsoleReporter::ReportRuns(runs);
    const Asked& asked = *points_.at(runs.front().run_name.function_name);
    Point& point = *asked.point;
    if (runs.front().run_type == Run::RT_Aggregate) {  // follows the repetitions
      if (finished_.count(&point)) return;
      throw UserError(
          "arguments: aggregates alone hide the repetitions that a record is made of; "
          "leave --benchmark_report_aggregates_only and _display_aggregates_only out");
    }
    finished_.insert(&point);
    std::vector<Repetition> repetitions;
    for (const Run& run : runs) {
      if (run.error_occurred) continue;
      const auto clock = run.counters.find("sm_mhz");
      repetitions.push_back({run.iterations, run.GetAdjustedRealTime(),
                             clock == run.counters.end() ? 0 : double{clock->second}});
    }
    point.finish(std::move(repetitions), asked.stopping.reason());
    records_.write(asked.line("record", point.record()));
    failed_ |= point.outcome() == Outcome::incorrect || point.outcome() == Outcome::failed;
    if (!silent_ && point.outcome() != Outcome::passed) {
      std::cout << point.name() << ": " << to_string(point.outcome()) << ": " << point.reason()
                << "\n";
    }
    if (point.device_lost()) {
      throw DeviceLost("device: lost by " + point.name() + ": " + point.reason() +
                       "; run the points that have no record yet again");
    }
  }

  bool failed() const { return failed_; }

 private:
  std::map<std::string, Asked*> points_;
  std::set<Point*> finished_;
  Records& records_;
  bool silent_;
  bool failed_ = false;
};

// One repetition, or a trial that Google Benchmark makes before the first one.
void run_point(benchmark::State& state, Point& point, Stopping& stopping, Ahead* ahead) {
  if (ahead) ahead->before(point);
  point.prepare();
  if (ahead) ahead->after(point);
  if (point.outcome() == Outcome::passed && stopping.enough()) {
    // Debug builds of Google Benchmark want the same number of iterations in all repetitions.
    state.KeepRunningBatch(stopping.calls());
    return state.SkipWithError(kEnough);
  }
  const auto start = std::chrono::steady_clock::now();
  Timed sum;
  while (point.outcome() == Outcome::passed && state.KeepRunningBatch(point.batch())) {
    const Timed timed = point.time(point.batch());
    state.SetIterationTime(timed.seconds);
    sum.add(timed);
  }
  const Index calls = state.iterations();
  stopping.add(calls, sum.seconds / static_cast<double>(std::max<Index>(calls, 1)),
               std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  if (sum.sm_mhz > 0) state.counters["sm_mhz"] = sum.sm_mhz;
  if (point.outcome() != Outcome::passed) {
    state.SkipWithError((std::string(to_string(point.outcome())) + ": " + point.reason()).c_str());
  }
}

// One measurement has no noise. Lines of --points ask for it where a launch takes long.
double noise_of(const Options& options) { return options.repetitions == 1 ? 0 : options.noise; }

// With --noise, as many as fit into --max-time. 0: what Google Benchmark chooses.
int most_repetitions(const Options& options) {
  if (noise_of(options) <= 0) return options.repetitions;
  const double usual_min_time = 0.5;  // of Google Benchmark
  const double each = options.min_time > 0 ? options.min_time : usual_min_time;
  const double more = std::ceil(options.max_time / each);
  return static_cast<int>(
      std::min<double>(std::max(options.repetitions, 1) + more, kMostRepetitions));
}

// The points of the options: each variant with each of its parameters.
void add_points(const Options& options, int number, Device& device, std::vector<Asked>& points) {
  if (options.variants.empty() || options.form.empty() || options.left.empty()) {
    throw UserError("nothing to measure: --variant, --form and --left are needed; see --help");
  }
  Fields fields;
  for (const auto& [name, value] : options.fields) set_field(fields, name, value);
  const std::string& right = options.right.empty() ? options.left : options.right;
  const Problem problem =
      make_problem(parse_form(options.form), parse_shape(options.left), parse_shape(right),
                   options.lefts, options.rights, options.window, fields);
  for (const std::string& id : options.variants) {
    const Variant& variant = find_variant(id);
    std::vector<Params> grid;
    for (const std::string& text : options.params) grid.push_back(parse_params(variant, text));
    if (grid.empty()) grid = grid_points(variant);
    for (const Params& params : grid) {
      const PointRequest request{&variant,
                                 params,
                                 parse_precision(options.precision),
                                 problem,
                                 parse_mode(options.mode),
                                 parse_input_kind(options.input),
                                 options.seed,
                                 options.energy_time,
                                 options.brief,
                                 options.min_time};
      points.push_back(
          {std::make_unique<Point>(request, device), number,
           Stopping(std::max(options.repetitions, 1), noise_of(options), options.max_time),
           most_repetitions(options)});
    }
  }
}

std::vector<Asked> make_points(const Options& options, Device& device) {
  std::vector<Asked> points;
  if (options.points.empty()) {
    add_points(options, -1, device, points);
    return points;
  }
  std::ifstream file(options.points);
  if (options.points != "-" && !file) {
    refuse("points", options.points, "cannot be read; name a file, or - for standard input");
  }
  std::istream& lines = options.points == "-" ? std::cin : file;
  int number = 0;
  for (std::string line; std::getline(lines, line); ++number) {
    const std::size_t before = points.size();
    add_points(with_line(options, line, number), number, device, points);
    if (points.size() != before + 1) {
      throw UserError("points, line " + std::to_string(number + 1) +
                      ": is not one point; give one variant and its params");
    }
  }
  if (points.empty()) throw UserError("points: no line; write one JSON object a line");
  return points;
}

// Refuses numbers with which the loop would never end, or which Google Benchmark would ignore.
void check_numbers(const Options& options, const CLI::App& app) {
  const auto check = [&](const char* name, auto value, bool fits, const char* range) {
    if (app.count(name) == 0 || fits) return;
    std::ostringstream shown;
    shown << value;
    throw UserError(std::string(name) + " " + shown.str() + ": out of range; " + range);
  };
  const double time = options.min_time, energy_time = options.energy_time;
  check("--min-time", time, time > 0 && time <= kLongestMeasurement,
        "give more than 0 and at most 86400 seconds");
  check("--energy-time", energy_time, energy_time >= 0 && energy_time <= kLongestMeasurement,
        "give 0 or more and at most 86400 seconds");
  check("--repetitions", options.repetitions,
        options.repetitions >= 1 && options.repetitions <= kMostRepetitions, "use 1..1000000");
  check("--noise", options.noise, options.noise > 0 && options.noise < 1,
        "give a share above 0 and below 1, as 0.005");
  check("--max-time", options.max_time,
        options.max_time > 0 && options.max_time <= kLongestMeasurement,
        "give more than 0 and at most 86400 seconds");
  if (app.count("--noise") != app.count("--max-time")) {
    throw UserError("arguments: --noise and --max-time go together; give both or none");
  }
}

// Refuses the same in flags of Google Benchmark, and in the environment variables that set them.
void check_benchmark_flags(int argc, char** argv) {
  for (const std::string name : {"min_time", "min_warmup_time", "repetitions"}) {
    const bool count = name == "repetitions";
    const auto check = [&](const std::string& what, const char* text) {
      char* rest = nullptr;
      const double value = std::strtod(text, &rest);
      const std::string unit = rest;
      const bool ends = unit.empty() || (!count && (unit == "s" || unit == "x"));
      const bool whole = !count || value == std::floor(value);
      const bool fits = value >= 0 && value <= (count ? kMostRepetitions : kLongestMeasurement);
      if (rest != text && ends && whole && fits) return;
      throw UserError(what + " " + text + ": not a " +
                      (count ? "number of repetitions from 0 to 1000000; see --help"
                             : "duration from 0 to a day; see --help"));
    };
    const std::string flag = "--benchmark_" + name;
    for (int i = 1; i < argc; ++i) {
      if (std::string_view(argv[i]).starts_with(flag + "=")) check(flag, argv[i] + flag.size() + 1);
    }
    std::string variable = "BENCHMARK_" + name;
    for (char& c : variable) c = static_cast<char>(std::toupper(c));
    if (const char* text = std::getenv(variable.c_str())) check(variable, text);
  }
}

int measure(const Options& options, Device& device) {
  std::vector<Asked> points = make_points(options, device);
  Records records(options.records);
  std::map<std::string, Asked*> by_name;
  std::vector<Point*> in_order;
  for (const Asked& asked : points) in_order.push_back(asked.point.get());
  Ahead ahead(std::move(in_order), std::thread::hardware_concurrency());
  for (Asked& asked : points) {
    const Point& point = *asked.point;
    if (!by_name.emplace(asked.name(), &asked).second) {
      refuse("point", point.name(), "asked for twice; leave one of the two out");
    }
    auto* registered = benchmark::RegisterBenchmark(
        asked.name().c_str(),
        [&asked, &records, &ahead, announced = false](benchmark::State& state) mutable {
          Point& p = *asked.point;
          if (!announced) {
            announced = true;
            records.write(asked.line("starting", {{"variant", p.request().variant->id},
                                                  {"params", p.request().params.canonical()},
                                                  {"problem", p.request().problem.id()},
                                                  {"mode", to_string(p.request().mode)}}));
          }
          run_point(state, p, asked.stopping, p.request().brief ? &ahead : nullptr);
        });
    registered->UseManualTime()->Unit(benchmark::kMicrosecond);
    if (options.min_time > 0) registered->MinTime(options.min_time);
    if (asked.repetitions > 0) registered->Repetitions(asked.repetitions);
  }
  PointReporter reporter(by_name, records, options.records == "-");
  if (benchmark::RunSpecifiedBenchmarks(&reporter) == 0) {
    throw UserError("benchmark_filter: none of the " + std::to_string(points.size()) +
                    " points matches it; leave it out, or see their names with "
                    "--benchmark_list_tests=true");
  }
  return reporter.failed() ? 1 : 0;
}

int run(int argc, char** argv) {
  Options options;
  CLI::App app(
      "Measures cross-correlation variants, each output verified against float64 first.\n"
      "Example: xcorr-bench --variant cpu_fft --form n-to-m --left 64x64 --lefts 8 --rights 8\n"
      "Every --benchmark_* flag of Google Benchmark is understood too.\n"
      "Exit code: 0 all that can run here passed; 1 a point is incorrect or failed; 2 a mistake "
      "in\n"
      "the request; 3 a point failed and took the device with it: those after it have no record.");
  app.add_option("--list", options.list, "what the build contains; --list=json for programs")
      ->expected(0, 1);
  app.add_flag("--machine", options.machine, "machine and build facts as JSON");
  app.add_flag("--ceilings", options.ceilings, "measures what the device can do at most, as JSON");
  app.add_option("--device", options.device, "cpu, cuda or cuda:N")->capture_default_str();
  app.add_option("--variant", options.variants, "id, may be repeated");
  app.add_option("--params", options.params,
                 "a point 'key=value;key=value', may be repeated; default all")
      ->delimiter('\0');
  app.add_option("--precision", options.precision, "fp64, fp32, ...")->capture_default_str();
  app.add_option("--form", options.form, "one-to-one, one-to-many, n-to-mn or n-to-m");
  app.add_option("--left", options.left, "shape of a left matrix, ROWSxCOLS");
  app.add_option("--right", options.right, "shape of a right matrix; default that of the left");
  app.add_option("--lefts", options.lefts, "left matrices")->capture_default_str();
  app.add_option("--rights", options.rights, "right matrices in total")->capture_default_str();
  app.add_option("--window", options.window, "full, valid or sy:a..b,sx:c..d")
      ->capture_default_str();
  constexpr std::pair<const char*, const char*> kFieldHelp[] = {
      {"boundary", "zero or circular"},
      {"score", "product, covariance, ncc:0.3, zncc:0.3 (least overlap) or phase:0 (exponent)"},
      {"masks", "none, left, right or both; with ncc and zncc"},
      {"result",
       "surface, peak, peak:gaussian, peak:upsample=20, peaks:5, above:0.8:1000, above:8mad:1000 "
       "or sum"},
      {"same", "yes: left and right are one array; no"},
      {"views", "dense, windows or channels"}};
  for (const auto& [name, help] : kFieldHelp) {
    app.add_option_function<std::string>(
        std::string("--") + name,
        [&options, key = std::string(name)](const std::string& text) {
          options.fields[key] = text;
        },
        std::string(help) + "; default " + field_text({}, name));
  }
  app.add_option("--mode", options.mode, "stream, latency, graph, cold or paper")
      ->capture_default_str();
  app.add_option("--input", options.input,
                 "timed input: uniform, zero-mean, integer, ...: see harness/problem/inputs.hpp")
      ->capture_default_str();
  app.add_option("--seed", options.seed, "of the inputs")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  app.add_option("--repetitions", options.repetitions,
                 "measurements of each point; with --noise, at least so many, unless it is 1");
  app.add_option("--min-time", options.min_time, "seconds of each measurement, at least");
  app.add_option("--noise", options.noise,
                 "measures on until the standard deviation is at most this share of the mean, as "
                 "0.005, or --max-time is over; the record names the condition as 'stopped'");
  app.add_option("--max-time", options.max_time,
                 "with --noise: seconds that the measurements of a point take, at most");
  app.add_flag("--brief", options.brief,
               "of each point one plan and one verification, of the outputs that were timed; no "
               "phases, transfers or calls in turn: enough to choose among points");
  app.add_option("--energy-time", options.energy_time,
                 "seconds for which energy is counted, at least; 0, the default: it is not");
  app.add_option("--points", options.points,
                 "a file of points, - for standard input: one JSON object a line, whose keys are "
                 "variant, params, precision, form, left, right, lefts, rights, window, boundary, "
                 "score, masks, result, same, views, mode, input, energy_time, repetitions and "
                 "brief; the options stand for what a line leaves out");
  app.add_option("--records", options.records,
                 "JSON lines to this file, - for standard output alone");
  refuse_beyond_64_bits(app);

  const auto is_help = [](std::string_view argument) { return argument == "--help"; };
  // Google Benchmark would print its own help and exit.
  if (std::none_of(argv, argv + argc, is_help)) {
    check_benchmark_flags(argc, argv);
    benchmark::Initialize(&argc, argv);  // takes the --benchmark_* flags out of argv
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    throw UserError("arguments: " + std::string(error.what()) + "; see --help");
  }
  if (app.count("--list")) {
    if (!options.list.empty() && options.list != "json") {
      refuse("list", options.list, "unknown; use --list or --list=json");
    }
    std::cout << (options.list == "json" ? catalogue().dump(2) + "\n" : catalogue_table());
    return 0;
  }
  check_numbers(options, app);
  const std::unique_ptr<Device> device = open_device(options.device);
  if (options.machine) {
    std::cout << machine_facts(*device).dump(2) << "\n";
    return 0;
  }
  if (options.ceilings) {
    const nlohmann::json ceilings = device->ceilings();
    if (ceilings.empty()) {
      throw UserError("ceilings: cannot be measured on device " + options.device +
                      "; use --device cuda");
    }
    std::cout << ceilings.dump(2) << "\n";
    return 0;
  }
  return measure(options, *device);
}

}  // namespace
}  // namespace xcorr

int main(int argc, char** argv) {
#ifdef __GLIBC__
  // Checks need large arrays again and again. Memory that goes back to the system is cleared each
  // time.
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_ARENA_MAX, 1);  // the others give it back
  mallopt(M_TRIM_THRESHOLD, -1);
#endif
  // Kernels load with the program. With its first launch a kernel may wait for the device, and behind a
  // gate that is until the gate lets go.
  setenv("CUDA_MODULE_LOADING", "EAGER", 0);
  try {
    return xcorr::run(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << "\n";
    if (dynamic_cast<const xcorr::UserError*>(&error)) return 2;
    return dynamic_cast<const xcorr::DeviceLost*>(&error) ? 3 : 1;
  }
}
