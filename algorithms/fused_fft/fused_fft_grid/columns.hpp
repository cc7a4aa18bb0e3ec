// The phase of fused_fft_grid over columns: spectra, product, inverse.
#pragma once

#include "algorithms/fused_fft/fused_fft_grid/arguments.hpp"
#include "algorithms/fused_fft/fused_fft_grid/exchange.hpp"
#include "algorithms/fused_fft/fused_fft_grid/three_pass.hpp"
#include "algorithms/fused_fft/roots.hpp"

namespace xcorr::fused_fft {

// Processes some columns of a left and of its rights: spectra, product, inverse, into images of
// pairs. A group of threads has two shares, each with 2^log_columns columns. The first share starts
// with the left while the second one has the first right; then both have rights, and do not wait
// for each other. With barriers, the next right is loaded while one is transformed.
template <typename R, bool kFlow, typename Wait>
__device__ __forceinline__ void correlate_columns(const GridArguments& a, const BlockGroup& group,
                                                  Wait wait) {
  const int log_cols = a.log_columns, share_threads = R::threads << log_cols;
  const int share = group.thread / R::threads >> log_cols;
  const int lane = group.thread - share * share_threads;
  // Column of a thread, and its number within the column. Where images are accessed, consecutive
  // threads have consecutive columns; elsewhere they are along one column.
  const int outer_c = lane & ((1 << log_cols) - 1), t = lane >> log_cols;
  const int c = lane / R::threads, u = lane % R::threads;
  Complex* const shared = dynamic_shared<Complex>() + group.index * a.shared_of_group;
  const ThreePass<R> outer(shared + ((share << log_cols) + outer_c) * a.stride_y);
  const ThreePass<R> inner(shared + ((share << log_cols) + c) * a.stride_y);
  Complex* const left = shared + (2 << log_cols) * a.stride_y + c * R::n + u;
  const Complex* const tables = a.roots + 2 * kRootTable;
  const Twiddles<R> w(tables, tables + kRootTable, t, u);
  wait();
#pragma unroll 1
  for (std::uint32_t task = group.number; task < a.column_tasks; task += group.count) {
    if (task >= group.count) group.barrier();  // the left of the previous task is no longer needed
    // The longer chunks of all lefts come first, so that no SM gets only those.
    std::uint32_t columns = task;
    std::uint32_t l = a.by_groups.split(columns);
    const std::uint32_t chunk = a.by_lefts.split(l), begin = chunk * a.chunk;
    const std::uint32_t rest = a.rights_of_left - begin;
    const int count = static_cast<int>(rest < a.chunk ? rest : a.chunk);
    const std::uint32_t pair = l * a.rights_of_left + begin;
    const int column = static_cast<int>(columns << log_cols) + outer_c;
    const bool live = share < 2 && column <= a.nx / 2 && t < R::m;
    Element* const of_t = a.images + a.of_column(column) + t * kLayout;
    // Elements of an item. Item -1 is the left, and items from 0 on are rights.
    const auto rows_of = [&](int item) { return item < 0 ? a.left_rows : a.right_rows; };
    const auto place = [&](int item) {
      std::uint32_t number = l;
      if (kFlow) number = l * a.left_copies + chunk;
      if (item >= 0) {
        number = pair + item - l * a.rights_back;
        if (kFlow) number = number * a.right_copies + l * a.right_copy_of_left;
        number += a.right_image;
      }
      return of_t + number * a.image;
    };
    Element e[R::a / 2];
    const auto load = [&](int item) {
      const Element* const from = place(item);
      const int rows = rows_of(item);
#pragma unroll
      for (int s = 0; s < R::a / 2; ++s) {
        e[s] = {};
        if (t + 2 * R::m * s < rows) e[s] = load_element<kFlow>(from + s * R::m * kLayout);
      }
    };
    if (!kFlow && live && share - 1 < count) load(share - 1);
#pragma unroll 1
    for (int first = -1; first < count; first += 2) {
      const int item = first + share;
      const bool is_left = item < 0, works = share < 2 && item < count;
      const bool is_right = works && !is_left;
      if (works && live) {
        if constexpr (kFlow) {
          until_there<kFlow>([&] {
            bool missing = false;
            load(item);
#pragma unroll
            for (int s = 0; s < R::a / 2; ++s) missing |= is_missing(e[s]);
            return missing;
          });
          Element* const from = place(item);
          const int rows = rows_of(item);
#pragma unroll
          for (int s = 0; s < R::a / 2; ++s) {
            if (t + 2 * R::m * s < rows) make_missing(from + s * R::m * kLayout);
          }
        }
        Complex v[R::a];
#pragma unroll
        for (int s = 0; s < R::a / 2; ++s) {
          v[2 * s] = {e[s].x, e[s].y};
          v[2 * s + 1] = {e[s].z, e[s].w};
        }
        outer.first_forward(v, w, t, a.short_columns);
        if (!kFlow && item + 2 < count) load(item + 2);
      }
      group.barrier_of(share_threads);
      if (works) inner.second_forward(w, u);
      group.barrier_of(R::threads);
      Complex v[R::turns][R::c];
#pragma unroll
      for (int i = 0; i < R::turns; ++i) {
        if (works && R::has_turn(u, i)) inner.third_forward(v[i], u + i * R::threads);
      }
      if (first < 0) {
#pragma unroll
        for (int i = 0; i < R::turns; ++i) {
#pragma unroll
          for (int k = 0; k < R::c; ++k) {
            if (works && is_left && R::has_turn(u, i)) {
              left[R::ab * k + i * R::threads] = {a.scale * v[i][k].re, -a.scale * v[i][k].im};
            }
          }
        }
        group.barrier();
      }
#pragma unroll
      for (int i = 0; i < R::turns; ++i) {
        if (is_right && R::has_turn(u, i)) {
#pragma unroll
          for (int k = 0; k < R::c; ++k) v[i][k] = v[i][k] * left[R::ab * k + i * R::threads];
          inner.third_inverse(v[i], u + i * R::threads);
        }
      }
      group.barrier_of(R::threads);
      if (is_right) inner.second_inverse(w, u);
      group.barrier_of(share_threads);
      if (is_right && live) {
        Element* const to = of_t + (a.pair_image + pair + item) * a.image;
        Complex result[R::a];
        outer.first_inverse(result, w, t);
#pragma unroll
        for (int s = 0; s < R::a / 2; ++s) {
          const Complex even = result[2 * s], odd = result[2 * s + 1];
          store_element<kFlow>(to + s * R::m * kLayout, {even.re, even.im, odd.re, odd.im});
        }
      }
    }
  }
}

}  // namespace xcorr::fused_fft
