// Stacks of fibers, memory of blocks, the order of threads, and what a launch may ask for.
#pragma once

#include <sanitizer/asan_interface.h>

#include <boost/context/fiber.hpp>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "tests/emulation/emulation.hpp"

namespace xcorr::emulation {

// SplitMix64: the order of threads is drawn anew at every turn, so drawing has to be quick.
class Order {
 public:
  using result_type = std::uint64_t;
  explicit Order(std::uint64_t seed) : state_(seed) {}
  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return ~result_type{0}; }
  result_type operator()() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

 private:
  std::uint64_t state_;
};

// Throws Fault where a GPU refuses the launch.
void check_limits(dim3 grid, dim3 block, std::size_t shared_bytes);
// The same of the static shared memory that a block has had so far, beside its dynamic memory.
void check_static_memory(std::size_t static_bytes, std::size_t dynamic_bytes);

namespace context = boost::context;

inline constexpr std::size_t kStackBytes = 128 * 1024;
inline constexpr std::size_t kColours = 64, kColourBytes = 320;

// Stacks are used again: mapping one for each of a million threads would take most of the time. Their
// places differ by a colour, so that the ends of the 32 stacks of a warp are in different cache sets.
class StackPool {
 public:
  context::stack_context take() {
    if (free_.empty()) {
      const std::size_t colour = all_.size() % kColours * kColourBytes;
      all_.push_back(std::make_unique<std::byte[]>(kStackBytes + kColours * kColourBytes));
      free_.push_back(all_.back().get() + colour);
    }
    std::byte* bottom = free_.back();
    free_.pop_back();
    // Frames of an ended fiber's first function were never left, so their red zones are still
    // there.
    ASAN_UNPOISON_MEMORY_REGION(bottom, kStackBytes);
    context::stack_context stack;
    stack.size = kStackBytes;
    stack.sp = bottom + kStackBytes;
    return stack;
  }
  void give(const context::stack_context& stack) {
    free_.push_back(static_cast<std::byte*>(stack.sp) - stack.size);
  }

 private:
  std::vector<std::unique_ptr<std::byte[]>> all_;
  std::vector<std::byte*> free_;
};

struct PooledStack {
  StackPool* pool;
  context::stack_context stack;
  context::stack_context allocate() { return stack; }
  void deallocate(context::stack_context& used) { pool->give(used); }
};

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};
using Memory = std::unique_ptr<void, Free>;

// Filled with 0xff: every float is NaN. Aligned as wide loads of shared memory need it.
inline Memory garbage(std::size_t bytes) {
  void* allocated = nullptr;
  if (posix_memalign(&allocated, 32, bytes) != 0) throw std::bad_alloc();
  Memory memory(allocated);
  std::memset(memory.get(), 0xff, bytes);
  return memory;
}

}  // namespace xcorr::emulation
