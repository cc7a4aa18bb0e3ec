// What the C API does where a program forks, as Python's multiprocessing does on Linux. A child has
// one thread. It works where no call was running in another thread when it was forked, and every call
// is refused where one was: a lock that such a thread held would never be released. CUDA works in no
// child of a process that has used it.
#pragma once

#include <shared_mutex>
#include <string>

namespace xcorr {

// Held during a call of the C API. Throws UserError in a child that was forked during a call of
// another thread.
std::shared_lock<std::shared_mutex> within_call();

// Called before the process uses CUDA. Throws UserError where an ancestor has used it.
void refuse_cuda_after_fork(const std::string& device);

}  // namespace xcorr
