#include "tests/emulation/emulation.hpp"

#include <sanitizer/common_interface_defs.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <vector>

#include "tests/emulation/memory.hpp"

namespace xcorr::emulation {
namespace {

constexpr unsigned kWarp = 32;
// A block that runs goes on for 1 to 2^kMostTurns turns before another one may.
constexpr unsigned kMostTurns = 7;
// One turn in kHoldOneIn begins to hold a warp back, for at most kMostHeldTurns turns. 64 turns are more than the 37
// shuffles of scale_near(), after which template_fft once overwrote what a late warp had not read yet.
constexpr unsigned kHoldOneIn = 4, kMostHeldTurns = 64;
// Turns of blocks in a row in which every thread that runs only polls: nothing will ever change.
constexpr std::uint64_t kIdleTurns = 20000;

enum class State { ready, at_block_barrier, at_group, at_warp, ended };

// Thrown into fibers that wait while their block is given up, so that their destructors run.
struct GivenUp {};

class Block;

// An asynchronous copy to shared memory; `from` is null for zeros.
struct Copy {
  float* to;
  const float* from;
  int count;
  void make() const {
    for (int i = 0; i < count; ++i) to[i] = from != nullptr ? from[i] : 0.0f;
  }
};

// One CUDA thread.
struct Thread {
  Block* block = nullptr;
  unsigned number = 0;
  uint3 index;
  State state = State::ready;
  Site site;
  std::uint64_t deposit = 0;
  unsigned group = 0;         // threads of the barrier at which it waits
  bool polled = false;        // its last turn ended in poll()
  std::vector<Copy> copies;   // under way
  std::size_t committed = 0;  // of these
  context::fiber fiber;
  const void* stack_bottom = nullptr;
};

// A barrier at which some threads only arrive: how many are here, and how often all were.
struct Arrivals {
  int here = 0;
  std::uint64_t completed = 0;
  void come(int threads) { completed += ++here == threads, here %= threads; }
};

StackPool stacks;
std::uint64_t order_seed = 0;
std::uint64_t started = 0;
std::uint64_t idle_turns = 0;
Thread* running = nullptr;

class Block {
 public:
  Block(uint3 index, dim3 size, std::size_t shared_bytes, const std::function<void()>& thread,
        Order& order)
      : index_(index),
        kernel_(thread),
        order_(order),
        sequence_(size.count()),
        threads_(size.count()),
        exchanged_((size.count() + 31) / 32) {
    if (shared_bytes > 0) dynamic_ = garbage(shared_bytes);
    dynamic_bytes_ = shared_bytes;
    std::iota(sequence_.begin(), sequence_.end(), 0u);
    for (unsigned i = 0; i < threads_.size(); ++i) {
      threads_[i].block = this;
      threads_[i].number = i;
      threads_[i].index = {i % size.x, i / size.x % size.y, i / size.x / size.y};
    }
  }

  // Every thread that can runs once, but for those of a warp that is held back. False when all have
  // ended.
  bool turn() {
    blockIdx = index_;
    std::shuffle(sequence_.begin(), sequence_.end(), order_);
    hold_back();
    begun_ = 0;
    moved_ = polls_ = held_ = false;
    if (Thread* first = next()) change(&scheduler_, first);
    if (error_) give_up();
    idle_turns = moved_ ? 0 : idle_turns + 1;
    if (idle_turns > kIdleTurns) {
      error_ = std::make_exception_ptr(Fault("blocks wait for each other for ever"));
      give_up();
    }
    // A thread that polls or is held back can run, so it may still reach the barrier of the others.
    if (!polls_ && !held_) return release();
    if (!release_complete()) held_turns_ = 0;
    return true;
  }
  Arrivals& arrivals(int number) { return arrivals_[number]; }
  // Ends the fibers of a block that is not to go on, because another one failed.
  void abandon() {
    blockIdx = index_;
    error_ = std::make_exception_ptr(GivenUp{});
    try {
      give_up();
    } catch (...) {  // the first failure is what counts
    }
  }

  // Ends the turn of `thread`; returns when everybody it waits for came. The next thread of the turn goes on at once:
  // a switch to the scheduler between them would take nearly as long again.
  void wait(Thread& thread, State state, Site site) {
    thread.state = state;
    thread.site = site;
    change(&thread.fiber, after(thread));
    if (giving_up_) throw GivenUp{};
  }

  bool is_late() { return order_() % 2 == 0; }

  const std::uint64_t* exchanged(const Thread& thread) const {
    return exchanged_[thread.number / kWarp].lanes;
  }

  void* shared(const void* key, std::size_t bytes) {
    Memory& memory = static_[key];
    if (!memory) {
      memory = garbage(bytes);
      static_bytes_ += bytes;
      check_static_memory(static_bytes_, dynamic_bytes_);
    }
    return memory.get();
  }
  void* dynamic() const {
    if (!dynamic_) throw Fault("dynamic shared memory is used, but the launch asks for none");
    return dynamic_.get();
  }

 private:
  struct Lanes {
    std::uint64_t lanes[kWarp];
  };

  // The thread that has its turn after those before; null at the end of a turn.
  Thread* next() {
    while (begun_ < sequence_.size()) {
      const unsigned i = sequence_[begun_++];
      if (threads_[i].state != State::ready) continue;
      if (held_turns_ > 0 && i / kWarp == held_warp_) {
        held_ = true;
        continue;
      }
      threads_[i].polled = false;
      return &threads_[i];
    }
    return nullptr;
  }
  // The next thread after the turn of `thread`; null too where the block is given up.
  Thread* after(const Thread& thread) {
    moved_ |= !thread.polled;
    polls_ |= thread.polled;
    return error_ ? nullptr : next();
  }

  // Runs in the fiber of a thread; returns the fiber that continues after it.
  context::fiber run(Thread& thread) {
    try {
      kernel_();
      if (!thread.copies.empty()) throw Fault("a thread ends before it has waited for its copies");
    } catch (const GivenUp&) {
    } catch (...) {
      error_ = std::current_exception();
    }
    thread.state = State::ended;
    Thread* to = after(thread);
    left_ = nullptr;
    prepare(to);
    announce(nullptr, to);
    return std::move(to ? to->fiber : scheduler_);
  }

  // Sets the globals for the thread that is about to run, null for the scheduler.
  void prepare(Thread* thread) {
    running = thread;
    if (thread == nullptr) return;
    threadIdx = thread->index;
    if (thread->stack_bottom != nullptr) return;
    const context::stack_context stack = stacks.take();
    thread->stack_bottom = static_cast<std::byte*>(stack.sp) - stack.size;
    thread->fiber = context::fiber(std::allocator_arg, PooledStack{&stacks, stack},
                                   [this, thread](context::fiber&& before) {
                                     arrive(nullptr, std::move(before));
                                     return run(*thread);
                                   });
  }

  // Leaves the context whose fiber will be stored in `from` for a thread, null for the scheduler.
  void change(context::fiber* from, Thread* to) {
    left_ = from;
    prepare(to);
    void* fake_stack = nullptr;
    announce(&fake_stack, to);
    arrive(fake_stack, std::move(to ? to->fiber : scheduler_).resume());
  }

  // The address sanitizer is told of each switch, before and after it.
  void announce(void** fake_stack, const Thread* to) {
    __sanitizer_start_switch_fiber(fake_stack, to ? to->stack_bottom : scheduler_bottom_,
                                   to ? kStackBytes : scheduler_size_);
  }
  void arrive(void* fake_stack, context::fiber&& before) {
    const void* bottom = nullptr;
    std::size_t size = 0;
    __sanitizer_finish_switch_fiber(fake_stack, &bottom, &size);
    if (left_ == &scheduler_) {
      scheduler_bottom_ = bottom;
      scheduler_size_ = size;
    }
    if (left_ != nullptr) *left_ = std::move(before);
  }

  // A warp may be far behind the others, as long as these do not wait for it.
  void hold_back() {
    if (held_turns_ > 0) {
      --held_turns_;
    } else if (threads_.size() > kWarp && order_() % kHoldOneIn == 0) {
      held_warp_ = static_cast<unsigned>(order_() % ((threads_.size() + kWarp - 1) / kWarp));
      held_turns_ = static_cast<unsigned>(order_() % kMostHeldTurns) + 1;
    }
  }

  // Completes the warp operations and the barriers of groups at which all are that must be. Others
  // may run later.
  bool release_complete() {
    bool released = false;
    for (unsigned first = 0; first < threads_.size(); first += kWarp) {
      const Thread& thread = threads_[first];
      if (thread.state == State::at_group && first % thread.group == 0 &&
          all_at_barrier_of(thread)) {
        released |= release_group(State::at_group, first, thread.group);
      } else if (thread.state == State::at_warp && first + kWarp <= threads_.size() &&
                 std::all_of(threads_.begin() + first, threads_.begin() + first + kWarp,
                             [](const Thread& t) { return t.state == State::at_warp; })) {
        released |= release_group(State::at_warp, first, kWarp);
      }
    }
    return released;
  }

  // Nobody is ready: completes warp operations, else the block's barrier. False when all have
  // ended.
  bool release() {
    if (release_complete()) return true;
    // What waits for a warp or a group now is not complete: these calls say who did not come.
    for (unsigned first = 0; first < threads_.size(); first += kWarp) {
      const Thread& thread = threads_[first];
      release_group(State::at_warp, first, kWarp);
      if (thread.state != State::at_group) continue;
      release_group(State::at_group, first / thread.group * thread.group, thread.group);
    }
    if (release_group(State::at_block_barrier, 0, static_cast<unsigned>(threads_.size()))) {
      return true;
    }
    for (const Thread& thread : threads_) {
      if (thread.state != State::ended) fail(describe(thread) + ", but nobody else comes");
    }
    return false;
  }
  bool all_at_barrier_of(const Thread& first) const {
    const auto begin = threads_.begin() + first.number;
    return std::all_of(begin, begin + first.group, [&](const Thread& t) {
      return t.state == State::at_group && t.group == first.group;
    });
  }

  // Whether threads of [first, first + count) wait in `state`; all of them must, and at one site.
  bool release_group(State state, unsigned first, unsigned count) {
    const unsigned last = std::min<unsigned>(first + count, static_cast<unsigned>(threads_.size()));
    const auto begin = threads_.begin() + first, end = threads_.begin() + last;
    const auto waiting =
        std::find_if(begin, end, [&](const Thread& t) { return t.state == state; });
    if (waiting == end) return false;
    if (state == State::at_warp && last < first + count) {
      fail(describe(*waiting) + ", but its warp is not whole: the block has " +
           std::to_string(threads_.size()) + " threads");
    }
    for (auto other = begin; other != end; ++other) {
      if (other->state != state || other->site.line() != waiting->site.line() ||
          other->site.column() != waiting->site.column() ||
          // Mostly the same text at the same place; comparing it takes a sixth of the time.
          (other->site.file_name() != waiting->site.file_name() &&
           std::strcmp(other->site.file_name(), waiting->site.file_name()) != 0)) {
        fail(describe(*waiting) + ", but " + describe(*other));
      }
    }
    for (auto thread = begin; thread != end; ++thread) {
      thread->state = State::ready;
      if (state == State::at_warp)
        exchanged_[first / kWarp].lanes[thread->number % kWarp] = thread->deposit;
    }
    return true;
  }

  static std::string describe(const Thread& thread) {
    const std::string who = "thread " + std::to_string(thread.number);
    if (thread.state == State::ended) return who + " has ended";
    return who + " waits at the " +
           (thread.state == State::at_warp    ? "warp operation"
            : thread.state == State::at_group ? "barrier of a group"
                                              : "block's barrier") +
           " of " + thread.site.file_name() + ":" + std::to_string(thread.site.line());
  }

  void fail(const std::string& what) {
    error_ = std::make_exception_ptr(Fault("divergence in block (" + std::to_string(blockIdx.x) +
                                           ", " + std::to_string(blockIdx.y) + ", " +
                                           std::to_string(blockIdx.z) + "): " + what));
    give_up();
  }

  [[noreturn]] void give_up() {
    giving_up_ = true;
    for (Thread& thread : threads_) {
      if (thread.fiber) change(&scheduler_, &thread);
    }
    std::rethrow_exception(error_);
  }

  uint3 index_;
  const std::function<void()>& kernel_;
  Order& order_;
  std::vector<unsigned> sequence_;
  std::vector<Thread> threads_;
  std::vector<Lanes> exchanged_;      // of each warp: what its last complete operation exchanged
  std::map<int, Arrivals> arrivals_;  // by the number of the barrier
  std::map<const void*, Memory> static_;
  Memory dynamic_;
  std::size_t static_bytes_ = 0, dynamic_bytes_ = 0;
  // In this turn: how many threads of the sequence ran, whether one did more than poll, whether one polled, whether one
  // was held back.
  std::size_t begun_ = 0;
  bool moved_ = false, polls_ = false, held_ = false;
  context::fiber scheduler_;
  context::fiber* left_ = nullptr;  // of the fiber that was left last; null where it ended
  const void* scheduler_bottom_ = nullptr;
  std::size_t scheduler_size_ = 0;
  std::exception_ptr error_;
  bool giving_up_ = false;
  unsigned held_warp_ = 0, held_turns_ = 0;
};

Thread& current() {
  if (!running) throw Fault("a device function is called outside a kernel");
  return *running;
}

}  // namespace

void set_order(std::uint64_t seed) { order_seed = seed; }

std::uint64_t threads_started() { return started; }

void run_grid(dim3 grid, dim3 block, std::size_t shared_bytes,
              const std::function<void()>& thread) {
  check_limits(grid, block, shared_bytes);
  Order order(order_seed);
  std::vector<std::uint64_t> sequence(grid.count());
  std::iota(sequence.begin(), sequence.end(), std::uint64_t{0});
  std::shuffle(sequence.begin(), sequence.end(), order);
  gridDim = grid;
  blockDim = block;
  started += grid.count() * block.count();
  idle_turns = 0;
  std::vector<std::unique_ptr<Block>> resident;
  std::size_t begun = 0;
  const auto fill = [&] {
    while (resident.size() < kResidentBlocks && begun < sequence.size()) {
      const std::uint64_t i = sequence[begun++];
      const uint3 index = {static_cast<unsigned>(i % grid.x),
                           static_cast<unsigned>(i / grid.x % grid.y),
                           static_cast<unsigned>(i / grid.x / grid.y)};
      resident.push_back(std::make_unique<Block>(index, block, shared_bytes, thread, order));
    }
  };
  std::size_t runs = 0;
  try {
    for (fill(); !resident.empty(); fill()) {
      runs = order() % resident.size();
      bool alive = true;
      for (auto turns = order() % (1u << order() % (kMostTurns + 1)) + 1; alive && turns > 0;
           --turns) {
        alive = resident[runs]->turn();
      }
      if (!alive) resident.erase(resident.begin() + static_cast<std::ptrdiff_t>(runs));
    }
  } catch (...) {
    for (std::size_t i = 0; i < resident.size(); ++i) {
      if (i != runs) resident[i]->abandon();
    }
    throw;
  }
}

void block_barrier(Site site) {
  Thread& thread = current();
  thread.block->wait(thread, State::at_block_barrier, site);
}

void group_barrier(int group, Site site) {
  Thread& thread = current();
  thread.group = static_cast<unsigned>(group);
  thread.block->wait(thread, State::at_group, site);
}

void arrive(int number, int threads) { current().block->arrivals(number).come(threads); }

void wait_for_all(int number, int threads) {
  Arrivals& arrivals = current().block->arrivals(number);
  const std::uint64_t before = arrivals.completed;
  arrivals.come(threads);
  while (arrivals.completed == before) poll();
}

void poll() {
  Thread& thread = current();
  thread.polled = true;
  thread.block->wait(thread, State::ready, {});
}

const std::uint64_t* exchange(std::uint64_t bits, Site site) {
  Thread& thread = current();
  thread.deposit = bits;
  thread.block->wait(thread, State::at_warp, site);
  return thread.block->exchanged(thread);
}

void start_copy(float* to, const float* from, int count, bool exists) {
  Thread& thread = current();
  const Copy copy{to, exists ? from : nullptr, count};
  // The thread waits for a copy that is already made, too.
  if (thread.block->is_late()) {
    thread.copies.push_back(copy);
  } else {
    copy.make();
    thread.copies.push_back({to, nullptr, 0});
  }
}
void commit_copies() { current().committed = current().copies.size(); }
void wait_for_copies() {
  std::vector<Copy>& copies = current().copies;
  const auto end = copies.begin() + static_cast<std::ptrdiff_t>(current().committed);
  for (auto copy = copies.begin(); copy != end; ++copy) copy->make();
  copies.erase(copies.begin(), end);
  current().committed = 0;
}

int lane() { return static_cast<int>(current().number % kWarp); }

void* static_shared_memory(const void* key, std::size_t bytes) {
  return current().block->shared(key, bytes);
}
void* dynamic_shared_memory() { return current().block->dynamic(); }

}  // namespace xcorr::emulation
