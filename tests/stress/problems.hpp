// What the stress test computes: problems of every form, with two sets of inputs each and their
// float64 truth, made once and read by all threads.
#pragma once

#include <string>
#include <vector>

#include "tests/stress/api.hpp"

namespace xcorr::stress {

struct Data {
  std::vector<float> left, right;
  std::vector<double> truth;
};

class TestProblem {
 public:
  // `request` says form, shapes, counts and window, as the C API has them.
  TestProblem(nlohmann::json request, std::uint64_t seed);

  const nlohmann::json& request() const { return request_; }
  const std::string& name() const { return name_; }
  // Two sets, so that an output of the call before is a wrong one.
  const Data& data(int turn) const { return data_[turn % 2]; }
  std::size_t out_elements() const { return data_[0].truth.size(); }
  // "" or which value of `out` is wrong. Not an accuracy test: what a race or a stale buffer leaves
  // is wrong by far more than rounding.
  std::string wrong(int turn, const std::vector<float>& out, bool by_transform) const;

 private:
  nlohmann::json request_;
  std::string name_;
  std::size_t out_rows_ = 0, out_cols_ = 0, pairs_ = 0;
  double overlap_ = 0;
  Data data_[2];
};

// For a card, or few and small ones for a CPU.
std::vector<nlohmann::json> requests(bool small);

}  // namespace xcorr::stress
