#include "harness/device.hpp"

#include <cstdio>
#include <utility>

#include "harness/error.hpp"
#include "harness/registry.hpp"

namespace xcorr {
namespace {

constexpr std::pair<Mode, std::string_view> kModes[] = {{Mode::stream, "stream"},
                                                        {Mode::latency, "latency"},
                                                        {Mode::graph, "graph"},
                                                        {Mode::cold, "cold"}};

}  // namespace

std::string_view to_string(Mode mode) {
  for (const auto& [value, name] : kModes) {
    if (value == mode) return name;
  }
  return "?";
}

Mode parse_mode(const std::string& text) {
  for (const auto& [value, name] : kModes) {
    if (name == text) return value;
  }
  throw UserError("mode '" + text + "': unknown; use stream, latency, graph or cold");
}

std::unique_ptr<Device> open_device(const std::string& name) {
  if (name == "cpu") return open_cpu();
  if (name == "cuda" || name.rfind("cuda:", 0) == 0) {
    throw UserError("device '" + name + "': this build has no CUDA device support; use --device cpu");
  }
  throw UserError("device '" + name + "': unknown; use cpu, cuda or cuda:N");
}

std::string bytes_text(double bytes) {
  constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
  int unit = 0;
  while (bytes >= 1000 && unit < 6) {
    bytes /= 1000;
    ++unit;
  }
  char text[32];
  std::snprintf(text, sizeof text, "%.3g %s", bytes, kUnits[unit]);
  return text;
}

}  // namespace xcorr
