// Is this output right? Every element against float64 truth, by two witnesses (DESIGN section 4).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "harness/bounds.hpp"
#include "harness/inputs.hpp"
#include "harness/reference.hpp"
#include "harness/variant.hpp"

namespace xcorr {

// What the comparison of one output with the truth of one kind of input saw.
struct Check {
  double error = 0;           // at the element that came nearest to its bound, or passed it most
  double bound = 0;           // allowed there
  double rel_l2_error = 0;    // ||out - ref|| / ||ref|| of the pair that came nearest to its bound
  double rel_l2_bound = 0;    // allowed there; 0 where no pair has a bound
  bool argmax_agrees = true;  // for every pair
  std::int64_t wrong = 0;     // elements beyond their bound, NaN included
  std::int64_t wrong_pairs = 0;  // pairs whose relative L2 error is beyond its bound
  std::string first_wrong;       // where the first of them is, what was found and expected
  bool passed() const { return wrong == 0 && wrong_pairs == 0; }
};

// float64 truth of one problem, for memory of one device. `left`, `right` and `out` are pointers to
// that device's memory, in the scalar type of the precision class.
class Truth {
 public:
  virtual ~Truth() = default;
  // Sparse inputs come in so many rounds (sparse_rounds); the calls that follow mean this one.
  virtual void set_round(Index round) = 0;
  // Inputs of a kind: left_elements() and right_elements() scalars.
  virtual void fill(InputKind kind, void* left, void* right) = 0;
  // "" or what differs between these inputs and those that `fill` gave.
  virtual std::string changed_inputs(InputKind kind, const void* left, const void* right) = 0;
  // Compares out[pairs][out_rows][out_cols] with the truth.
  virtual Check check(InputKind kind, const void* out) = 0;
};

// Amplitude of the integer inputs: exact sums for a definition-based variant, and for a transform
// small enough to bring its bound below the half that it must round at, where that is possible.
Index witness_amplitude(const Problem& problem, Precision precision,
                        AlgorithmClass algorithm_class);

Bounds make_bounds(const Problem& problem, Precision precision, InputKind kind,
                   AlgorithmClass algorithm_class, Index amplitude, bool reference_by_fft,
                   const std::vector<double>& left_norms, const std::vector<double>& right_norms);

// Whether (|L| correlated with |R|) is needed, and is not the absolute value of the truth itself.
bool needs_absolute(InputKind kind, bool definition);

// Adds the third check of one pair, from its sums of squares: of out - ref, of ref, and of (|L|
// correlated with |R|). `pair` is its index; `first` says that no earlier pair was wrong.
struct PairSums {
  double difference2 = 0, reference2 = 0, absolute2 = 0;
};
void check_pair(Check& check, double& worst_ratio, const Bounds& bounds, Index pair,
                const PairSums& sums, double left_norm, double right_norm);

// Elements of a large problem that are checked by the definition as well, so that a transform is
// never the only witness for a transform: corners, edges, centre, shift zero, random.
constexpr Index kSampledElements = 96;
struct SampledElement {
  Index pair, row, col;
};
SampledElement sampled_element(const Problem& problem, std::uint64_t seed, Index i);

// On the host. References are kept while they fit in `keep_bytes`, else made again for every chunk
// of pairs.
class HostTruth : public Truth {
 public:
  HostTruth(const Problem& problem, Precision precision, AlgorithmClass algorithm_class,
            std::uint64_t seed, std::size_t keep_bytes);
  ~HostTruth() override;

  void set_round(Index round) override;
  void fill(InputKind kind, void* left, void* right) override;
  std::string changed_inputs(InputKind kind, const void* left, const void* right) override;
  Check check(InputKind kind, const void* out) override;

  // Host bytes that checking needs beyond the variant's own buffers.
  static std::size_t host_bytes(const Problem& problem, std::size_t keep_bytes);

 private:
  struct Kept;
  Inputs inputs(InputKind kind, Side side) const;
  Kept& kept(InputKind kind);
  template <typename T>
  Check compare(InputKind kind, const T* out);

  Problem problem_;
  Precision precision_;
  AlgorithmClass algorithm_class_;
  bool definition_;
  std::uint64_t seed_;
  std::size_t keep_bytes_;
  Index amplitude_;
  Index round_ = 0;
  std::map<InputKind, std::unique_ptr<Kept>> kept_;
};

// Peaks that no real measurement can pass; 0 switches a side of the guard off. Problems that stay
// in the last-level cache (cache_bytes) from one call to the next are held to its rate.
struct Peaks {
  double fmas_per_s = 0;
  double bytes_per_s = 0;
  double cache_bytes = 0;
  double cache_bytes_per_s = 0;
};

// "" or why a time this short is impossible on this device.
std::string roofline_guard(const Problem& problem, Precision precision,
                           AlgorithmClass algorithm_class, double seconds, const Peaks& peaks);

// "3 of 12 outputs are wrong; pair 0 ..." or "1 of 4 pairs differ too much; ...".
std::string describe_failure(const Problem& problem, const Check& check);

// "pair 3 (left 0, right 3) at sy=-2 sx=5 is 1.5, expected 2 +- 0.1": how a wrong element is named.
std::string describe_element(const Problem& problem, Index pair, Index element, double got,
                             double want, double bound);

}  // namespace xcorr
