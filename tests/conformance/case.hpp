// One case: a variant at a point of its grid, a problem, inputs. It is run once, shrunk, and told as a command.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "harness/device/device.hpp"
#include "harness/registry.hpp"

namespace xcorr::conformance {

struct Case {
  const Variant* variant = nullptr;
  Params params;
  Precision precision = Precision::fp32;
  Problem problem;
  std::vector<InputKind> inputs;  // one after the other
  std::uint64_t seed = 0;         // of the inputs
};

struct Outcome {
  enum Kind { passed, failed, refused } kind = passed;
  std::string what;  // what is wrong, or why the case cannot run here
};

// Thrown where a case cannot run here.
struct Refused {
  std::string why;
};

// The outcome of steps that return a fault, "" if there is none. Never throws.
Outcome judged(const std::function<std::string()>& steps);

// Device::runs of the case. Throws what the variant throws.
Support supported(const Case& c, Device& device);

// Plans once and computes: each input against the truth, a second call, calls with two inputs and
// outputs in turn. The memory beside every buffer and the inputs are looked at. `truth` is that of
// the case where the caller keeps one. Never throws.
Outcome run(const Case& c, Device& device, std::shared_ptr<Truth> truth = nullptr);

// The smallest case near a failing one for which `fails` is true too: halves counts, sides and windows and takes simpler
// inputs. At most `attempts` cases are tried.
Case shrink(Case failing, const std::function<bool(const Case&)>& fails, int attempts = 300);

// "tiled_direct (rows=4) fp32 n-to-m/3x4/5x6/2:3/full uniform seed 7"
std::string name_of(const Case& c);

// The shell command that repeats the case.
std::string command_of(const Case& c, const std::string& program, const std::string& device_name);

}  // namespace xcorr::conformance
