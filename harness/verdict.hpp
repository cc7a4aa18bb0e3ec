// Is this output right? Every element against float64 truth, by two witnesses (DESIGN section 4).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "harness/inputs.hpp"
#include "harness/reference.hpp"
#include "harness/variant.hpp"

namespace xcorr {

// What the comparison of one output with the truth of one kind of input saw.
struct Check {
  double error = 0;          // at the element that came nearest to its bound, or passed it most
  double bound = 0;          // allowed there
  double rel_l2_error = 0;   // ||out - ref|| / ||ref||
  bool argmax_agrees = true;  // for every pair
  std::int64_t wrong = 0;    // elements beyond their bound, NaN included
  std::string first_wrong;   // where the first of them is, what was found and expected
  bool passed() const { return wrong == 0; }
};

// float64 truth of one problem on the host. References are kept while they fit in `keep_bytes`, else
// made again for every chunk of pairs.
class Truth {
 public:
  Truth(const Problem& problem, Precision precision, AlgorithmClass algorithm_class,
        std::uint64_t seed, std::size_t keep_bytes);
  ~Truth();

  // Inputs of a kind in the scalar type of the precision class; the pointers hold
  // left_elements() / right_elements() scalars.
  void fill(InputKind kind, void* left, void* right) const;
  // "" or what differs between these inputs and those that `fill` gave.
  std::string changed_inputs(InputKind kind, const void* left, const void* right) const;

  // Compares out[pairs][out_rows][out_cols] with the truth.
  Check check(InputKind kind, const void* out);

  // Host bytes that checking needs beyond the variant's own buffers.
  static std::size_t host_bytes(const Problem& problem, std::size_t keep_bytes);

 private:
  struct Kept;
  struct Rule;
  Kept& kept(InputKind kind);
  template <typename T>
  Check compare(InputKind kind, const T* out);

  Problem problem_;
  Precision precision_;
  bool definition_;
  std::uint64_t seed_;
  std::size_t keep_bytes_;
  Index amplitude_;
  std::map<InputKind, std::unique_ptr<Kept>> kept_;
};

// Peaks that no real measurement can pass; 0 switches a side of the guard off.
struct Peaks {
  double fmas_per_s = 0;
  double bytes_per_s = 0;
};

// "" or why a time this short is impossible on this device.
std::string roofline_guard(const Problem& problem, Precision precision, AlgorithmClass algorithm_class,
                           double seconds, const Peaks& peaks);

}  // namespace xcorr
