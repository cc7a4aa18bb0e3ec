// The order in which blocks and threads run.
#pragma once

#include <cstdint>

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

}  // namespace xcorr::emulation
