// How much memory of the host a point may take.
#pragma once

#include <cstddef>
#include <string>

namespace xcorr {

// Where the system tells it; a test names other files.
struct HostMemoryFiles {
  std::string meminfo = "/proc/meminfo";
  std::string limit = "/sys/fs/cgroup/memory.max";
  std::string used = "/sys/fs/cgroup/memory.current";
};

// Bytes that can be allocated now: what the system says is available, and what a control group
// leaves of it. What nobody tells limits nothing but for the size of the whole memory: an
// allocation that fails is an outcome of its own.
std::size_t available_host_bytes(const HostMemoryFiles& files = {});

}  // namespace xcorr
