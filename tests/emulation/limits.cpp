// The limits of a block and a grid.
#include "tests/emulation/memory.hpp"

namespace xcorr::emulation {
namespace {

// Compute capabilities 7.0 to 9.0 have these limits.
constexpr std::uint64_t kMaxThreads = 1024, kMaxGridX = 2147483647;
// launch() asks for shared memory where the dynamic part alone is larger. CUDA counts the static part too.
constexpr std::size_t kWithoutAsking = 48 * 1024;
// The dynamic memory of a large problem may come near that limit; that of the tests' problems does not. So no kernel
// with dynamic memory has more static memory than this.
constexpr std::size_t kMostStaticBesideDynamic = 1024;
std::size_t shared_bytes_of_a_block = kMostSharedBytes;
std::uint64_t asked_for_shared_bytes = 0;

}  // namespace

void check_limits(dim3 grid, dim3 block, std::size_t shared_bytes) {
  const auto refuse = [](const std::string& what) { throw Fault("kernel launch: " + what); };
  if (grid.count() == 0 || block.count() == 0) refuse("an empty grid or block");
  if (block.count() > kMaxThreads || block.z > 64) refuse("too many threads in a block");
  if (grid.x > kMaxGridX || grid.y > kGridLimitYZ || grid.z > kGridLimitYZ)
    refuse("too large a grid");
  if (shared_bytes > shared_bytes_of_a_block) refuse("too much shared memory");
}

void check_static_memory(std::size_t static_bytes, std::size_t dynamic_bytes) {
  const std::size_t all = static_bytes + dynamic_bytes;
  const auto refuse = [&](const char* what) {
    throw Fault("kernel launch: " + std::to_string(static_bytes) + " bytes of static and " +
                std::to_string(dynamic_bytes) + " of dynamic shared memory: " + what);
  };
  if (dynamic_bytes > 0 && static_bytes > kMostStaticBesideDynamic) {
    refuse("a kernel with dynamic memory has at most 1024 static bytes; make them dynamic too");
  }
  if (all > kWithoutAsking && dynamic_bytes <= kWithoutAsking) {
    refuse("more than 48 KiB together, which nobody asks CUDA for");
  }
  if (all > shared_bytes_of_a_block) refuse("more than a block has");
}

std::size_t max_shared_bytes() {
  ++asked_for_shared_bytes;
  return shared_bytes_of_a_block;
}
SharedMemoryOf::SharedMemoryOf(std::size_t bytes) {
  shared_bytes_of_a_block = bytes;
  asked_for_shared_bytes = 0;
}
SharedMemoryOf::~SharedMemoryOf() { shared_bytes_of_a_block = kMostSharedBytes; }
std::uint64_t SharedMemoryOf::asked() const { return asked_for_shared_bytes; }

void fail(const char* what) { throw Fault(what); }

}  // namespace xcorr::emulation
