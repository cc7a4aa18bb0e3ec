// The names of algorithms/device/{cuda, launch, memory, turns, votes, approximations}.hpp for a host compiler, and through
// tests/emulation/{matrix, texture}.hpp those of matrix.hpp and texture.hpp; meanings are documented there. The namespaces of
// the algorithms lie in the inline namespace xcorr::emulated here (families.hpp.in), so that nothing
// of an emulated unit has the name of a part of libxcorr.
#pragma once

#include <bit>
#include <cmath>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>

#include "tests/emulation/emulation.hpp"
#include "tests/emulation/matrix.hpp"
#include "tests/emulation/sample.hpp"
#include "tests/emulation/texture.hpp"

#define __global__
#define __grid_constant__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)

// Of CUDA's mathematical functions the one that the host lacks.
inline float rsqrtf(float value) { return 1 / std::sqrt(value); }

#define XCORR_SHARED(T, name, count)   \
  static const char name##_key = 0;    \
  T(&name)                             \
  [count] = *static_cast<T(*)[count]>( \
      ::xcorr::emulation::static_shared_memory(&name##_key, sizeof(T) * (count)))

namespace xcorr::device {

using emulation::kGridLimitYZ;

template <typename... Parameters, typename... Arguments>
void launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared_bytes,
            void* /*stream*/, Arguments&&... arguments) {
  emulation::note_launch(kernel);
  const std::tuple<Parameters...> copied(
      static_cast<Parameters>(std::forward<Arguments>(arguments))...);
  emulation::run_grid(grid, block, shared_bytes, [&] { std::apply(kernel, copied); });
}

struct LaunchAttributes;
template <typename... Parameters, typename... Arguments>
void launch(const LaunchAttributes& /*attributes*/, void (*kernel)(Parameters...),
            Arguments&&... arguments) {
  launch(kernel, std::forward<Arguments>(arguments)...);
}

// A device of compute capability 9.0 on which calls are neither recorded nor overlap.
inline int compute_capability_major() { return 9; }
inline int current_device() { return 0; }
inline bool shared_with_processes() { return false; }
inline bool is_captured(void* /*stream*/) { return false; }
inline void wait_for_previous() {}
inline void let_next_start() {}
inline std::int64_t resident_blocks(const void* /*kernel*/, int /*threads*/,
                                    std::size_t /*shared_bytes*/) {
  return emulation::kResidentBlocks;
}

class OwnStream {
 public:
  void* get() const { return nullptr; }
};
class OwnEvent {
 public:
  void record(void* /*stream*/) {}
  void wait_in(void* /*stream*/) const {}
};

inline std::size_t shared_limit() { return emulation::max_shared_bytes(); }

constexpr std::int64_t small_if_emulated(std::int64_t /*limit*/, std::int64_t small) {
  return small;
}

inline void clear(void* memory, std::size_t bytes, void* /*stream*/) {
  std::memset(memory, 0, bytes);
}

template <typename T>
T* dynamic_shared() {
  return static_cast<T*>(emulation::dynamic_shared_memory());
}

// Fibers change only at barriers, so this is atomic.
template <typename T>
T atomic_add(T* address, T value) {
  return std::exchange(*address, *address + value);
}

template <typename T>
T opaque(T value) {
  return value;
}
template <typename T>
T select(bool condition, T yes, T no) {
  return condition ? yes : no;
}
// The hardware's approximation has the upper half of a double.
inline double inverse_root(double value) {
  const double root = std::bit_cast<double>(std::bit_cast<std::uint64_t>(1 / std::sqrt(value)) &
                                            0xffffffff00000000u);
  return std::fma(0.5 * root, std::fma(-value * root, root, 1.0), root);
}

namespace block {

inline void barrier(emulation::Site site = emulation::Site::current()) {
  emulation::block_barrier(site);
}
inline void barrier(int /*number*/, int threads,
                    emulation::Site site = emulation::Site::current()) {
  emulation::group_barrier(threads, site);
}
inline void arrive(int number, int threads) { emulation::arrive(number, threads); }
inline void wait(int number, int threads) { emulation::wait_for_all(number, threads); }

}  // namespace block

namespace warp {

inline constexpr int kSize = 32;

inline int lane() { return emulation::lane(); }

inline void barrier(emulation::Site site = emulation::Site::current()) {
  emulation::exchange(0, site);
}

// The value of lane `source`, which is in the warp. Inlined, as the shuffles are: after a switch of fibers the processor
// predicts every return wrongly.
template <typename T>
[[gnu::always_inline]] inline T value_of(T value, int source, emulation::Site site) {
  static_assert(std::is_trivially_copyable_v<T> && (sizeof(T) == 4 || sizeof(T) == 8));
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  bits = emulation::exchange(bits, site)[source];
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

template <typename T>
[[gnu::always_inline]] inline T shuffle(T value, int source,
                                        emulation::Site site = emulation::Site::current()) {
  return value_of(value, source & (kSize - 1), site);
}
template <typename T>
[[gnu::always_inline]] inline T shuffle_down(T value, int by,
                                             emulation::Site site = emulation::Site::current()) {
  return value_of(value, lane() + by < kSize ? lane() + by : lane(), site);
}
template <typename T>
[[gnu::always_inline]] inline T shuffle_up(T value, int by,
                                           emulation::Site site = emulation::Site::current()) {
  return value_of(value, lane() >= by ? lane() - by : lane(), site);
}
template <typename T>
[[gnu::always_inline]] inline T shuffle_xor(T value, int mask,
                                            emulation::Site site = emulation::Site::current()) {
  return value_of(value, (lane() ^ mask) & (kSize - 1), site);
}
inline bool any(bool predicate, emulation::Site site = emulation::Site::current()) {
  const std::uint64_t* all = emulation::exchange(predicate, site);
  bool result = false;
  for (int i = 0; i < kSize; ++i) result |= all[i] != 0;
  return result;
}

inline std::uint32_t votes(bool predicate, emulation::Site site = emulation::Site::current()) {
  const std::uint64_t* all = emulation::exchange(predicate, site);
  std::uint32_t result = 0;
  for (int i = 0; i < kSize; ++i) result |= std::uint32_t{all[i] != 0} << i;
  return result;
}
inline std::uint32_t largest(std::uint32_t value,
                             emulation::Site site = emulation::Site::current()) {
  const std::uint64_t* all = emulation::exchange(value, site);
  std::uint32_t result = 0;
  for (int i = 0; i < kSize; ++i) result = std::max(result, static_cast<std::uint32_t>(all[i]));
  return result;
}

}  // namespace warp

// Fibers change only where they wait, so every access is atomic and in order, and there is one
// memory.
inline void add_release(std::uint32_t* counter, std::uint32_t value) { *counter += value; }
inline std::uint32_t load_acquire(const std::uint32_t* counter) { return *counter; }
template <unsigned kNanoseconds>
void back_off() {
  emulation::poll();
}
template <typename T>
T load_relaxed(const T* from) {
  return *from;
}
template <typename T>
void store_relaxed(T* to, const T& value) {
  *to = value;
}
template <typename T>
T load_past_l1(const T* from) {
  return *from;
}
template <typename T>
void store_past_l1(T* to, const T& value) {
  *to = value;
}
template <typename T>
void store_last(T* to, const T& value) {
  *to = value;
}
inline void store_global(float* to, float value) { *to = value; }
inline std::uint32_t bits_of(float value) { return std::bit_cast<std::uint32_t>(value); }

namespace async_copy {

inline bool supported() { return true; }
template <int kFloats>
void copy(float* shared, const float* global, bool exists) {
  // The copy itself is made where no sanitizer looks (meson.build), so both ends are looked at here.
  for (const int i : {0, kFloats - 1}) {
    static_cast<void>(*const_cast<const volatile float*>(shared + i));
    if (exists) static_cast<void>(*const_cast<const volatile float*>(global + i));
  }
  emulation::start_copy(shared, global, kFloats, exists);
}
inline void commit() { emulation::commit_copies(); }
inline void wait() { emulation::wait_for_copies(); }

}  // namespace async_copy
}  // namespace xcorr::device
