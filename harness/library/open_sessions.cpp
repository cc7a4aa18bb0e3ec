#include "harness/library/open_sessions.hpp"

#include <unistd.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <utility>

#include "harness/problem/error.hpp"

namespace xcorr {
namespace {

struct Kept {
  std::unique_ptr<Session> session;
  pid_t process;  // 0: also its children may use it
  std::mutex computing;
};

struct Table {
  std::mutex mutex;
  std::map<std::uintptr_t, std::shared_ptr<Kept>> sessions;
  std::uintptr_t last = 0;
};
// Never destroyed: what is open when the process ends goes with it, and CUDA may have ended before.
Table& table() {
  static Table* const made = new Table;
  return *made;
}

std::shared_ptr<Kept> find(void* handle, bool take) {
  Table& all = table();
  const std::lock_guard lock(all.mutex);
  const auto found = all.sessions.find(reinterpret_cast<std::uintptr_t>(handle));
  if (found == all.sessions.end()) {
    throw UserError("session: not open; xcorr_open gives one, and xcorr_close ends it once");
  }
  std::shared_ptr<Kept> kept = found->second;
  if (take) all.sessions.erase(found);
  return kept;
}

bool is_of_parent(const Kept& kept) { return kept.process != 0 && kept.process != getpid(); }

}  // namespace

void* keep_session(std::unique_ptr<Session> session, bool uses_cuda) {
  const auto kept = std::make_shared<Kept>();
  kept->session = std::move(session);
  kept->process = uses_cuda ? getpid() : 0;
  Table& all = table();
  const std::lock_guard lock(all.mutex);
  all.sessions.emplace(++all.last, kept);
  return reinterpret_cast<void*>(all.last);
}

void compute_with(void* handle, const Arrays& arrays) {
  const std::shared_ptr<Kept> kept = find(handle, false);
  if (is_of_parent(*kept)) {
    throw UserError(
        "session: was opened on a GPU before this process was forked; open another in a "
        "process that the method spawn or forkserver of multiprocessing has started");
  }
  const std::lock_guard lock(kept->computing);
  kept->session->compute(arrays);
}

void close_session(void* handle) {
  const std::shared_ptr<Kept> kept = find(handle, true);
  // The memory of the GPU belongs to the parent.
  if (is_of_parent(*kept)) (void)kept->session.release();
}

}  // namespace xcorr
