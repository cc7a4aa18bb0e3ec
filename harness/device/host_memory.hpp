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

// Bytes that can be allocated now: the memory that the system calls available, and at most what the
// limit of the control group leaves. A file that is missing or has no number sets no limit. Without
// the first file the size of the whole memory is the limit; an allocation that fails all the same
// is the outcome out_of_memory.
std::size_t available_host_bytes(const HostMemoryFiles& files = {});

}  // namespace xcorr
