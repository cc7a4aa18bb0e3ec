// FFTW, of which one half is for float and one for double, and the lock of its planner.
#pragma once

#include <fftw3.h>

#include <mutex>
#include <type_traits>

namespace xcorr::device {

// The float or the double half of FFTW.
template <typename T, typename Single, typename Double>
constexpr auto pick(Single single, Double twice) {
  if constexpr (std::is_same_v<T, float>)
    return single;
  else
    return twice;
}

template <typename T>
struct Fftw {
  using Handle = decltype(pick<T>(fftwf_plan(), fftw_plan()));
  using Complex = decltype(pick<T>((fftwf_complex*)nullptr, (fftw_complex*)nullptr));
  static constexpr auto forget = pick<T>(fftwf_forget_wisdom, fftw_forget_wisdom);
  static constexpr auto limit_time = pick<T>(fftwf_set_timelimit, fftw_set_timelimit);
  static constexpr auto destroy = pick<T>(fftwf_destroy_plan, fftw_destroy_plan);
  static constexpr auto plan_r2c = pick<T>(fftwf_plan_dft_r2c_1d, fftw_plan_dft_r2c_1d);
  static constexpr auto plan_c2r = pick<T>(fftwf_plan_dft_c2r_1d, fftw_plan_dft_c2r_1d);
  static constexpr auto plan_many = pick<T>(fftwf_plan_many_dft, fftw_plan_many_dft);
  static constexpr auto r2c = pick<T>(fftwf_execute_dft_r2c, fftw_execute_dft_r2c);
  static constexpr auto c2r = pick<T>(fftwf_execute_dft_c2r, fftw_execute_dft_c2r);
  static constexpr auto dft = pick<T>(fftwf_execute_dft, fftw_execute_dft);
};

// The planner is not thread-safe; executing is.
inline std::mutex fftw_planner;

// Seconds that the planner may time ways to compute one transform; it then takes the best so far.
constexpr double kLongestPlanning = 5;

// Holds the planner while the plans of a variant are made, without what earlier plans have left, so
// that a plan does not depend on them. `flags` are those of its transforms.
template <typename T>
class Planner {
 public:
  explicit Planner(bool measures)
      : lock_(fftw_planner), flags(measures ? FFTW_MEASURE : FFTW_ESTIMATE) {
    Fftw<T>::forget();
    Fftw<T>::limit_time(measures ? kLongestPlanning : FFTW_NO_TIMELIMIT);
  }
  ~Planner() { Fftw<T>::limit_time(FFTW_NO_TIMELIMIT); }
  Planner(const Planner&) = delete;
  Planner& operator=(const Planner&) = delete;

 private:
  std::lock_guard<std::mutex> lock_;

 public:
  const unsigned flags;
};

}  // namespace xcorr::device
