// The kernel of fused_fft_cluster. Each block owns some columns of an image. The phases over rows
// store to, or load from, the blocks that own the columns.
#pragma once

#include <algorithm>

#include "algorithms/device/memory.hpp"
#include "algorithms/fused_fft/fused_fft_cluster/panels.hpp"
#include "algorithms/fused_fft/lengths.hpp"
#include "algorithms/fused_fft/problem.hpp"

namespace xcorr::fused_fft {

// Groups of threads per block: one has the left while the other has the first right.
constexpr int kGroups = 2;

// Launch shape of a length: blocks per cluster, of which the hardware allows at most 16; max
// threads per group, limited by registers; complex rows that a group has at a time.
struct ClusterTuning {
  int blocks, most_threads, panel_rows;
};
template <int kN>
constexpr ClusterTuning kClusterTuning = kN <= 64    ? ClusterTuning{8, 512, 2}
                                         : kN <= 128 ? ClusterTuning{8, 512, 4}
                                         : kN <= 192 ? ClusterTuning{8, 512, 6}
                                         : kN <= 256 ? ClusterTuning{8, 512, 8}
                                         : kN <= 384 ? ClusterTuning{8, 256, 4}
                                                     : ClusterTuning{16, 128, 4};

template <int kN>
struct ClusterShape {
  using L = Length<kN>;
  static constexpr int size = kClusterTuning<kN>.blocks;
  // Columns per block; threads per group, one for each element of a pass over the columns.
  static constexpr int columns = ceil_div(ImageColumns<L>::live, size);
  static constexpr int elements_of_pass = L::second * columns;
  static constexpr int group_threads = std::min(kClusterTuning<kN>.most_threads,
                                                ceil_div(elements_of_pass, 32) * 32),
                       threads = kGroups * group_threads;
  static constexpr int panel_rows = kClusterTuning<kN>.panel_rows;
  static_assert(group_threads >= columns && group_threads % L::second == 0);
  using Cols = ColumnPanel<L, columns>;
  static constexpr int panel_elements = RowPanel<L>::elements(panel_rows);
  static constexpr std::size_t bytes =
      sizeof(Complex) * (L::n + 2 * Cols::kElements + kGroups * panel_elements);
};

struct ClusterArguments : FusedProblem {
  std::uint32_t chunks, chunk;  // clusters per left, max rights per cluster
  std::uint32_t rights_of_left, rights_back;
};

template <int kN>
__global__ void __launch_bounds__(ClusterShape<kN>::threads, 1) cluster_kernel(ClusterArguments a) {
  if constexpr (cluster::kAvailable) {
    using S = ClusterShape<kN>;
    using L = typename S::L;
    using Cols = typename S::Cols;
    Complex* const roots = dynamic_shared<Complex>();
    Complex* const left_image = roots + L::n;
    Complex* const right_image = left_image + Cols::kElements;
    const int group = static_cast<int>(threadIdx.y), lane = static_cast<int>(threadIdx.x);
    const int thread = group * S::group_threads + lane, rank = cluster::rank();
    for (int i = thread; i < L::n; i += kGroups * S::group_threads) roots[i] = a.roots[i];
    const RowPanel<L> rows{right_image + Cols::kElements + group * S::panel_elements,
                           roots,
                           S::panel_rows,
                           {lane, S::group_threads}};
    // The columns of this block. Its image stores row after row of them. In odd rows the mirror of
    // a column is stored at the position of the column.
    const auto columns = [&](Complex* image, Group of) {
      const int mine = of.thread % S::columns;
      const bool live = rank * S::columns + mine < ImageColumns<L>::live &&
                        of.thread < of.count / S::columns * S::columns;
      return Cols{image, roots, live, mine, mine, of};
    };
    const Group my_group{lane, S::group_threads}, everyone{thread, kGroups * S::group_threads};
    // Where element (y, column) of an image lies in the cluster.
    const auto in_cluster = [&](Complex* image) {
      return [=](int y, int column) -> Complex* {
        constexpr int kHalf = L::second / 2;
        if (y >= L::n || (column > kHalf && column < L::second)) return nullptr;
        const int owned = y / L::second % 2 == 0 ? column : ImageColumns<L>::mirror(column);
        const int number = owned <= kHalf ? owned : owned - kHalf + 1;
        const int owner = number / S::columns;
        return cluster::peer(image, owner) + y * S::columns + number - owner * S::columns;
      };
    };
    // Calls f(matrix, first complex row, remaining rows) for this group's shares of the rows of
    // `count` matrices.
    const auto each_panel = [&](int count, int pairs, auto f) {
      const int of_block = ceil_div(pairs, S::size), panels = ceil_div(of_block, S::panel_rows);
#pragma unroll 1
      for (int first = 0; first < count * panels; first += kGroups) {
        const int i = first + group, panel = i / count;
        // Rows beyond the share or the matrix are not stored.
        const bool works = i < count * panels;
        f(i - panel * count, works ? rank * of_block + panel * S::panel_rows : L::n,
          of_block - panel * S::panel_rows);
      }
    };

    const std::uint32_t number = cluster::number(), l = number / a.chunks;
    const std::uint32_t begin = (number - l * a.chunks) * a.chunk;
    const std::uint32_t end =
        begin + a.chunk < a.rights_of_left ? begin + a.chunk : a.rights_of_left;
    const Source left = a.left_of(l);
    cluster::barrier();
#pragma unroll 1
    for (std::uint32_t r = begin; r < end; ++r) {
      const bool is_first = r == begin;
      const std::uint32_t p = l * a.rights_of_left + r;
      const Source right = a.right_of(p - l * a.rights_back);
      const int most = is_first && left.rows > right.rows ? left.rows : right.rows;
      const int pairs = ceil_div(most, 2 * L::second) * L::second;
      each_panel(is_first ? 2 : 1, pairs, [&](int which, int q, int count) {
        const bool is_left = is_first && which == 0;
        const auto to = in_cluster(is_left ? left_image : right_image);
        const int last = q + count;
        // Selected field by field: selecting one of two structures would select between addresses.
        const Source source = {is_left ? left.data : right.data, is_left ? left.rows : right.rows,
                               is_left ? left.cols : right.cols};
        panel_forward_rows(rows, source, q, [&](int y, int column) {
          // Maps y back to its complex row; rows beyond this block's share belong to another block.
          const int t = y % L::second, row = y / (2 * L::second) * L::second + t;
          return row < last ? to(y, column) : nullptr;
        });
      });
      cluster::barrier();
      const Cols right_columns = columns(right_image, everyone);
      if (is_first) {
        const Cols left_columns = columns(left_image, my_group);
        if (group == 0) left_columns.split(left_image, left.rows);
        if (group == 1) columns(right_image, my_group).split(right_image, right.rows);
        block::barrier();
        if (group == 0) {
          left_columns.middle([&](auto& v, int, int k1) {
            const int number_of = rank * S::columns + left_columns.column;
            const int column = ImageColumns<L>::column(number_of);
            a.as_left<L>(v, k1, column / L::second + L::first * (column % L::second), L::n);
          });
        }
      } else {
        right_columns.split(right_image, right.rows);
      }
      block::barrier();
      right_columns.middle([&](auto& v, int at, int) {
#pragma unroll
        for (int i = 0; i < L::second; ++i) v[i] = v[i] * left_image[at + i * S::columns];
        transform<L::second, Direction::inverse>(v);
      });
      block::barrier();
      right_columns.join(right_image);
      cluster::barrier();
      each_panel(1, L::n / 2, [&](int, int q, int) {
        panel_inverse_rows(rows, in_cluster(right_image), q, a.rows, a.cols, a.out_of(p));
      });
      // No block stores to an image, or ends, before all blocks have read it.
      cluster::barrier();
    }
  }
}

}  // namespace xcorr::fused_fft
