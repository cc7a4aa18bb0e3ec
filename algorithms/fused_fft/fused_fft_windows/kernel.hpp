// The kernel of fused_fft_windows: two warps of a block process a pair. Frequencies of a transform
// of 64 are even or odd, 2 k + c, and those of one kind are a transform of 32:
//
//   sum over y of z[y] w_64^((2 k + c) y)
//     = sum over y < 32 of w_32^(k y) w_64^(c y) (z[y] +- z[y + 32])
//
// where z[y + 32] is 0 if matrices have 32 rows and boundary is zero. So warp 0 has the even
// frequencies of y and warp 1 the odd ones; each processes the even and then the odd frequencies of
// x. A lane has a column or a row of 32 complex values in registers:
//
//   pass       a lane has                       computes
//   load       column x of left + i right       means removed if asked for; transform over y
//   ---- exchange
//   spectrum   row ky of Z, all kx of one kind  transform over x; times row -ky of Z, 16 values kept
//   ---- exchange
//   back       column kx, 16 of each kind       transform over ky
//   ---- exchange
//   row        row y, all kx                    a row of 64 outputs of the warp's kind of ky
//   ---- the two warps exchange half of these
//   outputs    32 columns of rows y and y + 32  sum and difference of both kinds
//
// Even kx are frequencies 0 .. 16 of a real row of 32. Columns 0 and 16 become real by the inverse
// transform over ky, so one complex column carries both. Odd kx are represented by the frequencies
// 4 j + 1; the others are the conjugates of these, since rows are real. A transform of 16 over j
// gives the values x[n] - i x[n + 16], each times a root of unity.
//
// A pair takes about 4,000 instructions in sequence, more than the instruction caches hold. Warps of
// a block that execute different parts of them evict each other's code. So all pairs of a block wait
// for each other once per pair, at the barrier before the records. With one pair per block, warps
// waited for instructions a third of the time.
#pragma once

#include "algorithms/blocks/divide.hpp"
#include "algorithms/device/launch.hpp"
#include "algorithms/fused_fft/fused_fft_windows/epilogue.hpp"
#include "algorithms/fused_fft/fused_fft_windows/multiply_add_transform.hpp"
#include "algorithms/fused_fft/pair_columns.hpp"
#include "algorithms/fused_fft/pair_scale.hpp"
#include "algorithms/fused_fft/row_transforms.hpp"
#include "harness/variant.hpp"

namespace xcorr::fused_fft {

inline constexpr int kPairThreads = 2 * warp::kSize;
// Launch shape for windows of 64 x 64 (kFolds) and of up to 32 x 32: max pairs per block, and
// resident blocks per SM that the launch bounds ask for.
template <bool kFolds>
struct WindowTuning {
  static constexpr int pairs = kFolds ? 2 : 4, blocks = kFolds ? 3 : 2;
};
// Rows and columns of the rotated result at which two matrices of 32 x 32 overlap.
inline constexpr Range kAllShifts{1, 63};

struct WindowArguments : PairInputs {
  WindowColumns columns;
};

// One matrix of a pair of 64 x 64, which is one part (real or imaginary) of the complex matrix.
struct FoldedSide {
  const float* data;  // column `lane`
  int pitch;
  float mean;  // approximate mean of all elements; 0 if it is not removed

  // Combines rows y and y + 32 and columns x and x + 32 of the side with these signs.
  __device__ __forceinline__ float at(int y, float sign_y, float sign_x) const {
    const float* const top = data + y * pitch;
    const float* const low = top + 32 * pitch;
    const float here = (top[0] - mean) + sign_y * (low[0] - mean);
    return here + sign_x * ((top[32] - mean) + sign_y * (low[32] - mean));
  }
  // Calls f(value) for rows first .. first + count - 1 of columns x and x + 32.
  template <typename F>
  __device__ __forceinline__ void each(int first, int count, F f) const {
#pragma unroll 16
    for (int y = first; y < first + count; ++y) {
      f(data[y * pitch]);
      f(data[y * pitch + 32]);
    }
  }
};

// Sums of 32 rows of a side and of their squares, about its pivot, over a warp.
struct FoldedSums {
  float sum = 0, squares = 0;

  __device__ __forceinline__ FoldedSums(const FoldedSide& side, int first) {
    side.each(first, 32, [&](float value) {
      const float centred = value - side.mean;
      sum += centred;
      squares = fmaf(centred, centred, squares);
    });
    sum = warp::reduce_add(sum);
    squares = warp::reduce_add(squares);
  }
};
// Replaces the pivot of a side, an element or 0, by the mean. Returns the sum of squares about the
// mean.
__device__ __forceinline__ float take_mean(FoldedSide& side, float sum, float squares,
                                           bool removes) {
  if (!removes) return squares;
  const float rest = sum * 0x1p-12f;
  side.mean += rest;
  return fmaxf(squares - sum * rest, 0.0f);
}
// The factors of the sides of a pair with these sums of squares. Each warp computes them without
// the other one.
__device__ __forceinline__ PairScale scale_of(Complex squares, const FoldedSide& left,
                                              const FoldedSide& right) {
  const auto largest = [](const FoldedSide& side) {
    std::uint32_t most = 0;
    side.each(0, 64, [&](float value) {
      const std::uint32_t bits = size_bits(value - side.mean);
      most = bits > most ? bits : most;
    });
    return std::bit_cast<float>(warp::largest(most));
  };
  const auto scaled_squares = [](const FoldedSide& side, float by) {
    float sum = 0;
    side.each(0, 64, [&](float value) {
      const float scaled = by * (value - side.mean);
      sum = fmaf(scaled, scaled, sum);
    });
    return warp::reduce_add(sum);
  };
  return pair_scale(
      squares, [&] { return Complex{largest(left), largest(right)}; },
      [&](const PairScale& by) {
        return Complex{scaled_squares(left, by.left), scaled_squares(right, by.right)};
      });
}

// v: row `lane` of Z, frequencies 2 k + kOdd of x. `product` gets four times the conjugates of
// values of the product: for even frequencies those of k < 16, with the real values of k = 0 and 16
// as one complex value; for odd frequencies those of even k.
template <bool kOdd>
__device__ __forceinline__ void multiply_half(const Complex (&v)[32], int mirror,
                                              Complex (&product)[16]) {
  const auto value = [&](auto index) {
    constexpr int k = decltype(index)::value, kMirror = kOdd ? 31 - k : (32 - k) % 32;
    const Complex other = {warp::shuffle(v[kMirror].re, mirror),
                           -warp::shuffle(v[kMirror].im, mirror)};
    const Complex q = conj(v[k] + other) * (v[k] - other);
    return Complex{q.im, q.re};
  };
  for_each_constant<16>([&](auto index) {
    constexpr int j = decltype(index)::value;
    product[j] = value(std::integral_constant<int, kOdd ? 2 * j : j>{});
  });
  if constexpr (!kOdd) {
    const Complex last = value(std::integral_constant<int, 16>{});
    product[0] = {product[0].re + last.im, product[0].im - last.re};
  }
}

// kFolds: circular matrices of 64 x 64; otherwise matrices of up to 32 x 32, padded with zeros.
// kWhole: all matrices are 32 x 32, and all shifts are asked for.
template <bool kFolds, bool kCovariance, bool kWhole>
__global__ void __launch_bounds__(kPairThreads* WindowTuning<kFolds>::pairs,
                                  WindowTuning<kFolds>::blocks) window_kernel(WindowArguments a) {
  constexpr int kPitch = WindowShared::pitch;
  // The shuffle tells the compiler that the value is the same in all lanes: what depends on it then
  // takes no register of a lane.
  const int number = warp::shuffle(static_cast<int>(threadIdx.x) / 32, 0);
  const int of_block = number / 2, warp = number % 2, lane = static_cast<int>(threadIdx.x) % 32;
  Complex* const shared = dynamic_shared<Complex>() + of_block * WindowShared::elements;
  const WindowShared my(shared, warp), other(shared, 1 - warp);
  const bool odd = warp == 1;  // frequencies of y
  const float sign = odd ? -1.0f : 1.0f;
  const int mirror = 32 - lane - warp;  // lane of the mirrored row of Z, modulo 32
  wait_for_previous();
  const auto meet = [&] { block::barrier(1 + of_block, kPairThreads); };
  const std::uint32_t pairs = blockDim.x / kPairThreads;
#pragma unroll 1
  for (std::uint32_t of_all = blockIdx.x * pairs; of_all < a.pairs; of_all += gridDim.x * pairs) {
    // Warps beyond the last pair compute the last pair again, with the same result.
    const std::uint32_t mine = of_all + static_cast<std::uint32_t>(of_block);
    const std::uint32_t p = mine < a.pairs ? mine : a.pairs - 1;
    const std::uint32_t l = a.rights_of_left.quotient(p), r = p - l * a.rights_back;
    Complex v[32];
    FoldedSide left{}, right{};
    if constexpr (kFolds) {
      left = {a.left_view.matrix(a.left_of(l).data, a.left, l) + lane, a.left_view.pitch, 0};
      right = {a.right_view.matrix(a.right_of(r).data, a.right, r) + lane, a.right_view.pitch, 0};
      if constexpr (kCovariance) {
        // Pivots. If all elements are equal, nothing remains.
        left.mean = left.data[-lane];
        right.mean = right.data[-lane];
      }
      const FoldedSums of_left(left, 32 * warp), of_right(right, 32 * warp);
      if (lane == 0) {
        my.notes->sums = {of_left.sum, of_right.sum};
        my.notes->squares = {of_left.squares, of_right.squares};
      }
      meet();
      const Complex sums = other.notes->sums + Complex{of_left.sum, of_right.sum};
      const Complex squares = other.notes->squares + Complex{of_left.squares, of_right.squares};
      const Complex centred = {take_mean(left, sums.re, squares.re, kCovariance),
                               take_mean(right, sums.im, squares.im, kCovariance)};
      const PairScale scale = scale_of(centred, left, right);
      if (lane == 0) {
        my.notes->sides = {scale.left, scale.right};
        my.notes->back = any_power_of_two(scale.back);
      }
      warp::barrier();
    }
    // One loop, so that the code of a transform of 32 exists once: the loop costs less than
    // instructions beyond the capacity of the instruction caches. The inverse is a forward
    // transform of conjugates.
    constexpr int kPasses = kFolds ? 5 : 4;
#pragma unroll 1
    for (int pass = 0; pass < kPasses; ++pass) {
      const bool is_back = pass == kPasses - 1;
      const bool is_columns = kFolds ? pass % 2 == 0 && !is_back : pass == 0;
      const bool odd_x = pass >= 2;
      bool turned = false;
      if (is_columns) {
        if constexpr (kFolds) {
          const float sign_x = odd_x ? -1.0f : 1.0f;
#pragma unroll
          for (int y = 0; y < 32; ++y) {
            v[y] = {left.at(y, sign, sign_x), right.at(y, sign, sign_x)};
          }
          const Complex sides = my.notes->sides;
          if (sides.re != 1 || sides.im != 1) multiply_sides(v, sides.re, sides.im);
        } else {
          if constexpr (kWhole) {
            load_whole_columns(a, l, r, lane, v);
          } else {
            load_columns(a, l, r, lane, v);
          }
          if (kCovariance && !kWhole && !a.whole) {
            remove_means(a, lane, v);
          } else if (kCovariance) {
            remove_pivots(v);
          }
          // Both warps have the same values here, and thus compute the same factors.
          const int back = scale_alike<!kCovariance>(a.of_sums, v);
          if (lane == 0) my.notes->back = any_power_of_two(back);
          if (kCovariance && (kWhole || a.whole) && odd) remove_rests(v);
        }
        turned = odd;
      } else {
        warp::barrier();
        load_line(
            (is_back && lane < 16 ? my.half : my.tile) + (is_back ? lane % 16 : lane) * kPitch, v);
        turned = !is_back && odd_x;
      }
      if (turned) {
        multiply_add_transform<Direction::forward, true>(v);
      } else {
        transform_halves<Direction::forward, false>(v);
        if (is_back && odd) {
          join_halves_and_turn<Direction::forward>(v);
        } else {
          join_halves<Direction::forward, false>(v);
        }
      }
      if (is_columns) {
        if (!kFolds && kCovariance && (kWhole || a.whole) && !odd) {
          // Of the even frequencies of 32 equal rows only frequency 0 is not 0: it is the sum of
          // the column. So removing the remaining mean changes v[0] alone.
          const Complex sum = sum_of_lanes(v[0]);
          v[0] = v[0] - Complex{sum.re * 0x1p-5f, sum.im * 0x1p-5f};
        }
        if (pass == 0) {
          meet();  // the outputs of the previous pair have been read
        } else {
          warp::barrier();  // the previous rows have been read
        }
#pragma unroll
        for (int ky = 0; ky < 32; ++ky) my.tile[ky * kPitch + lane] = v[ky];
      } else if (is_back) {
        warp::barrier();
        store_line(my.tile + lane * kPitch, v);
      } else {
        // There is no padding, so what remains of the means is in one value of Z alone.
        if (kFolds && kCovariance && !odd && !odd_x && lane == 0) v[0] = {0.0f, 0.0f};
        Complex half[16];
        Complex* to = my.half;
        if (odd_x) {
          multiply_half<true>(v, mirror, half);
          warp::barrier();  // all rows have been read
          to = my.tile;
        } else {
          multiply_half<false>(v, mirror, half);
        }
#pragma unroll
        for (int k = 0; k < 16; ++k) to[k * kPitch + lane] = half[k];
      }
    }
    warp::barrier();
    Complex even_x[16], odd_x[16];
#pragma unroll
    for (int k = 0; k < 16; ++k) {
      even_x[k] = conj(my.tile[k * kPitch + lane]);
      odd_x[k] = conj(my.tile[(16 + k) * kPitch + lane]);
    }
    tangle(even_x);
    multiply_add_transform<Direction::inverse, false>(even_x);
    multiply_add_transform<Direction::inverse, false>(odd_x);
    // Columns x < 32 are sums of both kinds of kx, and columns x >= 32 are differences. Warp 0
    // keeps the sums. Warp 1 keeps the differences with the opposite sign, which saves a product
    // below.
    Complex keep[16], give[16];
    for_each_constant<16>([&](auto index) {
      constexpr int m = decltype(index)::value;
      const auto of_odd = [&](auto x) {
        constexpr int kX = decltype(x)::value, n = kX % 16;
        constexpr float kCosine = 2 * root_re(n, 64), kSine = 2 * root_im(n, 64);
        const Complex c = odd_x[n];
        return kX < 16 ? kCosine * c.re - kSine * c.im : -(kSine * c.re + kCosine * c.im);
      };
      const float first = of_odd(std::integral_constant<int, 2 * m>{});
      const float second = of_odd(std::integral_constant<int, 2 * m + 1>{});
      keep[m] = {sign * even_x[m].re + first, sign * even_x[m].im + second};
      give[m] = {even_x[m].re - sign * first, even_x[m].im - sign * second};
    });
    store_line(my.half + lane * WindowShared::half_pitch, give);
    meet();
    Complex low[16], high[16];
    load_line(other.half + lane * WindowShared::half_pitch, low);
#pragma unroll
    for (int m = 0; m < 16; ++m) {
      high[m] = {keep[m].re - sign * low[m].re, keep[m].im - sign * low[m].im};
      low[m] = {sign * keep[m].re + low[m].re, sign * keep[m].im + low[m].im};
    }
    Complex* const outputs = shared + lane * kPitch + (odd ? 0 : 16);
    store_line(outputs, high);
    store_line(outputs + 32 * kPitch, low);
    const Range rows = kWhole ? kAllShifts : a.rows, cols = kWhole ? kAllShifts : a.cols;
    const std::uint32_t columns =
        kWhole ? (odd ? 0xfffffffeu : 0xffffffffu) : a.columns.of_warp[warp];
    note_tops<kWhole>(high, low, columns, rows, lane, *my.notes);
    block::barrier();
    const float scale = a.scale * my.notes->back;
    const WindowSurface surface{&shared->re + rows.first * 2 * kPitch + cols.first, rows.count,
                                cols.count};
    if (a.request.kind == ResultKind::surface) {
      write_window_surface(surface, scale, warp, lane, a.out_of(p));
    } else {
      write_window_peak(surface, *my.notes, *other.notes, rows, a.request, scale, warp, lane, p);
    }
  }
}

}  // namespace xcorr::fused_fft
