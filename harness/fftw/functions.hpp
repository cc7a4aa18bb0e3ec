// One set of functions that compute transforms, with the names and meanings of FFTW 3. There are
// two sets for each scalar type: of FFTW where it is installed, and of pocketfft.
#pragma once

#include <fftw3.h>

namespace xcorr::transforms {

template <typename T>
struct Functions;

#define XCORR_FFTW(result, name, parameters, arguments) result(*name) parameters;

template <>
struct Functions<double> {
#define PLAN fftw_plan
#define REAL double
#define COMPLEX fftw_complex
#include "harness/fftw/functions.inc"
#undef COMPLEX
#undef REAL
#undef PLAN
};

template <>
struct Functions<float> {
#define PLAN fftwf_plan
#define REAL float
#define COMPLEX fftwf_complex
#include "harness/fftw/functions.inc"
#undef COMPLEX
#undef REAL
#undef PLAN
};

#undef XCORR_FFTW

// Those of pocketfft, which is compiled into the library.
template <typename T>
Functions<T> pocketfft_functions();

}  // namespace xcorr::transforms
