#include "tests/conformance/random_run.hpp"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "harness/problem/error.hpp"
#include "tests/conformance/properties.hpp"

namespace xcorr::conformance {
namespace {

using Clock = std::chrono::steady_clock;
using Counts = std::map<std::string, Index>;

// The first failures are shrunk; of a variant that fails always there are many.
constexpr Index kShrunk = 3;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// A variant that kills the process, or is killed since it hangs, cannot be shrunk, but the command
// that repeats it is told.
std::array<char, 4096> running_now;

void tell_and_die(int signal) {
  constexpr char kText[] = "\nFAILED: a signal ended the process in this case\n  repeat: ";
  ssize_t written = write(STDOUT_FILENO, kText, sizeof kText - 1);
  written += write(STDOUT_FILENO, running_now.data(), strlen(running_now.data()));
  written += write(STDOUT_FILENO, "\n", 1);
  (void)written;
  ::signal(signal, SIG_DFL);
  raise(signal);
}

void set_running(const std::string& command) {
  const std::size_t length = std::min(command.size(), running_now.size() - 1);
  std::memcpy(running_now.data(), command.data(), length);
  running_now[length] = '\0';
}

class Progress {
 public:
  explicit Progress(Index all) : all_(all) {}
  void at(Index done, Index failed) {
    const double spent = seconds_since(start_);
    if (spent < next_) return;
    next_ = spent + (isatty(STDERR_FILENO) ? 1 : 20);
    const double left = spent / static_cast<double>(done) * static_cast<double>(all_ - done);
    char text[120];
    std::snprintf(text, sizeof text, "%3.0f %%  %lld of %lld cases, %lld failed, about %.0f s left",
                  100.0 * static_cast<double>(done) / static_cast<double>(all_),
                  static_cast<long long>(done), static_cast<long long>(all_),
                  static_cast<long long>(failed), left);
    std::cerr << (isatty(STDERR_FILENO) ? "\r" : "") << text
              << (isatty(STDERR_FILENO) ? "\033[K" : "\n") << std::flush;
    shown_ = true;
  }
  void end() const {
    if (shown_ && isatty(STDERR_FILENO)) std::cerr << "\n";
  }

 private:
  Index all_;
  Clock::time_point start_ = Clock::now();
  double next_ = 5;  // a short run needs none
  bool shown_ = false;
};

constexpr const char* kCounted[] = {"families", "variants",   "forms",     "windows",
                                    "inputs",   "precisions", "properties"};

struct Report {
  Index passed = 0, failed = 0, not_drawn = 0;
  std::map<std::string, Counts> counts;
  Index side = 0, bytes = 0, fmas = 0, pairs = 0;  // the largest of what ran
  std::vector<nlohmann::json> failures;

  void count(const Case& c, const std::string& property) {
    const Problem& p = c.problem;
    const auto add = [&](const char* what, std::string_view name) {
      ++counts[what][std::string(name)];
    };
    add("families", c.variant->family);
    add("variants", c.variant->id);
    add("forms", to_string(p.form));
    add("precisions", to_string(c.precision));
    add("windows", p.window.kind == Window::Kind::full    ? "full"
                   : p.window.kind == Window::Kind::valid ? "valid"
                                                          : "ranges");
    property.empty() ? add("inputs", to_string(c.inputs.front())) : add("properties", property);
    side = std::max({side, p.left.rows, p.left.cols, p.right.rows, p.right.cols});
    bytes = std::max(bytes, p.bytes(scalar_bytes(c.precision)));
    fmas = std::max(fmas, p.fmas());
    pairs = std::max(pairs, p.pairs());
  }
};

void print_refused(const Counts& refused) {
  std::vector<std::pair<Index, std::string>> sorted;
  Index all = 0;
  for (const auto& [reason, count] : refused) {
    sorted.emplace_back(count, reason);
    all += count;
  }
  std::sort(sorted.rbegin(), sorted.rend());
  constexpr std::size_t kShown = 12;
  std::cout << "refused draws: " << all << ", each drawn again\n";
  for (std::size_t i = 0; i < std::min(kShown, sorted.size()); ++i) {
    std::cout << "  " << sorted[i].first << "  " << sorted[i].second << "\n";
  }
  if (sorted.size() > kShown) std::cout << "  and " << sorted.size() - kShown << " more reasons\n";
}

void write_record(const RandomRun& run, const Report& report, const Counts& refused, double seconds,
                  Device& device) {
  nlohmann::json record = {
      {"what", run.properties ? "properties of random problems" : "random problems"},
      {"machine_key", device.machine_key()},
      {"device", device.facts()},
      {"seed", run.seed},
      {"cases", run.cases},
      {"part", std::to_string(run.part.first) + "/" + std::to_string(run.part.second)},
      {"limits",
       {{"side", run.limits.side},
        {"bytes", run.limits.bytes},
        {"fmas", run.limits.fmas},
        {"terms_of_an_output", run.limits.overlap},
        {"pairs", run.limits.pairs},
        {"fields", run.limits.fields}}},
      {"largest",
       {{"side", report.side},
        {"bytes", report.bytes},
        {"fmas", report.fmas},
        {"pairs", report.pairs}}},
      {"seconds", seconds},
      {"passed", report.passed},
      {"failed", report.failed},
      {"not_drawn", report.not_drawn},
      {"refused", refused},
      {"failures", report.failures}};
  for (const char* const what : kCounted) {
    const auto found = report.counts.find(what);
    record[what] = found == report.counts.end() ? Counts() : found->second;
  }
  std::ofstream file(run.record);
  file << record.dump(1) << "\n";
  file.close();
  if (!file) throw UserError("--record " + run.record + ": cannot be written; name another file");
}

struct Found {
  Outcome outcome;
  std::string property;  // empty: the truth
};

class Runner {
 public:
  Runner(const RandomRun& run, Device& device)
      : run_(run), device_(device), draws_(run.seed, run.variants, run.precision, run.limits) {}

  int operator()() {
    const auto [k, n] = run_.part;
    const Index mine = (run_.cases - k + n) / n;
    Progress progress(mine);
    const Clock::time_point start = Clock::now();
    Index done = 0;
    for (Index number = k - 1; number < run_.cases; number += n) {
      one(number);
      progress.at(++done, report_.failed);
      if (lost_) break;
    }
    progress.end();
    const double seconds = seconds_since(start);
    print_report(seconds);
    if (!run_.record.empty()) write_record(run_, report_, draws_.refused(), seconds, device_);
    return report_.failed > 0 || report_.passed == 0 ? 1 : 0;
  }

 private:
  std::string command(const Case& c, const std::string& property) const {
    if (property.empty()) return command_of(c, run_.program, run_.device_name);
    Case without_inputs = c;
    without_inputs.inputs.clear();
    return command_of(without_inputs, run_.program, run_.device_name) + " --property " + property;
  }

  Outcome attempt(const Case& c, const std::string& property) const {
    set_running(command(c, property));
    return property.empty() ? conformance::run(c, device_) : run_property(property, c, device_);
  }

  void one(Index number) {
    const auto drawn = draws_.draw(static_cast<std::uint64_t>(number), [&](const Case& c) {
      set_running(command(c, ""));
      return supported(c, device_);
    });
    if (!drawn) {
      ++report_.not_drawn;
      return;
    }
    Found found;
    found.outcome.kind = Outcome::refused;
    if (run_.properties) {
      // Another property where the case is not one for this.
      constexpr std::size_t kAll = kProperties.size();
      for (std::size_t i = 0; i < kAll && found.outcome.kind == Outcome::refused; ++i) {
        found.property = kProperties[(static_cast<std::size_t>(number) + i) % kAll];
        found.outcome = attempt(*drawn, found.property);
      }
    } else {
      found.outcome = attempt(*drawn, "");
    }
    if (found.outcome.kind == Outcome::refused) {
      draws_.refuse(*drawn->variant, found.outcome.what);
      ++report_.not_drawn;
      return;
    }
    report_.count(*drawn, found.property);
    ++(found.outcome.kind == Outcome::passed ? report_.passed : report_.failed);
    if (found.outcome.kind == Outcome::failed) tell(number, *drawn, found);
  }

  void tell(Index number, const Case& drawn, const Found& found) {
    Case shown = drawn;
    std::string wrong = found.outcome.what, how = "not shrunk: one of many failures";
    if (device_.lost()) {
      lost_ = true;
      how = "not shrunk: the device is lost, and the cases that follow did not run";
    } else if (report_.failed <= kShrunk) {
      shown = shrink(drawn, [&](const Case& c) {
        const Outcome outcome = lost_ ? Outcome{} : attempt(c, found.property);
        if (outcome.kind != Outcome::failed) return false;
        wrong = outcome.what;
        lost_ = device_.lost();
        return true;
      });
      how =
          "shrunk from " + drawn.problem.id() + " " + std::string(to_string(drawn.inputs.front()));
    }
    std::cout << "FAILED " << name_of(shown)
              << (found.property.empty() ? "" : " property " + found.property) << ": " << wrong
              << "\n  case " << number << " of seed " << run_.seed << ", " << how
              << "\n  repeat: " << command(shown, found.property) << std::endl;
    report_.failures.push_back({{"case", number},
                                {"wrong", wrong},
                                {"drawn", command(drawn, found.property)},
                                {"repeat", command(shown, found.property)}});
  }

  void print_report(double seconds) const {
    const Limits& l = run_.limits;
    std::cout << (run_.properties ? "properties of random problems" : "random problems")
              << ": seed " << run_.seed << ", " << run_.cases << " cases, part " << run_.part.first
              << "/" << run_.part.second << ", " << static_cast<Index>(seconds) << " s\n"
              << "limits: side " << l.side << ", " << bytes_text(l.bytes)
              << " of inputs and outputs, " << l.fmas << " FMAs, " << l.overlap
              << " terms of an output, " << l.pairs << " pairs\n"
              << "largest: side " << report_.side << ", "
              << bytes_text(static_cast<std::size_t>(report_.bytes)) << ", " << report_.fmas
              << " FMAs, " << report_.pairs << " pairs\n";
    for (const char* const what : kCounted) {
      const auto found = report_.counts.find(what);
      if (found == report_.counts.end()) continue;
      std::cout << what << ":";
      for (const auto& [name, count] : found->second) std::cout << " " << name << " " << count;
      std::cout << "\n";
    }
    print_refused(draws_.refused());
    if (report_.passed + report_.failed == 0) std::cout << "FAILED: nothing ran\n";
    std::cout << report_.passed << " passed, " << report_.failed << " failed, " << report_.not_drawn
              << " not drawn" << std::endl;
  }

  const RandomRun& run_;
  Device& device_;
  Draws draws_;
  Report report_;
  bool lost_ = false;
};

}  // namespace

int run_random(const RandomRun& run, Device& device) {
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTERM, SIGINT}) {
    ::signal(signal, tell_and_die);
  }
  return Runner(run, device)();
}

}  // namespace xcorr::conformance
