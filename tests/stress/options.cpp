#include "tests/stress/options.hpp"

#include <CLI/CLI.hpp>

namespace xcorr::stress {

std::optional<int> read(int argc, char** argv, Options& options) {
  CLI::App app;
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
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error);
  }
  return std::nullopt;
}

}  // namespace xcorr::stress
