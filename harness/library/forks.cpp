#include "harness/library/forks.hpp"

#include <omp.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <new>

#include "harness/problem/error.hpp"

namespace xcorr {
namespace {

std::shared_mutex calls;  // shared by calls; a fork that locks it alone knows that there are none
bool alone = false;       // written and read by the thread that forks
std::atomic<bool> unusable = false;
std::atomic<pid_t> cuda_process = 0;

void before_fork() {
  alone = calls.try_lock();
  // The threads of this thread's OpenMP team do not exist in the child, which would wait for them
  // for ever. They are made again when needed.
  if (alone && !omp_in_parallel()) omp_pause_resource_all(omp_pause_hard);
}
void after_fork_in_parent() {
  if (alone) calls.unlock();
}
// The thread of a child has another number than the writer that holds the lock, so the child gets a
// new lock.
void after_fork_in_child() {
  if (!alone) unusable = true;
  new (&calls) std::shared_mutex;
}

}  // namespace

std::shared_lock<std::shared_mutex> within_call() {
  static const int registered =
      pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
  (void)registered;
  if (unusable) {
    throw UserError(
        "process: was forked while another thread computed; fork before that, or start it with the "
        "method spawn or forkserver of multiprocessing");
  }
  return std::shared_lock(calls);
}

void refuse_cuda_after_fork(const std::string& device) {
  const pid_t here = getpid();
  pid_t first = 0;
  if (cuda_process.compare_exchange_strong(first, here) || first == here) return;
  throw UserError("device '" + device +
                  "': this process was forked from one that had used CUDA, which works in no such "
                  "process; start it with the method spawn or forkserver of multiprocessing");
}

}  // namespace xcorr
