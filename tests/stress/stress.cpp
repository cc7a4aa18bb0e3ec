// Threads that open, compute and close sessions of all families at the same time, through the C
// API, beside other work on the device and beside a second process of the same kind. Every value of
// every call is compared with float64 truth, and who makes no progress is named.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <ctime>
#include <deque>
#include <fstream>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <thread>

#include "tests/stress/api.hpp"
#include "tests/stress/options.hpp"
#include "tests/stress/problems.hpp"
#include "tests/stress/second_process.hpp"
#ifdef XCORR_WITH_CUDA
#include "tests/stress/load.hpp"
#endif

namespace xcorr::stress {
namespace {

using nlohmann::json;

using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// What one thread does, for the one that watches.
class Progress {
 public:
  explicit Progress(std::string who) : who_(std::move(who)) {}
  void begins(std::string what) {
    const std::lock_guard lock(mutex_);
    what_ = std::move(what);
    start_ = Clock::now();
    busy_ = true;
  }
  // Seconds that it took.
  double ended() {
    const std::lock_guard lock(mutex_);
    busy_ = false;
    return since(start_);
  }
  // "" or what has taken longer than `seconds`.
  std::string stalled(double seconds) const {
    const std::lock_guard lock(mutex_);
    if (!busy_ || since(start_) < seconds) return "";
    return who_ + ": no progress for " + std::to_string(static_cast<int>(since(start_))) +
           " s in " + what_;
  }

 private:
  const std::string who_;
  mutable std::mutex mutex_;
  std::string what_;
  Clock::time_point start_;
  bool busy_ = false;
};

struct Chosen {
  std::string id, family, precision;
  bool by_transform;
  std::vector<std::string> forms, points;
};

class Stress {
 public:
  explicit Stress(Options options) : options_(std::move(options)) {}

  int run() {
    start_child();
    choose();
    make_problems();
    begin_ = Clock::now();
    std::deque<Progress> progress;
    std::vector<std::thread> workers, loads;
    for (int t = 0; t < options_.threads; ++t) {
      Progress& mine = progress.emplace_back("thread " + std::to_string(t));
      workers.emplace_back([this, t, &mine] { guarded(mine, [&] { work(t, mine); }); });
    }
#ifdef XCORR_WITH_CUDA
    if (options_.on_card() && !options_.no_load) {
      add_load(loads, progress.emplace_back("cooperative kernels"), cooperative_load, meetings_);
      add_load(loads, progress.emplace_back("matrix products"), product_load, products_);
    }
#endif
    std::thread watch([&] { watch_over(progress); });
    for (std::thread& worker : workers) worker.join();
    finished_ = true;  // the loads run as long as the threads do
    for (std::thread& load : loads) load.join();
    {
      const std::lock_guard lock(mutex_);
      all_ended_ = true;
    }
    ended_.notify_all();
    watch.join();
    return conclude();
  }

 private:
  // A second process with the same work, so that the device changes between two contexts.
  void start_child() {
    if (options_.child || options_.no_child || !options_.on_card()) return;
    std::vector<std::string> words = {"--child", "--device", options_.device};
    const auto add = [&](const char* option, const std::string& value) {
      words.insert(words.end(), {option, value});
    };
    add("--threads", std::to_string(options_.threads));
    add("--seed", std::to_string(options_.seed + 1000));
    add("--stall", std::to_string(options_.stall));
    add("--seconds", std::to_string(options_.seconds));
    add("--rounds", std::to_string(options_.rounds));
    for (const std::string& id : options_.variants) add("--variant", id);
    if (options_.no_load) words.push_back("--no-load");
    if (!options_.record.empty()) add("--record", child_record());
    child_.start(words);
  }
  std::string child_record() const { return options_.record + ".child"; }

  void choose() {
    const json list = answer([](auto... into) { return xcorr_list(into...); });
    const std::string backend = options_.on_card() ? "cuda" : "cpu";
    for (const json& v : list.at("variants")) {
      const std::string id = v.at("id");
      const std::vector<std::string> precisions = v.at("precisions");
      if (v.at("backend") != backend || !has(precisions, "fp32")) continue;
      if (!options_.variants.empty() && !has(options_.variants, id)) continue;
      families_[v.at("family")].push_back({id, v.at("family"), "fp32",
                                           v.at("algorithm_class") == "fft", v.at("forms"),
                                           v.at("points")});
    }
    if (families_.empty()) {
      throw std::runtime_error("variants: none for device '" + options_.device +
                               "'; xcorr-bench --list names them");
    }
  }
  static bool has(const std::vector<std::string>& all, const std::string& one) {
    return std::find(all.begin(), all.end(), one) != all.end();
  }

  void make_problems() {
    std::uint64_t seed = options_.seed * 1000;
    for (const json& request : requests(!options_.on_card())) {
      problems_.emplace_back(request, seed += 2);
    }
  }

  // One session, with what it computes.
  struct Open {
    const Chosen& variant;
    const TestProblem& problem;
    std::string name;
    std::unique_ptr<OpenSession> session;
  };

  // Opens a session of the next family every round and computes with it and with those that are
  // still open, so that plans of one family are made while calls of others run.
  void work(int t, Progress& progress) {
    constexpr std::size_t kOpen = 3;
    std::mt19937_64 random(options_.seed * 100 + static_cast<unsigned>(t));
    std::deque<Open> open;
    std::vector<float> out;
    for (long round = 0; goes_on(round); ++round) {
      auto family = families_.begin();
      std::advance(family, static_cast<std::size_t>(t + round) % families_.size());
      if (!open_one(family->second, random, open, progress)) continue;
      if (open.size() > kOpen) {
        progress.begins("closing " + open.front().name);
        open.pop_front();
        progress.ended();
      }
      for (int turn = 0; turn < 2; ++turn) {
        for (Open& one : open) compute(one, turn, out, progress);
      }
    }
    progress.begins("closing its sessions");
    open.clear();
    progress.ended();
  }

  bool goes_on(long round) const {
    if (finished_) return false;
    return options_.rounds > 0 ? round < options_.rounds : since(begin_) < options_.seconds;
  }

  // False where none of a number of random points is supported.
  bool open_one(const std::vector<Chosen>& family, std::mt19937_64& random, std::deque<Open>& open,
                Progress& progress) {
    const auto one_of = [&](const auto& all) -> const auto& { return all[random() % all.size()]; };
    for (int attempt = 0; attempt < 50; ++attempt) {
      const Chosen& variant = one_of(family);
      const TestProblem& problem = one_of(problems_);
      json request = problem.request();
      if (!has(variant.forms, request.at("form"))) continue;
      request["variant"] = variant.id;
      request["params"] = one_of(variant.points);
      request["precision"] = variant.precision;
      request["device"] = options_.device;
      const std::string text = request.dump();
      const std::string name =
          variant.id + " (" + request["params"].get<std::string>() + ") on " + problem.name();
      progress.begins("asking " + name);
      const json said = answer([&](auto... into) { return xcorr_supports(text.c_str(), into...); });
      progress.ended();
      if (said.at("reason") != "") continue;
      progress.begins("opening " + name);
      try {
        open.push_back({variant, problem, name, std::make_unique<OpenSession>(text)});
      } catch (const std::exception& error) {
        throw std::runtime_error(name + ": " + error.what());
      }
      progress.ended();
      ++opened_;
      return true;
    }
    return false;
  }

  void compute(Open& one, int turn, std::vector<float>& out, Progress& progress) {
    out.assign(one.problem.out_elements(), std::numeric_limits<float>::quiet_NaN());
    const Data& data = one.problem.data(turn);
    progress.begins("computing " + one.name);
    try {
      one.session->compute(data.left.data(), data.right.data(), out.data());
    } catch (const std::exception& error) {
      throw std::runtime_error(one.name + ": " + error.what());
    }
    const double seconds = progress.ended();
    const std::string wrong = one.problem.wrong(turn, out, one.variant.by_transform);
    const std::lock_guard lock(mutex_);
    ++calls_[one.variant.family];
    if (seconds > longest_) {
      longest_ = seconds;
      longest_name_ = one.name;
    }
    if (wrong.empty()) return;
    ++wrong_;
    if (wrong_ <= kShown) std::cout << "WRONG " << one.name << ": " << wrong << std::endl;
  }

  // An error ends the thread, and the run.
  template <typename F>
  void guarded(Progress& progress, F&& steps) {
    try {
      steps();
    } catch (const std::exception& error) {
      progress.ended();
      const std::lock_guard lock(mutex_);
      ++errors_;
      std::cout << "ERROR " << error.what() << std::endl;
      finished_ = true;
    }
  }

#ifdef XCORR_WITH_CUDA
  void add_load(std::vector<std::thread>& loads, Progress& progress,
                std::int64_t (*load)(int, const Beat&), std::atomic<std::int64_t>& count) {
    loads.emplace_back([this, &progress, load, &count] {
      guarded(progress, [&] {
        count = load(options_.device_index(), [&](const char* next) {
          progress.begins(next);
          return !finished_;
        });
        progress.ended();
      });
    });
  }
#endif

  void watch_over(const std::deque<Progress>& progress) {
    std::unique_lock lock(mutex_);
    while (!ended_.wait_for(lock, std::chrono::seconds(1), [&] { return all_ended_; })) {
      if (options_.stall <= 0) continue;
      bool stalled = false;
      for (const Progress& one : progress) {
        const std::string what = one.stalled(options_.stall);
        if (what.empty()) continue;
        stalled = true;
        std::cout << "HANGS " << what << std::endl;
      }
      if (!stalled) continue;
      child_.kill();
      _exit(1);  // nothing that hangs can be ended
    }
  }

  int conclude() {
    std::int64_t calls = 0;
    bool all_families = true;
    for (const auto& [family, chosen] : families_) {
      calls += calls_[family];
      all_families &= calls_[family] > 0;
      if (calls_[family] == 0) std::cout << "MISSING " << family << ": nothing was computed\n";
    }
    bool passed = wrong_ == 0 && errors_ == 0 && all_families;
    json record = {{"program", "stress"},
                   {"commit", options_.commit},
                   {"device", options_.device},
                   {"seed", options_.seed},
                   {"threads", options_.threads},
                   {"seconds", since(begin_)},
                   {"sessions", opened_.load()},
                   {"calls", calls},
                   {"calls_of_family", calls_},
                   {"wrong", wrong_},
                   {"errors", errors_},
                   {"longest_call_s", longest_},
                   {"longest_call", longest_name_},
                   {"cooperative_launches", meetings_.load()},
                   {"matrix_products", products_.load()},
                   {"problems", json::array()}};
    for (const TestProblem& problem : problems_) record["problems"].push_back(problem.name());
    std::cout << (options_.child ? "second process: " : "") << options_.threads << " threads, "
              << opened_ << " sessions, " << calls << " calls, wrong values " << wrong_
              << ", errors " << errors_ << ", longest call " << longest_ << " s (" << longest_name_
              << "); beside them " << meetings_ << " cooperative launches, " << products_
              << " matrix products; " << since(begin_) << " s" << std::endl;
    if (child_.started()) {
      const bool well = child_.succeeds();  // it watches itself
      if (!well) std::cout << "ERROR second process: failed\n";
      passed &= well;
      record["second_process_passed"] = well;
      if (std::ifstream file(child_record()); file) {
        record["second_process"] = json::parse(file, nullptr, false);
        unlink(child_record().c_str());
      }
    }
    record["passed"] = passed;
    if (!options_.record.empty()) write(record);
    return passed ? 0 : 1;
  }

  void write(json& record) const {
    const std::string device = options_.device;
    record["machine"] =
        answer([&](auto... into) { return xcorr_machine(device.c_str(), into...); });
    char time[32] = "";
    const std::time_t now = std::time(nullptr);
    std::tm utc{};
    std::strftime(time, sizeof time, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    record["utc"] = time;
    std::ofstream file(options_.record);
    file << record.dump(1) << "\n";
    if (!file.flush()) {
      throw std::runtime_error("record '" + options_.record + "': cannot be written");
    }
  }

  static constexpr std::int64_t kShown = 20;

  const Options options_;
  std::map<std::string, std::vector<Chosen>> families_;
  std::deque<TestProblem> problems_;
  Clock::time_point begin_;
  SecondProcess child_;

  std::atomic<bool> finished_ = false;
  std::atomic<std::int64_t> opened_ = 0, meetings_ = 0, products_ = 0;
  std::mutex mutex_;  // of all that follows
  std::condition_variable ended_;
  bool all_ended_ = false;
  std::map<std::string, std::int64_t> calls_;
  std::int64_t wrong_ = 0, errors_ = 0;
  double longest_ = 0;
  std::string longest_name_;
};

int run(int argc, char** argv) {
  Options options;
  if (const std::optional<int> code = read(argc, argv, options)) return *code;
  return Stress(std::move(options)).run();
}

}  // namespace
}  // namespace xcorr::stress

int main(int argc, char** argv) {
  try {
    return xcorr::stress::run(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << "\n";
    return 1;
  }
}
