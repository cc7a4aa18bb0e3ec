// The contract between a variant and the harness (docs/design.md, Variant contract).
//
// A variant is one translation unit. The stem of its file is its id, the first folder its family.
// The unit includes this page, headers of its family, algorithms/device/ and algorithms/blocks/. It
// includes no other header of the project, but for harness/compilation.hpp where it compiles kernels
// while it runs. It fills in struct Variant: supports, workspace_bytes, plan, and compute of the
// plan. The harness allocates, fills, uploads, times, downloads and checks.
// Example: algorithms/cpu/cpu_definition.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "harness/problem/problem.hpp"
#include "harness/problem/results.hpp"

namespace xcorr {

enum class Backend { cpu, cuda };
enum class Precision { fp64, fp32, tf32, three_tf32, bf16x3, fp16 };
// Decides which error bound holds (docs/design.md, Checks).
// definition: sums of products.
// definition_atomic: parts of a sum are added in global memory by atomic additions, which take a
// subnormal number for 0 (PTX ISA, atom and red).
// fft: transforms.
// fft_of_both: one batch transforms left and right matrices. A library may transform two real
// matrices as the two parts of one complex array, so the variant first scales both sides to similar
// norms. A small left matrix may get the rounding errors of the largest one.
enum class AlgorithmClass { definition, definition_atomic, fft, fft_of_both };

inline bool is_definition(AlgorithmClass algorithm_class) {
  return algorithm_class == AlgorithmClass::definition ||
         algorithm_class == AlgorithmClass::definition_atomic;
}

// One point of a variant's grid: parameter name -> exact value.
class Params {
 public:
  void set(std::string name, std::string value) { values_[std::move(name)] = std::move(value); }
  bool has(const std::string& name) const { return values_.count(name) != 0; }
  const std::string& get(const std::string& name) const { return values_.at(name); }
  int get_int(const std::string& name) const { return std::stoi(values_.at(name)); }
  const std::map<std::string, std::string>& values() const { return values_; }
  std::string canonical() const;  // "key=value;key=value", sorted by key
  // Written out: CUDA 12 takes a defaulted comparison for constexpr, and that of a map is not.
  bool operator==(const Params& other) const { return values_ == other.values_; }
  bool operator<(const Params& other) const { return values_ < other.values_; }

 private:
  std::map<std::string, std::string> values_;
};

// A parameter with its exact values. The build option grid=quick builds only the values of `quick`.
// A parameter of the paper's artifact has its name there: warps_per_block, rows_per_thread,
// distribution.
struct Axis {
  std::string name;
  std::vector<std::string> values;
  bool compile_time = false;
  std::vector<std::string> quick = {};  // empty: all values
};

// A value that makes another parameter meaningless: {"distribution", "none", "rows_per_thread"}.
struct Drop {
  std::string name, value, drops;
};

// Yes, or why not.
struct Support {
  std::string reason;  // empty means yes
  explicit operator bool() const { return reason.empty(); }
};
inline Support yes() { return {}; }
inline Support no(std::string reason) { return {std::move(reason)}; }

// Marks the phases of one compute. call.phase("forward") ends the previous phase and starts
// forward, hadamard, inverse, clear or build (writing a larger matrix of an input). Time before the
// first mark counts as "rest". A mark costs nothing unless the harness measures phases.
class PhaseMarks {
 public:
  virtual ~PhaseMarks() = default;
  virtual void mark(std::string_view name) = 0;
};

// Where the matrices of one side lie, in elements from the pointer of that side. The offsets are in
// memory of the variant's backend. Element (y, x) of matrix i lies at
//   windows:  offsets[i] + y * pitch + x
//   channels: offsets[i * rows + y] + x, with pitch 0
struct View {
  const Index* offsets = nullptr;  // null where the matrices are dense
  Index pitch = 0;
};

// The arguments of compute. Pointers are to memory of the variant's backend, in the scalar type of
// the precision class: left [lefts][rows][cols], right [rights][rows][cols], out
// [pairs][out_rows][out_cols]. Where the variant declares the result of the problem, out holds
// records (harness/problem/results.hpp). With `same` left and right are the same pointer.
struct Call {
  const void* left = nullptr;
  const void* right = nullptr;
  void* out = nullptr;
  void* stream = nullptr;  // cudaStream_t for backend cuda, unused for cpu
  PhaseMarks* marks = nullptr;
  // True where the caller knows all work that runs on the device during this call, and none of that
  // work waits for blocks that have not started yet. A kernel whose blocks wait for each other may
  // then be launched in a faster way (GridLaunches of algorithms/device/launch.hpp). A Session
  // cannot know what else runs and leaves it false.
  bool exclusive = false;
  // Field `masks`: a byte a pixel, 0 or 1, [lefts][rows][cols] and [rights][rows][cols]. Null for a
  // side without a mask.
  const std::uint8_t* left_mask = nullptr;
  const std::uint8_t* right_mask = nullptr;
  // Field `views`.
  View left_view = {};
  View right_view = {};

  template <typename T>
  const T* lefts() const {
    return static_cast<const T*>(left);
  }
  template <typename T>
  const T* rights() const {
    return static_cast<const T*>(right);
  }
  template <typename T>
  T* outs() const {
    return static_cast<T*>(out);
  }
  void phase(std::string_view name) const {
    if (marks) marks->mark(name);
  }
};

// What plan prepares: all that one call can leave for the next.
class Plan {
 public:
  virtual ~Plan() = default;
  // Computes every output of the problem. May be called any number of times. Clears, pads and
  // transposes what each call needs anew. A CUDA variant enqueues its work on call.stream and does
  // not wait for it.
  virtual void compute(const Call& call) = 0;
};

// What a plan may cost. once: the plan serves one call or an unknown number, and nothing is tried
// out. measured: many calls share the plan, which may time ways to compute for seconds. kept: as
// measured; the findings are kept on disk and used by later processes.
enum class Planning { once, measured, kept };

// The name of the CPU of this machine: "AMD EPYC 7763 64-Core Processor".
std::string cpu_model();

// The arguments of plan. The workspace has workspace_bytes bytes, is aligned to 256 bytes, and
// belongs to the plan until the plan is destroyed.
struct PlanRequest {
  Problem problem;
  Params params;
  Precision precision = Precision::fp32;
  void* workspace = nullptr;
  void* stream = nullptr;
  Planning planning = Planning::once;
};

struct Variant {
  std::string summary;  // one line for --list, README and report
  std::string parent;   // id of the variant that this one is derived from; empty for a root
  std::string source;   // paper or thesis section
  Backend backend = Backend::cpu;
  AlgorithmClass algorithm_class = AlgorithmClass::definition;
  std::vector<Precision> precisions = {Precision::fp32};
  std::vector<Form> forms = {Form::one_to_one, Form::one_to_many, Form::n_to_mn, Form::n_to_m};
  std::vector<Axis> axes = {};
  std::vector<Drop> drops = {};
  // What the variant computes beside the surface of products of dense matrices (docs/design.md,
  // Fields of a problem). `results` lists only what the variant writes itself: the harness reduces
  // surfaces to every other result (harness/reduce/reduce.hpp). Inputs are never written, so every
  // variant takes `same`.
  std::vector<Boundary> boundaries = {Boundary::zero};
  std::vector<ScoreKind> scores = {ScoreKind::product};
  bool masks = false;
  std::vector<ResultKind> results = {ResultKind::surface};
  std::vector<Views> views = {Views::dense};
  bool same_only = false;  // needs same=yes: left and right are one array
  // False for library calls and for kernels whose instructions the emulation lacks (docs/design.md,
  // Emulation).
  bool emulated = true;

  // Called only for the forms, precision classes and fields above.
  Support (*supports)(const PlanRequest&) = [](const PlanRequest&) { return yes(); };
  std::size_t (*workspace_bytes)(const PlanRequest&) = [](const PlanRequest&) -> std::size_t {
    return 0;
  };
  std::unique_ptr<Plan> (*plan)(const PlanRequest&) = nullptr;

  // Filled by XCORR_VARIANT from the file's path and content.
  std::string id = {}, family = {}, source_file = {}, source_hash = {};
};

// The .plan of a variant whose plan is P(request).
template <typename P>
std::unique_ptr<Plan> make_plan(const PlanRequest& request) {
  return std::make_unique<P>(request);
}

// Called once per translation unit, before main, in an unspecified order.
bool register_variant(Variant variant, const char* id, const char* family, const char* source_file,
                      const char* source_hash);

}  // namespace xcorr

// XCORR_COMPILE_IN_PARTS(4); in a file whose points take long to compile. The build then compiles
// the file four times in parallel, with XCORR_PART 0 to 3 and XCORR_PARTS 4. Each part instantiates
// its share of the points (algorithms/blocks/points.hpp). A file without this line, and every file
// under the emulation, is compiled once, as part 0 of 1.
#ifndef XCORR_PARTS
#define XCORR_PART 0
#define XCORR_PARTS 1
#endif
#define XCORR_COMPILE_IN_PARTS(count) static_assert(XCORR_PARTS == 1 || XCORR_PARTS == (count))

// XCORR_NEEDS_TARGET(sm_90a); in a file whose instructions need that target, such as warpgroup
// products. The build compiles the file for it in place of sm_90.
#define XCORR_NEEDS_TARGET(target) static_assert(true)

// XCORR_VARIANT({.summary = "...", .plan = ...}); once in a file. The build defines XCORR_ID,
// XCORR_FAMILY, XCORR_SOURCE_FILE and XCORR_SOURCE_HASH. A file compiled in parts registers in part
// 0 only.
#define XCORR_VARIANT(...)                                                            \
  static const bool xcorr_registered =                                                \
      XCORR_PART != 0 ||                                                              \
      ::xcorr::register_variant(::xcorr::Variant __VA_ARGS__, XCORR_ID, XCORR_FAMILY, \
                                XCORR_SOURCE_FILE, XCORR_SOURCE_HASH)
