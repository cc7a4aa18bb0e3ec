// The options of xcorr-bench, and the lines of --points that replace some of them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "harness/problem/problem.hpp"

namespace xcorr {

inline constexpr double kLongestMeasurement = 86400;  // seconds
inline constexpr int kMostRepetitions = 1000000;

struct Options {
  std::string list;
  bool machine = false, ceilings = false, brief = false;
  std::string device = "cpu";
  std::vector<std::string> variants;
  std::vector<std::string> params;
  std::string precision = "fp32", form, left, right, window = "full", mode = "stream";
  std::string input = "uniform", records, points;
  Index lefts = 1, rights = 1;
  std::map<std::string, std::string> fields;  // name -> value, of those that are given
  std::uint64_t seed = 1;
  int repetitions = 0;
  double min_time = 0, noise = 0, max_time = 0, energy_time = 0;
};

// The options after a line of --points: one JSON object with names of options, of which variant and
// params are single texts. UserError for any other text or an unknown key.
Options with_line(Options options, const std::string& text, int number);

}  // namespace xcorr
