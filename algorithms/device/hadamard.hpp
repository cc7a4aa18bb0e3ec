// Products of spectra, conj(left) * right, over all pairs of a chunk.
#pragma once

#include "algorithms/device/cuda.hpp"
#include "harness/variant.hpp"

namespace xcorr {

constexpr unsigned kHadamardThreads = 256;

template <typename T>
struct Vector;  // 16 bytes of a spectrum
template <>
struct Vector<float> {
  using Type = float4;
};
template <>
struct Vector<double> {
  using Type = double2;
};

__device__ float4 conj_product(float4 l, float4 r, float scale) {
  return {scale * (l.x * r.x + l.y * r.y), scale * (l.x * r.y - l.y * r.x),
          scale * (l.z * r.z + l.w * r.w), scale * (l.z * r.w - l.w * r.z)};
}
__device__ double2 conj_product(double2 l, double2 r, double scale) {
  return {scale * (l.x * r.x + l.y * r.y), scale * (l.x * r.y - l.y * r.x)};
}

// product[slot] = scale * conj(left[run]) * right[...] over the valid pairs of a chunk; a thread
// takes one vector of kPairs consecutive slots. Right spectra are those of the item in its run
// (n-to-m) or of the slot, which may be the product itself. U: an unsigned type that counts all
// vectors, since 64-bit division is slow.
template <typename T, int kPairs, typename U>
__global__ void __launch_bounds__(kHadamardThreads)
    hadamard(const typename Vector<T>::Type* left, const typename Vector<T>::Type* right,
             typename Vector<T>::Type* product, U vectors, U slots, U run_slots, U runs, U items,
             bool shared_rights, T scale) {
  using V = typename Vector<T>::Type;
  const U at = static_cast<U>(blockIdx.x) * kHadamardThreads + threadIdx.x;
  const U first = at / vectors * kPairs, element = at % vectors;
  if (first >= slots) return;
  U run = first / run_slots, item = first % run_slots;
  V l[kPairs], r[kPairs];
  bool valid[kPairs];
#pragma unroll
  for (int i = 0; i < kPairs; ++i) {
    valid[i] = run < runs && item < items;
    if (valid[i]) {
      l[i] = left[run * vectors + element];
      r[i] = right[(shared_rights ? item : first + i) * vectors + element];
    }
    if (++item == run_slots) {
      item = 0;
      ++run;
    }
  }
#pragma unroll
  for (int i = 0; i < kPairs; ++i) {
    if (valid[i]) product[(first + i) * vectors + element] = conj_product(l[i], r[i], scale);
  }
}

// Operands of one chunk; `spectrum` complex elements, an even number, from slot to slot.
template <typename T>
struct HadamardChunk {
  const void* left;
  const void* right;
  void* product;
  Index spectrum;
  Index slots, run_slots;  // of pairs
  Index runs, items;       // of them valid
  bool shared_rights;      // a right spectrum is that of the item (n-to-m), not of the slot
  T scale;
};

template <typename T, int kPairs, typename U>
void hadamard_as(const HadamardChunk<T>& c, void* stream) {
  using V = typename Vector<T>::Type;
  const Index vectors = c.spectrum * 2 * static_cast<Index>(sizeof(T)) / 16;
  const Index threads = ceil_div<Index>(c.slots, kPairs) * vectors;
  const auto blocks = static_cast<unsigned>(ceil_div<Index>(threads, kHadamardThreads));
  launch(hadamard<T, kPairs, U>, dim3(blocks), dim3(kHadamardThreads), 0, stream,
         static_cast<const V*>(c.left), static_cast<const V*>(c.right), static_cast<V*>(c.product),
         vectors, c.slots, c.run_slots, c.runs, c.items, c.shared_rights, c.scale);
}

template <typename T>
void hadamard_chunk(const HadamardChunk<T>& c, void* stream) {
  // Below this many vectors one pair a thread: more threads are worth more than a left spectrum in
  // registers.
  constexpr Index kMany = Index{1} << 20;
  const Index vectors = c.slots * c.spectrum * 2 * static_cast<Index>(sizeof(T)) / 16;
  if (vectors >= Index{1} << 31) {
    hadamard_as<T, 4, unsigned long long>(c, stream);
  } else if (vectors >= kMany) {
    hadamard_as<T, 4, unsigned>(c, stream);
  } else {
    hadamard_as<T, 1, unsigned>(c, stream);
  }
}

}  // namespace xcorr
