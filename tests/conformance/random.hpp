// Random cases: each is a pure function of (seed, number), so that parts of a run are disjoint and
// one case can be drawn again alone.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/conformance/case.hpp"

namespace xcorr::conformance {

// SplitMix64 in counter mode.
class Rng {
 public:
  Rng(std::uint64_t seed, std::uint64_t number) : state_(mix(seed) ^ mix(~number)) {}
  std::uint64_t next() { return mix(state_++); }
  Index below(Index n) { return static_cast<Index>(next() % static_cast<std::uint64_t>(n)); }
  bool chance(double share) { return static_cast<double>(next() >> 11) * 0x1p-53 < share; }
  Index log_uniform(Index first, Index last);
  template <typename T>
  const T& of(const std::vector<T>& values) {
    return values[static_cast<std::size_t>(below(static_cast<Index>(values.size())))];
  }

 private:
  std::uint64_t state_;
};

// What a drawn problem may be at most.
struct Limits {
  Index side;         // rows or columns of a matrix
  std::size_t bytes;  // of inputs and outputs
  Index fmas;         // useful work: the truth is by the definition
  Index overlap;      // terms of an output: one thread of the truth sums them
  Index pairs;
  Index signal;        // samples of the signal of a time series
  bool fields = true;  // some problems have fields other than the defaults

  bool hold_work_of(const Problem& p) const {
    return p.fmas() <= fmas && p.max_overlap() <= overlap;
  }
  bool hold_bytes_of(const Problem& p) const {
    return static_cast<std::size_t>(p.bytes(sizeof(double))) <= bytes;
  }
};
Limits default_limits(Backend backend);

// A problem of one of the forms within the limits. `plainness` from 0 to 2: at 1 shapes are equal,
// at 2 they are square powers of two besides, and windows are full.
Problem draw_problem(Rng& rng, const std::vector<Form>& forms, const Limits& limits, int plainness);

// Templates along one signal, within the limits; a window inside `valid`.
Problem draw_series(Rng& rng, const Limits& limits);

// Templates in frames that are larger on both axes, within the limits; a window inside `valid`.
Problem draw_templates(Rng& rng, const std::vector<Form>& forms, const Limits& limits);

// The left matrices of a problem against themselves: same=yes, in a window that is often symmetric.
// The problem itself where this one is beyond the limits.
Problem with_one_array(Rng& rng, const Problem& plain, const Limits& limits);

class Draws {
 public:
  // `precision`: only this one. UserError where none of the variants has it.
  Draws(std::uint64_t seed, std::vector<const Variant*> variants,
        std::optional<Precision> precision, Limits limits);

  // `supported` may throw; such a case is drawn, and shall fail when it runs. Nothing after many
  // draws that were all refused.
  using Supported = std::function<Support(const Case&)>;
  std::optional<Case> draw(std::uint64_t number, const Supported& supported);

  // Reason, its numbers replaced by N -> draws refused.
  const std::map<std::string, Index>& refused() const { return refused_; }
  void refuse(const Variant& variant, const std::string& reason);

 private:
  struct Choice {
    const Variant* variant;
    std::vector<Params> points;
    std::vector<Precision> precisions;
  };
  std::uint64_t seed_;
  Limits limits_;
  std::vector<Choice> choices_;
  std::map<std::string, Index> refused_;
};

}  // namespace xcorr::conformance
