// How much memory of the host a point may take.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace xcorr {

// The number at the start of a file; empty where there is none.
std::optional<double> number_in(const std::string& path);

// Files of the system with sizes of memory. A test names other files.
struct HostMemoryFiles {
  std::string meminfo = "/proc/meminfo";
  std::string limit = "/sys/fs/cgroup/memory.max";
  std::string used = "/sys/fs/cgroup/memory.current";
};

// Bytes that can be allocated now: MemAvailable of `meminfo`, or the size of the whole memory where
// that is missing; at most what the limit of the control group leaves. A missing limit does not count.
std::size_t available_host_bytes(const HostMemoryFiles& files = {});

}  // namespace xcorr
