// When a point has samples enough: by their noise, or by the time they took.
#pragma once

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "harness/device/device.hpp"

namespace xcorr {

class Stopping {
 public:
  // At least `least` samples, and two, are enough once their standard deviation is at most the share
  // `noise` of their mean, or they have taken `longest`. With a noise of 0 Google Benchmark counts.
  Stopping(Index least, double noise, Seconds longest)
      : least_(std::max<Index>(least, 2)), noise_(noise), longest_(longest) {}

  // A sample: its number of calls, the time of a call, and how long the sample took. Google Benchmark
  // looks for the number of calls first, in trials. So only samples with the same number count, and
  // two of them show that the trials are over.
  void add(Index calls, double time_of_call, Seconds spent) {
    if (calls != calls_) times_.clear(), spent_ = 0;
    calls_ = calls;
    times_.push_back(time_of_call);
    spent_ += spent;
  }

  bool enough() const {
    return noise_ > 0 && static_cast<Index>(times_.size()) >= least_ &&
           (quiet() || spent_ >= longest_);
  }
  // The condition that ended the samples, as a row names it.
  std::string_view reason() const {
    return noise_ <= 0 ? "repetitions" : enough() && quiet() ? "noise" : "time";
  }
  Index calls() const { return calls_; }  // of each sample that counts

 private:
  bool quiet() const {
    const auto count = static_cast<double>(times_.size());
    double mean = 0, squares = 0;
    for (const double time : times_) mean += time / count;
    for (const double time : times_) squares += (time - mean) * (time - mean);
    return std::sqrt(squares / (count - 1)) <= noise_ * mean;
  }

  Index least_;
  double noise_;
  Seconds longest_;
  Index calls_ = 0;
  std::vector<double> times_;
  Seconds spent_ = 0;
};

}  // namespace xcorr
