#include "harness/device/host_memory.hpp"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>

namespace xcorr {

std::optional<double> number_in(const std::string& path) {
  std::ifstream file(path);
  double value = 0;
  if (file >> value) return value;
  return std::nullopt;
}

namespace {

std::optional<double> mem_available(const std::string& path) {
  std::ifstream file(path);
  std::string key;
  for (double kibibytes = 0; file >> key; file.ignore(256, '\n')) {
    if (key == "MemAvailable:" && file >> kibibytes) return kibibytes * 1024;
  }
  return std::nullopt;
}

std::optional<double> whole_memory() {
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page <= 0) return std::nullopt;
  return static_cast<double>(pages) * static_cast<double>(page);
}

}  // namespace

std::size_t available_host_bytes(const HostMemoryFiles& files) {
  // Half of the address space, since callers add to the result.
  double available = static_cast<double>(std::numeric_limits<std::size_t>::max() / 2);
  if (const std::optional<double> bytes = mem_available(files.meminfo)) {
    available = *bytes;
  } else if (const std::optional<double> whole = whole_memory()) {
    available = *whole;
  }
  // A group without a limit has the word "max" in the file, which is no number.
  if (const std::optional<double> limit = number_in(files.limit)) {
    available = std::min(available, *limit - number_in(files.used).value_or(0));
  }
  return static_cast<std::size_t>(std::max(0.0, available));
}

}  // namespace xcorr
