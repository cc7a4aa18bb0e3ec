// Forks of a program that uses the C API, as by Python's multiprocessing on Linux. A child has one
// thread. It works if no other thread was in a call during the fork; otherwise every call is
// refused, since a lock of that thread would never be released. CUDA works in no child of a process
// that has used it.
#pragma once

#include <shared_mutex>
#include <string>

namespace xcorr {

// Held during a call of the C API. UserError in a child that was forked during a call of another
// thread.
std::shared_lock<std::shared_mutex> within_call();

// Comes before the process uses CUDA. UserError where an ancestor has used it.
void refuse_cuda_after_fork(const std::string& device);

}  // namespace xcorr
