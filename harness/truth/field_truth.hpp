#pragma once

#include <map>
#include <memory>

#include "harness/device/device.hpp"
#include "harness/truth/score_reference.hpp"
#include "harness/verdict/verdict.hpp"

namespace xcorr {

// Truth of the surface of a problem with fields: any boundary, score, masks and views. Inputs are
// made on the host. Outputs are copied to the host in chunks of pairs and compared there. Masks and
// views are those of harness/measure/operands.hpp.
class FieldTruth : public SeededTruth {
 public:
  // `device` must outlive it.
  FieldTruth(const Problem& problem, Precision precision, AlgorithmClass algorithm_class,
             std::uint64_t seed, Device& device, std::size_t cache_bytes);
  ~FieldTruth() override;

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
  void compare_pair(const KindTruth& truth, Index p, const Expected* expected, double phase,
                    const double* out, Tally& tally) const;
  void compare_sample(const KindTruth& truth, const void* out, Check& check) const;
  // `count` outputs, from the output with index `first` of all pairs on.
  std::vector<double> outputs(const void* out, Index first, Index count) const;

  Device& device_;
  std::size_t cache_bytes_;
  std::map<InputKind, std::unique_ptr<KindTruth>> cached_;
};

// The matrices of a kind of input as dense float64 stacks, their masks and facts.
ScoreInputs score_inputs(const Problem& problem, InputKind kind, std::uint64_t seed,
                         Index amplitude, Index round);

}  // namespace xcorr
