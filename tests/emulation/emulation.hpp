// A CUDA grid on one host thread: a few blocks at once, one fiber per CUDA thread, in an order
// drawn from a seed. A fiber runs until it waits at a barrier or a warp operation or ends; when
// none of a block can run, what they wait at is resolved or is a fault. See README.md for what this
// finds and what it cannot.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <source_location>
#include <stdexcept>
#include <string>

// The names that CUDA declares at global scope.
struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
  constexpr std::uint64_t count() const { return std::uint64_t{x} * y * z; }
};
struct uint3 {
  unsigned x = 0, y = 0, z = 0;
};
// Of the fiber that runs.
inline uint3 threadIdx, blockIdx;
inline dim3 blockDim, gridDim;

namespace xcorr::emulation {

using Site = std::source_location;

// Far below a GPU's 65535, so that the loops over what lies beyond it run in small problems too.
inline constexpr std::int64_t kGridLimitYZ = 16;

// Blocks that run at the same time; those of a grid that wait for each other are no more than
// these.
inline constexpr int kResidentBlocks = 3;

// Shared memory of a block. Compute capability 9.0 has 227 KiB, 8.6 and 8.9 have 99, 8.0 has 163,
// 7.5 and older have 64 or 48.
inline constexpr std::size_t kMostSharedBytes = 227 * 1024;
std::size_t max_shared_bytes();
// Until the end of the scope a block has `bytes`, and asked() counts how often that was asked for.
class SharedMemoryOf {
 public:
  explicit SharedMemoryOf(std::size_t bytes);
  ~SharedMemoryOf();
  SharedMemoryOf(const SharedMemoryOf&) = delete;
  std::uint64_t asked() const;
};

// What is wrong with a kernel's synchronisation or launch, in words.
struct Fault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Throws it. What a header of the vocabulary throws itself would be defined in every unit.
[[noreturn]] void fail(const char* what);

// Order of blocks and of fibers between barriers, from the next launch on.
void set_order(std::uint64_t seed);

// By all launches so far: what a test costs.
std::uint64_t threads_started();

// Runs `thread` once for every thread of the grid. Throws Fault, or what `thread` throws.
void run_grid(dim3 grid, dim3 block, std::size_t shared_bytes, const std::function<void()>& thread);

// Called from within a kernel.
void block_barrier(Site site);
// Of the `group` threads, a multiple of a warp's, among which the calling one is; blocks are whole
// groups.
void group_barrier(int group, Site site);
// A barrier with a number from 1 to 15, at which a thread arrives and goes on, or waits for all.
void arrive(int number, int threads);
void wait_for_all(int number, int threads);
// Lets others run, of this block and of others: what a thread does while it waits for another
// block. A Fault if it goes on for ever.
void poll();
// Deposits 8 bytes of the calling lane; returns those of all 32 lanes, valid until its next call.
const std::uint64_t* exchange(std::uint64_t bits, Site site);
int lane();
// Copies of the calling thread to shared memory that run while it goes on, of `count` floats, or as many zeros. Half
// of them are made at once, the others when the thread waits for them: whoever reads or overwrites too early
// sees it. A thread that ends before it has waited for all that it started is a Fault.
void start_copy(float* to, const float* from, int count, bool exists);
void commit_copies();
void wait_for_copies();
// Shared memory of the running block: exact in size, filled with 0xff (NaN) when the block starts.
void* static_shared_memory(const void* key, std::size_t bytes);
void* dynamic_shared_memory();

}  // namespace xcorr::emulation
