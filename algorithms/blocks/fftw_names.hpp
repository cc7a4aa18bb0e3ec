// FFTW's names: one set for float and one for double.
#pragma once

#include <fftw3.h>

#include <type_traits>

namespace xcorr::device {

// Selects the name for float or for double.
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
  static constexpr const char* version = pick<T>(fftwf_version, fftw_version);
  static constexpr auto forget = pick<T>(fftwf_forget_wisdom, fftw_forget_wisdom);
  static constexpr auto import =
      pick<T>(fftwf_import_wisdom_from_string, fftw_import_wisdom_from_string);
  static constexpr auto export_all =
      pick<T>(fftwf_export_wisdom_to_string, fftw_export_wisdom_to_string);
  static constexpr auto limit_time = pick<T>(fftwf_set_timelimit, fftw_set_timelimit);
  static constexpr auto destroy = pick<T>(fftwf_destroy_plan, fftw_destroy_plan);
  static constexpr auto plan_r2c = pick<T>(fftwf_plan_dft_r2c_1d, fftw_plan_dft_r2c_1d);
  static constexpr auto plan_c2r = pick<T>(fftwf_plan_dft_c2r_1d, fftw_plan_dft_c2r_1d);
  static constexpr auto plan_many = pick<T>(fftwf_plan_many_dft, fftw_plan_many_dft);
  static constexpr auto r2c = pick<T>(fftwf_execute_dft_r2c, fftw_execute_dft_r2c);
  static constexpr auto c2r = pick<T>(fftwf_execute_dft_c2r, fftw_execute_dft_c2r);
  static constexpr auto dft = pick<T>(fftwf_execute_dft, fftw_execute_dft);
};

}  // namespace xcorr::device
