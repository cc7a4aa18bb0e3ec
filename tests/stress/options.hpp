// What the stress test is asked for on its command line.
#pragma once

#include <optional>
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

// Reads the command line. Where that is the end of the program, as with --help, its exit code.
std::optional<int> read(int argc, char** argv, Options& options);

}  // namespace xcorr::stress
