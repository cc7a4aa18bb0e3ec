// What the stress test is asked for on its command line.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace xcorr::stress {

struct Options {
  std::string device = "cuda", record, commit;
  std::vector<std::string> variants;
  int threads = 8;
  double seconds = 120, stall = 30;
  long rounds = 0;
  unsigned long long seed = 1;
  bool child = false, no_child = false, no_load = false;

  bool on_card() const { return device.rfind("cuda", 0) == 0; }
  int device_index() const {
    const std::size_t colon = device.find(':');
    return colon == std::string::npos ? 0 : std::stoi(device.substr(colon + 1));
  }
};

inline void describe(CLI::App& app, Options& options) {
  app.description(
      "Threads compute with all families at once through the C API, on a card beside cooperative\n"
      "kernels, matrix products and a second process. Every value is checked. Exits 1 on a wrong\n"
      "value, an error, or a thread that makes no progress.\n"
      "Example: stress --device cuda --seconds 120 --record stress.json");
  app.add_option("--device", options.device, "cpu, cuda or cuda:N")->capture_default_str();
  app.add_option("--threads", options.threads, "threads of a process")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--seconds", options.seconds, "how long it runs")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  app.add_option("--rounds", options.rounds, "sessions of a thread, instead of --seconds")
      ->check(CLI::Range(0L, 1000000000L));
  app.add_option("--stall", options.stall, "seconds without progress that are a hang; 0: never")
      ->capture_default_str();
  app.add_option("--seed", options.seed, "of inputs and of what is opened when")
      ->check(CLI::Range(0ULL, 10000ULL))
      ->capture_default_str();
  app.add_option("--variant", options.variants, "only these ids; default all of the device");
  app.add_option("--record", options.record, "file for what was done, as JSON");
  app.add_option("--commit", options.commit, "what the record says was built");
  app.add_flag("--no-load", options.no_load, "no other work on the device");
  app.add_flag("--no-child", options.no_child, "no second process");
  app.add_flag("--child", options.child, "this is the second process");
}

}  // namespace xcorr::stress
