// Batched transforms of cuFFT with a work area from the harness.
#pragma once

#include <cufft.h>
#include <cufftXt.h>

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>

#include "algorithms/device/launch.hpp"
#include "algorithms/fft/geometry.hpp"

namespace xcorr::fft {

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
  static constexpr cufftType kForward = CUFFT_R2C, kInverse = CUFFT_C2R, kComplex = CUFFT_C2C;
  static constexpr auto forward = cufftExecR2C;
  static constexpr auto inverse = cufftExecC2R;
  static constexpr auto complex = cufftExecC2C;
};

template <>
struct CufftTypes<double> {
  using Complex = cufftDoubleComplex;
  static constexpr cufftType kForward = CUFFT_D2Z, kInverse = CUFFT_Z2D, kComplex = CUFFT_Z2Z;
  static constexpr auto forward = cufftExecD2Z;
  static constexpr auto inverse = cufftExecZ2D;
  static constexpr auto complex = cufftExecZ2Z;
};

// The layout of a batch in memory: stored length of each axis, distance between elements, distance
// between transforms.
struct CufftLayout {
  long long embed[2];
  Index stride, next;
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

  // Plans `batch` transforms of n[0] x n[1] elements, or of n[1] if `rank` is 1. Returns the bytes
  // of the work area.
  std::size_t make(cufftType type, int rank, const long long (&n)[2], const CufftLayout& in,
                   const CufftLayout& out, Index batch) {
    const int skip = 2 - rank;
    std::size_t work = 0;
    const auto end = [&](const CufftLayout& at) {
      return (batch - 1) * at.next + at.stride * (rank == 1 ? n[1] : at.embed[0] * at.embed[1]);
    };
    // 64-bit plans have slower kernels in some versions: used only where 32 bits are not enough.
    if (2 * std::max(end(in), end(out)) <= std::numeric_limits<int>::max()) {
      int small[3][2];
      for (int axis = 0; axis < 2; ++axis) {
        small[0][axis] = static_cast<int>(n[axis]);
        small[1][axis] = static_cast<int>(in.embed[axis]);
        small[2][axis] = static_cast<int>(out.embed[axis]);
      }
      check_cufft(cufftMakePlanMany(
                      handle_, rank, small[0] + skip, small[1] + skip, static_cast<int>(in.stride),
                      static_cast<int>(in.next), small[2] + skip, static_cast<int>(out.stride),
                      static_cast<int>(out.next), type, static_cast<int>(batch), &work),
                  "cufftMakePlanMany");
    } else {
      long long all[3][2] = {
          {n[0], n[1]}, {in.embed[0], in.embed[1]}, {out.embed[0], out.embed[1]}};
      check_cufft(
          cufftMakePlanMany64(handle_, rank, all[0] + skip, all[1] + skip, in.stride, in.next,
                              all[2] + skip, out.stride, out.next, type, batch, &work),
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
  // Complex to complex; direction is CUFFT_FORWARD or CUFFT_INVERSE.
  void complex(Complex* from, Complex* to, int direction, cudaStream_t stream) {
    set(stream);
    check_cufft(Types::complex(handle_, from, to, direction), "complex transform");
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

// The transforms of a geometry: all inputs of a chunk to spectra, all products to images.
template <typename T>
class CufftTransforms {
  using Types = CufftTypes<T>;
  using Complex = typename Types::Complex;

 public:
  explicit CufftTransforms(const FftGeometry& g) : by_rows_(g.by_rows), complex_(g.complex) {}

  CufftPlan<T>& first() { return first_; }
  CufftPlan<T>& last() { return last_; }

  // Plans, and returns the bytes of the work area, which the transforms share one after the other.
  std::size_t make(const FftGeometry& g) {
    const Index slots = g.input_slots();
    if (by_rows_) {
      const CufftLayout line{{1, g.pitch}, 1, g.pitch};
      const auto columns = [&](Index count) {
        return CufftLayout{{1, g.rows}, count * g.pitch, 1};
      };
      const long long row[2] = {1, g.cols}, column[2] = {1, g.rows};
      return std::max({first_.make(Types::kComplex, 1, row, line, line, g.padded_rows * slots),
                       columns_.make(Types::kComplex, 1, column, columns(slots), columns(slots),
                                     slots * g.pitch),
                       product_columns_.make(Types::kComplex, 1, column, columns(g.pair_slots),
                                             columns(g.pair_slots), g.pair_slots * g.pitch),
                       last_.make(Types::kComplex, 1, row, line, line, g.rows * g.pair_slots)});
    }
    const int rank = g.rows == 1 ? 1 : 2;  // one row is a 1D transform
    const long long n[2] = {g.rows, g.cols};
    const CufftLayout spectra{{g.rows, g.pitch}, 1, g.spectrum};
    if (complex_) {
      return std::max(first_.make(Types::kComplex, rank, n, spectra, spectra, slots),
                      last_.make(Types::kComplex, rank, n, spectra, spectra, g.pair_slots));
    }
    return std::max(
        first_.make(Types::kForward, rank, n, {{g.rows, g.in.row}, 1, g.in.slot}, spectra, slots),
        last_.make(Types::kInverse, rank, n, spectra, {{g.rows, g.out.row}, 1, g.out.slot},
                   g.pair_slots));
  }

  void use(void* work_area) {
    for (CufftPlan<T>* plan : {&first_, &last_}) plan->use(work_area);
    if (by_rows_) {
      for (CufftPlan<T>* plan : {&columns_, &product_columns_}) plan->use(work_area);
    }
  }

  // Transforms padded inputs to their spectra. By rows, `images` contains transformed rows
  // afterwards.
  void forward(T* images, Complex* spectra, cudaStream_t stream) {
    auto* complex = reinterpret_cast<Complex*>(images);
    if (by_rows_) {
      first_.complex(complex, complex, CUFFT_FORWARD, stream);
      columns_.complex(complex, spectra, CUFFT_FORWARD, stream);
    } else if (complex_) {
      first_.complex(complex, spectra, CUFFT_FORWARD, stream);
    } else {
      first_.forward(images, spectra, stream);
    }
  }

  void inverse(Complex* products, T* images, cudaStream_t stream) {
    auto* complex = reinterpret_cast<Complex*>(images);
    if (by_rows_) {
      product_columns_.complex(products, complex, CUFFT_INVERSE, stream);
      last_.complex(complex, complex, CUFFT_INVERSE, stream);
    } else if (complex_) {
      last_.complex(products, complex, CUFFT_INVERSE, stream);
    } else {
      last_.inverse(products, images, stream);
    }
  }

 private:
  bool by_rows_, complex_;
  CufftPlan<T> first_, last_;               // 2D, or rows
  CufftPlan<T> columns_, product_columns_;  // only by rows
};

// Bytes of the work area of a geometry's transforms. It creates the plans, because cuFFT's
// estimates are too small for some sizes. A plan takes about half a millisecond.
template <typename T>
std::size_t cufft_work_bytes(const FftGeometry& g) {
  return CufftTransforms<T>(g).make(g);
}

}  // namespace xcorr::fft
