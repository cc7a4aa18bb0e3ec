// Many random cases, or properties of random cases: run, told, shrunk where they fail.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/conformance/random.hpp"

namespace xcorr::conformance {

struct RandomRun {
  Index cases = 0;
  std::uint64_t seed = 0;
  std::pair<Index, Index> part{1, 1};  // the cases whose number is k - 1 modulo n
  bool properties = false;             // instead of the truth
  std::vector<const Variant*> variants;
  std::optional<Precision> precision;
  Limits limits;
  std::string program, device_name;  // for the commands
  std::string record;                // a file of facts, JSON; empty: none
};

// Exit code: 1 where a case failed or none ran.
int run_random(const RandomRun& run, Device& device);

}  // namespace xcorr::conformance
