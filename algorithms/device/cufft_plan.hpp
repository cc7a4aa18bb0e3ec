// Batched 2D real transforms of cuFFT whose work area is the harness's memory.
#pragma once

#include <cufft.h>
#include <cufftXt.h>

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "algorithms/device/fft_layout.hpp"

namespace xcorr {

inline void check_cufft(cufftResult status, const char* what) {
  if (status != CUFFT_SUCCESS) {
    throw std::runtime_error(std::string(what) + ": cuFFT error " + std::to_string(status));
  }
}

template <typename T>
struct CufftTypes;

template <>
struct CufftTypes<float> {
  using Complex = cufftComplex;
  static constexpr cufftType kForward = CUFFT_R2C, kInverse = CUFFT_C2R;
  static constexpr auto forward = cufftExecR2C;
  static constexpr auto inverse = cufftExecC2R;
};

template <>
struct CufftTypes<double> {
  using Complex = cufftDoubleComplex;
  static constexpr cufftType kForward = CUFFT_D2Z, kInverse = CUFFT_Z2D;
  static constexpr auto forward = cufftExecD2Z;
  static constexpr auto inverse = cufftExecZ2D;
};

template <typename T>
class CufftPlan {
  using Types = CufftTypes<T>;
  using Complex = typename Types::Complex;

 public:
  CufftPlan() {
    check_cufft(cufftCreate(&handle_), "cufftCreate");
    check_cufft(cufftSetAutoAllocation(handle_, 0), "cufftSetAutoAllocation");
  }
  ~CufftPlan() { cufftDestroy(handle_); }
  CufftPlan(const CufftPlan&) = delete;
  CufftPlan& operator=(const CufftPlan&) = delete;

  cufftHandle handle() const { return handle_; }

  // Plans `batch` transforms of the geometry's layout; returns the bytes of work area that they
  // need.
  std::size_t make(const FftGeometry& g, bool forward, Index batch) {
    const bool line = g.rows == 1;  // one row is a 1D transform
    const long long half = g.cols / 2 + 1;
    long long n[2] = {g.rows, g.cols}, real[2] = {g.rows, g.real_pitch},
              complex[2] = {g.rows, half};
    long long* const all[3] = {n + line, (forward ? real : complex) + line,
                               (forward ? complex : real) + line};
    const long long in = forward ? g.real_size : g.spectrum,
                    out = forward ? g.spectrum : g.real_size;
    const cufftType type = forward ? Types::kForward : Types::kInverse;
    std::size_t work = 0;
    // The 64-bit plan is a slower kernel in some versions: only where 32 bits do not do.
    if (std::max(g.real_size, 2 * g.spectrum) * batch <= std::numeric_limits<int>::max()) {
      int small[3][2];
      for (int i = 0; i < 3; ++i) {
        for (int axis = 0; axis < 2 - line; ++axis) small[i][axis] = static_cast<int>(all[i][axis]);
      }
      check_cufft(cufftMakePlanMany(handle_, 2 - line, small[0], small[1], 1, static_cast<int>(in),
                                    small[2], 1, static_cast<int>(out), type,
                                    static_cast<int>(batch), &work),
                  "cufftMakePlanMany");
    } else {
      check_cufft(cufftMakePlanMany64(handle_, 2 - line, all[0], all[1], 1, in, all[2], 1, out,
                                      type, batch, &work),
                  "cufftMakePlanMany64");
    }
    return work;
  }

  void use(void* work_area) {
    check_cufft(cufftSetWorkArea(handle_, work_area), "cufftSetWorkArea");
  }

  void forward(T* real, Complex* spectra, cudaStream_t stream) {
    set(stream);
    check_cufft(Types::forward(handle_, real, spectra), "forward transform");
  }

  void inverse(Complex* spectra, T* real, cudaStream_t stream) {
    set(stream);
    check_cufft(Types::inverse(handle_, spectra, real), "inverse transform");
  }

 private:
  void set(cudaStream_t stream) {
    if (stream_set_ && stream == stream_) return;
    check_cufft(cufftSetStream(handle_, stream), "cufftSetStream");
    stream_ = stream;
    stream_set_ = true;
  }

  cufftHandle handle_ = 0;
  cudaStream_t stream_ = nullptr;
  bool stream_set_ = false;
};

// Bytes of work area for a forward and an inverse plan that run one after the other. Makes both:
// cuFFT's estimates are too small for some sizes. The dearer half of a plan, about half a
// millisecond each.
template <typename T>
std::size_t cufft_work_bytes(const FftGeometry& g) {
  CufftPlan<T> forward, inverse;
  return std::max(forward.make(g, true, g.input_slots()), inverse.make(g, false, g.pair_slots));
}

}  // namespace xcorr
