// Whether an output is right: every element is compared with float64 truth (docs/design.md,
// Checks).
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "harness/problem/inputs.hpp"
#include "harness/truth/reference.hpp"
#include "harness/variant.hpp"
#include "harness/verdict/bounds.hpp"

namespace xcorr {

// The comparison of one output with the truth for one kind of input.
struct Check {
  double error = 0;         // of the element whose error is largest relative to its bound
  double bound = 0;         // of the same element
  double rel_l2_error = 0;  // ||out - ref|| / ||ref|| of the pair where it is largest to its bound
  double rel_l2_bound = 0;  // of the same pair; 0 where no pair has a bound
  bool argmax_agrees = true;  // for every pair
  // Time series: the largest error of an output divided by the norms of the template and of the
  // stretch of the signal that the output reads. Negative for other problems.
  double normalised_error = -1;
  std::int64_t wrong = 0;        // elements beyond their bound, NaN included
  std::int64_t wrong_pairs = 0;  // pairs whose relative L2 error is beyond its bound
  std::string first_wrong;       // position of the first wrong one, its value and the right one
  bool passed() const { return wrong == 0 && wrong_pairs == 0; }
};

// The float64 surface of consecutive pairs, and how far a right output may be from each value.
struct Reference {
  std::vector<double> value, bound;  // [pairs][out_rows][out_cols]
};

// float64 truth of one problem. `left`, `right` and `out` point to memory of one device, in the
// scalar type of the precision class.
class Truth {
 public:
  virtual ~Truth() = default;
  // Chooses the round of sparse inputs (sparse_rounds) of all later calls.
  virtual void set_round(Index round) = 0;
  // Writes inputs of a kind: as many scalars as the arrays of view_layout have
  // (harness/problem/views.hpp).
  virtual void fill(InputKind kind, void* left, void* right) = 0;
  // "" where the inputs are those that `fill` wrote, else which side differs.
  virtual std::string changed_inputs(InputKind kind, const void* left, const void* right) = 0;
  // Compares what compute wrote: out[pairs][out_rows][out_cols], or records.
  virtual Check check(InputKind kind, const void* out) = 0;
  // The surface of the pairs [first, first + count). `into` keeps its memory, which takes long to
  // get: many large surfaces go through one Reference.
  virtual void surface(InputKind kind, Index first, Index count, Reference& into) = 0;
  Reference reference(InputKind kind, Index first, Index count) {
    Reference made;
    surface(kind, first, count, made);
    return made;
  }
};

// The amplitude of integer inputs in the exact check. For sums of products every sum is exact, and
// every integer is one number of the precision class. For transforms the amplitude is reduced until
// the bound is below 0.5 where possible, so that a rounded output is exact.
Index exact_amplitude(const Problem& problem, Precision precision, AlgorithmClass algorithm_class);

// `segment_norms`: of the right matrices of a time series (segment_norm); empty for other problems.
Bounds make_bounds(const Problem& problem, Precision precision, InputKind kind,
                   AlgorithmClass algorithm_class, Index amplitude, bool reference_by_fft,
                   const std::vector<double>& left_norms, const std::vector<double>& right_norms,
                   const std::vector<double>& segment_norms = {});

// What the second reference, which the bounds need, correlates. values: none, the absolute truth
// serves. sizes: |L| and |R|. squares: their squares.
enum class Weights { values, sizes, squares };
Weights weights_of(const Problem& problem, Precision precision, InputKind kind, bool definition);

// The host computes the reference of a time series by the definition up to this many products,
// about ten seconds of a core.
constexpr Index kSeriesFmas = Index{1} << 36;

// The problem of a template of ones: its outputs are the sums of the elements that the outputs of a
// right matrix read. Correlated with squares it gives squared norms.
Problem window_sums(const Problem& series);

// The error of an output divided by the norms; `window2` is the squared norm of the stretch that it
// reads. 0 where that is below 1e-9 of the largest one, which is rounding.
XCORR_HD inline double normalised_error(double error, double left_norm, double window2,
                                        double largest_window) {
  const double window = sqrt(fmax(window2, 0.0));
  return window > 1e-9 * largest_window && left_norm > 0 ? error / (left_norm * window) : 0.0;
}

// Sums over the outputs of one pair: squares of out - ref and of ref, and Bounds::squared of the
// second reference.
struct PairSums {
  double difference2 = 0, reference2 = 0, absolute2 = 0;
};
// Adds the relative L2 error of pair `pair` to `check`.
void check_pair(Check& check, double& worst_ratio, const Bounds& bounds, Index pair,
                const PairSums& sums, double left_norm, double right_norm);
// The same from ||out - ref||, ||ref|| and the bound of the former; 1e300 means no bound.
void check_l2(Check& check, double& worst_ratio, const Problem& problem, Index pair,
              double difference, double reference, double bound);

// The findings about one or more pairs: the errors that are largest relative to their bounds, and
// the first wrong element of the first wrong pair.
struct Tally {
  Check check;
  double worst_ratio = -1, worst_l2_ratio = -1;
  Index first_wrong_pair = std::numeric_limits<Index>::max();

  void add(const Tally& other);
  // Notes the error of one number and its bound, where it is the largest relative to its bound so far.
  void note(double error, double bound, bool right);
  // Counts a wrong record, however much of it is wrong.
  void wrong(const std::string& what) {
    if (check.wrong++ == 0) check.first_wrong = what;
  }
};

// Counts a wrong element; the first one is described.
void count_wrong(Check& check, const Problem& problem, Index pair, Index element, double got,
                 double want, double bound);

// Elements of a large problem that are also compared with the definition, so that a transform is
// never the only reference for a transform: corners, edges, the centre, shift zero, random
// positions.
constexpr Index kSampledElements = 96;
struct SampledElement {
  Index pair, row, col;
};
SampledElement sampled_element(const Problem& problem, std::uint64_t seed, Index i);

// What the truths of all devices hold: the point that is judged, and its seeded inputs.
class SeededTruth : public Truth {
 public:
  SeededTruth(const Problem& problem, Precision precision, AlgorithmClass algorithm_class,
              std::uint64_t seed);
  void set_round(Index round) override;

 protected:
  // Drops what is cached of a kind of input.
  virtual void forget(InputKind kind) = 0;
  Inputs inputs(InputKind kind, Side side) const;
  // Writes one side in the scalar type to host memory, as many elements as view_layout says.
  void fill_side(InputKind kind, Side side, void* scalars) const;
  std::vector<char> scalars(InputKind kind, Side side) const;
  Weights weights_of(InputKind kind) const;
  Bounds bounds_of(InputKind kind, bool reference_by_fft, const std::vector<double>& left_norms,
                   const std::vector<double>& right_norms,
                   const std::vector<double>& segment_norms = {}) const;

  Problem problem_;
  Precision precision_;
  AlgorithmClass algorithm_class_;
  std::uint64_t seed_;
  Index amplitude_;
  Index round_ = 0;
};

// Truth on the host. References that fit in `cache_bytes` are computed once, others again for every
// chunk of pairs.
class HostTruth : public SeededTruth {
 public:
  HostTruth(const Problem& problem, Precision precision, AlgorithmClass algorithm_class,
            std::uint64_t seed, std::size_t cache_bytes);
  ~HostTruth() override;

  void fill(InputKind kind, void* left, void* right) override;
  std::string changed_inputs(InputKind kind, const void* left, const void* right) override;
  Check check(InputKind kind, const void* out) override;
  void surface(InputKind kind, Index first, Index count, Reference& into) override;

  // Host bytes that checking needs beside the buffers of the variant.
  static std::size_t host_bytes(const Problem& problem, std::size_t cache_bytes);

 private:
  struct KindTruth;
  void forget(InputKind kind) override;
  KindTruth& truth_of(InputKind kind);
  template <typename T>
  Check compare(InputKind kind, const T* out);

  std::size_t cache_bytes_;
  std::map<InputKind, std::unique_ptr<KindTruth>> cached_;
};

// Rates that no measurement can exceed; 0 switches a part of the guard off. A problem of at most
// cache_bytes stays in the last-level cache between calls, where the rate of the cache counts.
struct Peaks {
  double fmas_per_s = 0;
  double bytes_per_s = 0;
  double cache_bytes = 0;
  double cache_bytes_per_s = 0;
};

// "", or why the time is impossible on this device.
std::string roofline_guard(const Problem& problem, Precision precision,
                           AlgorithmClass algorithm_class, double seconds, const Peaks& peaks);

// "3 of 12 outputs are wrong; pair 0 ..." or "1 of 4 pairs exceed the bound of the relative L2
// error; ...".
std::string describe_failure(const Problem& problem, const Check& check);

// How a fault of a call begins: "integer input after the timed loop: ".
std::string input_text(InputKind kind, const std::string& when);

// The verdict on a call: outputs against the truth, then inputs against what they were.
struct CheckedCall {
  Check check;
  std::string fault;  // "integer input: 3 of 12 outputs are wrong; ...", "" if nothing is
};
// Comes after inputs of `kind` were filled in and outputs poisoned and computed. `when`: " after
// the timed loop".
CheckedCall checked_call(Truth& truth, const Problem& problem, InputKind kind, const Call& call,
                         const std::string& when = "");

// "pair 3 (left 0, right 3)", "pair 3 (left 0, right 3) at sy=-2 sx=5", and of a wrong element
// "pair 3 (left 0, right 3) at sy=-2 sx=5 is 1.5, expected 2 +- 0.1".
std::string pair_text(const Problem& problem, Index pair);
std::string element_text(const Problem& problem, Index pair, Index element);
std::string describe_element(const Problem& problem, Index pair, Index element, double got,
                             double want, double bound);

}  // namespace xcorr
