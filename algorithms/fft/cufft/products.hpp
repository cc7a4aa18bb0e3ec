// Products of spectra, conj(left) * right, over all pairs of a chunk.
#pragma once

#include "algorithms/blocks/divide.hpp"
#include "algorithms/device/cuda.hpp"
#include "algorithms/fft/layout.hpp"

namespace xcorr::fft {

constexpr std::uint32_t kHadamardThreads = 256;
// Slots of products per thread. With two slots a left spectrum is read once for two products, and
// 20 small matrices still fill a GPU.
constexpr int kHadamardSlots = 2;

// Arguments of hadamard_kernel: `lines` of `vectors` accesses of 16 bytes per slot. Either all
// lines of a slot are contiguous, or line y of all slots. The right spectrum is that of the item in
// its run (n-to-m), or that of the slot, which may be the product itself.
template <typename T>
struct Hadamard {
  using V = Wide<T, kWide<T>>;
  const V* left;
  const V* right;
  V* product;
  Index in_line, out_line;     // accesses between lines of inputs and of products
  Index vectors;               // accesses between slots
  Divider vector, group, run;  // accesses per line; groups of slots; slots per run
  std::uint32_t threads, slots, runs, items;
  bool shared_rights;
  T scale;
};

template <typename T>
__global__ void __launch_bounds__(kHadamardThreads) hadamard_kernel(Hadamard<T> h) {
  using V = typename Hadamard<T>::V;
  std::uint32_t element = blockIdx.x * kHadamardThreads + threadIdx.x;
  if (element >= h.threads) return;
  std::uint32_t group = h.vector.split(element);
  const std::uint32_t line = h.group.split(group);
  const std::uint32_t first = group * kHadamardSlots;
  std::uint32_t item = first;
  std::uint32_t run = h.run.split(item);
  const V* left = h.left + line * h.in_line + element;
  const V* right = h.right + line * h.in_line + element;
  V* product = h.product + line * h.out_line + element;
  V l[kHadamardSlots], r[kHadamardSlots];
  bool valid[kHadamardSlots];
#pragma unroll
  for (int i = 0; i < kHadamardSlots; ++i) {
    valid[i] = first + i < h.slots && run < h.runs && item < h.items;
    if (valid[i]) {
      l[i] = left[run * h.vectors];
      r[i] = right[(h.shared_rights ? item : first + i) * h.vectors];
    }
    if (++item == h.run.by) {
      item = 0;
      ++run;
    }
  }
#pragma unroll
  for (int i = 0; i < kHadamardSlots; ++i) {
    if (!valid[i]) continue;
    V p;
#pragma unroll
    for (int c = 0; c < kWide<T>; c += 2) {
      const T lx = l[i].at[c], ly = l[i].at[c + 1], rx = r[i].at[c], ry = r[i].at[c + 1];
      p.at[c] = h.scale * (lx * rx + ly * ry);
      p.at[c + 1] = h.scale * (lx * ry - ly * rx);
    }
    product[(first + i) * h.vectors] = p;
  }
}

// Computes the products of the valid slots of a chunk: `runs` runs (one per left spectrum) of
// `items` slots.
template <typename T>
void hadamard(const FftGeometry& g, const void* left, const void* right, void* product, Index runs,
              Index items, bool shared_rights, void* stream) {
  using V = typename Hadamard<T>::V;
  const Index complexes = kWide<T> / 2;  // per access
  Hadamard<T> h{};
  h.left = static_cast<const V*>(left);
  h.right = static_cast<const V*>(right);
  h.product = static_cast<V*>(product);
  h.vectors = (g.by_rows ? g.pitch : g.spectrum) / complexes;
  h.in_line = g.input_slots() * h.vectors;
  h.out_line = g.pair_slots * h.vectors;
  const Index groups = ceil_div<Index>(g.pair_slots, kHadamardSlots);
  h.vector = Divider(h.vectors);
  h.group = Divider(groups);
  h.run = Divider(g.pair_run);
  h.threads = static_cast<std::uint32_t>((g.by_rows ? g.rows : 1) * groups * h.vectors);
  h.slots = static_cast<std::uint32_t>(g.pair_slots);
  h.runs = static_cast<std::uint32_t>(runs);
  h.items = static_cast<std::uint32_t>(items);
  h.shared_rights = shared_rights;
  h.scale = T(1) / static_cast<T>(g.rows * g.cols);
  launch(hadamard_kernel<T>, dim3(ceil_div(h.threads, kHadamardThreads)), dim3(kHadamardThreads), 0,
         stream, h);
}

}  // namespace xcorr::fft
