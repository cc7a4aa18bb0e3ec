// The data movement around batched 2D transforms (geometry.hpp): zero padding of the inputs, and
// the definition's layout (shifts of the window in order) of their circular outputs. Kernels, and
// functions that launch them.
#pragma once

#include <algorithm>

#include "algorithms/blocks/divide.hpp"
#include "algorithms/device/cuda.hpp"
#include "algorithms/device/memory.hpp"
#include "algorithms/fft/geometry.hpp"

namespace xcorr::fft {

constexpr unsigned kLayoutThreads = 256;

// Scalars per access of 16 bytes.
template <typename T>
constexpr int kWide = 16 / static_cast<int>(sizeof(T));

template <typename T, int kCount>
struct alignas(sizeof(T) * kCount) Wide {
  using Scalar = T;
  T at[kCount];
};

// Arguments of pad_kernel, in 32 bits where that is enough.
template <typename T>
struct PadArguments {
  FftChunk<T> from;
  T* to;
  Strides strides;
  Divider row, line, run;  // accesses per row; lines of the inner index; slots per run
  std::uint32_t accesses;
  bool by_rows;
  std::uint32_t left_slots;
  int left_rows, left_cols, right_rows, right_cols;
  Index right_pitch;
};

// to[slot][y][x] = the kPack matrices of that slot, zero outside them. A column has kParts scalars:
// a real number, or the real and the imaginary part. A thread writes kCount consecutive scalars of a
// row.
template <typename T, int kPack, int kParts, int kCount>
__global__ void __launch_bounds__(kLayoutThreads) pad_kernel(PadArguments<T> p) {
  std::uint32_t access = blockIdx.x * kLayoutThreads + threadIdx.x;
  if (access >= p.accesses) return;
  std::uint32_t inner = p.row.split(access);  // access: within the row
  const std::uint32_t outer = p.line.split(inner);
  const std::uint32_t slot = p.by_rows ? inner : outer;
  const int y = static_cast<int>(p.by_rows ? outer : inner);
  const int x = static_cast<int>(access) * (kCount / kParts);

  const T* from[kParts] = {};  // null: zeros
  int cols = 0;
  if (slot < p.left_slots) {
    if (slot < p.from.lefts && y < p.left_rows) {
      cols = p.left_cols;
      from[0] = p.from.left + (static_cast<Index>(slot) * p.left_rows + y) * cols;
    }
  } else {
    std::uint32_t item = slot - p.left_slots;
    const std::uint32_t run = p.run.split(item);
    if (run < p.from.right_runs && y < p.right_rows) {
      cols = p.right_cols;
#pragma unroll
      for (int part = 0; part < kPack; ++part) {
        const Index matrix = static_cast<Index>(item) * kPack + part;
        if (matrix < p.from.rights) {
          from[part] = p.from.right + ((run * p.right_pitch + matrix) * p.right_rows + y) * cols;
        }
      }
    }
  }
  Wide<T, kCount> value;
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    const int col = x + i / kParts;
    value.at[i] = from[i % kParts] && col < cols ? from[i % kParts][col] : T(0);
  }
  T* to = p.to + slot * p.strides.slot + y * p.strides.row;
  reinterpret_cast<Wide<T, kCount>*>(to)[access] = value;
}

// Arguments of crop_kernel: `count` outputs of each pair, from row `first_sy` on.
template <typename T>
struct CropArguments {
  FftChunk<T> to;  // out is at row `first_sy`
  const T* from;
  Strides strides;
  Divider access, run, row;  // accesses per output; slots per run; outputs per row
  std::uint32_t accesses, count;
  Index item, pair_pitch;  // outputs between pairs; pairs between runs
  int rows, cols, first_sy, first_sx;
  T scale;
};

// Outputs first .. first + kCount - 1 of a pair, if they exist, from its image.
template <typename T, int kParts>
__device__ __forceinline__ Wide<T, kWide<T>> cropped(const CropArguments<T>& c, const T* image,
                                                     std::int64_t first) {
  Wide<T, kWide<T>> value;
  std::uint32_t x = first < 0 ? 0 : static_cast<std::uint32_t>(first);
  int sy = static_cast<int>(c.row.split(x)) + c.first_sy;
  const T* row = image + (sy < 0 ? sy + c.rows : sy) * c.strides.row;
#pragma unroll
  for (int i = 0; i < kWide<T>; ++i) {
    if (first + i < 0 || first + i >= c.count) continue;
    if (x == c.row.by) {
      x = 0;
      ++sy;
      row = image + (sy < 0 ? sy + c.rows : sy) * c.strides.row;
    }
    const int sx = static_cast<int>(x++) + c.first_sx;
    value.at[i] = c.scale * row[static_cast<Index>(sx < 0 ? sx + c.cols : sx) * kParts];
  }
  return value;
}

// out = scale * the image at the shift of each output. A thread writes the outputs of one store of
// full width, so that whole lines are written wherever outputs begin. Of two packed outputs it
// writes the same part of both, so that the image is read once.
template <typename T, int kPack, int kParts>
__global__ void __launch_bounds__(kLayoutThreads) crop_kernel(CropArguments<T> c) {
  constexpr int kCount = kWide<T>;
  std::uint32_t access = blockIdx.x * kLayoutThreads + threadIdx.x;
  if (access >= c.accesses) return;
  const std::uint32_t slot = c.access.split(access);  // within the output
  std::uint32_t item = slot;
  const std::uint32_t run = c.run.split(item);
  item *= kPack;
  if (run >= c.to.pair_runs) return;
  const T* image = c.from + slot * c.strides.slot;
  T* to[kPack] = {};
  std::int64_t first[kPack];
  Wide<T, kCount> value[kPack];
#pragma unroll
  for (int part = 0; part < kPack; ++part) {
    if (item + part >= c.to.pairs) continue;
    to[part] = c.to.out + (run * c.pair_pitch + item + part) * c.item;
    const auto lead = reinterpret_cast<std::uintptr_t>(to[part]) / sizeof(T) % kCount;
    first[part] = static_cast<std::int64_t>(access) * kCount - static_cast<std::int64_t>(lead);
    value[part] = cropped<T, kParts>(c, image + part, first[part]);
  }
#pragma unroll
  for (int part = 0; part < kPack; ++part) {
    if (!to[part]) continue;
    if (first[part] >= 0 && first[part] + kCount <= c.count) {
      store_last(reinterpret_cast<Wide<T, kCount>*>(to[part] + first[part]), value[part]);
      continue;
    }
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const std::int64_t at = first[part] + i;
      if (at >= 0 && at < c.count) to[part][at] = value[part].at[i];
    }
  }
}

inline unsigned layout_blocks(Index threads) {
  return static_cast<unsigned>(ceil_div<Index>(threads, kLayoutThreads));
}

template <typename T, int kPack, int kParts, int kCount>
void pad_as(const FftGeometry& g, const FftChunk<T>& chunk, T* images, void* stream) {
  const Index row = g.real_pitch / kCount;
  PadArguments<T> p{};
  p.from = chunk;
  p.to = images;
  p.strides = g.in;
  p.row = Divider(row);
  p.line = Divider(g.by_rows ? g.input_slots() : g.padded_rows);
  p.run = Divider(g.right_run);
  p.accesses = static_cast<std::uint32_t>(g.input_slots() * g.padded_rows * row);
  p.by_rows = g.by_rows;
  p.left_slots = static_cast<std::uint32_t>(g.left_slots);
  p.left_rows = static_cast<int>(g.left.rows);
  p.left_cols = static_cast<int>(g.left.cols);
  p.right_rows = static_cast<int>(g.right.rows);
  p.right_cols = static_cast<int>(g.right.cols);
  p.right_pitch = g.right_pitch;
  launch(pad_kernel<T, kPack, kParts, kCount>, dim3(layout_blocks(p.accesses)),
         dim3(kLayoutThreads), 0, stream, p);
}

// Pads the inputs of a chunk into `images`.
template <typename T>
void pad(const FftGeometry& g, const FftChunk<T>& chunk, T* images, void* stream) {
  if (g.pack == 2) {
    pad_as<T, 2, 2, kWide<T>>(g, chunk, images, stream);
  } else if (g.complex) {
    pad_as<T, 1, 2, kWide<T>>(g, chunk, images, stream);
  } else if (g.real_pitch % kWide<T> == 0 && g.in.slot % kWide<T> == 0) {
    pad_as<T, 1, 1, kWide<T>>(g, chunk, images, stream);
  } else {
    pad_as<T, 1, 1, 1>(g, chunk, images, stream);
  }
}

// Outputs of a pair that crop_kernel can count with 32 bits; a launch has at least one row.
constexpr Index kCropOutputs = Index{1} << 31;

// Copies the circular outputs in `images` to the outputs of a chunk, times `scale`.
template <typename T>
void crop(const FftGeometry& g, const FftChunk<T>& chunk, const T* images, T scale, void* stream,
          Index most_outputs = kCropOutputs) {
  const Index row = g.sx.count(), step = std::max<Index>(1, most_outputs / row);
  const auto kernel = g.pack == 2 ? crop_kernel<T, 2, 2>
                      : g.complex ? crop_kernel<T, 1, 2>
                                  : crop_kernel<T, 1, 1>;
  for (Index y = 0; y < g.sy.count(); y += step) {
    const Index count = std::min(step, g.sy.count() - y) * row;
    const Index accesses = ceil_div<Index>(count + kWide<T> - 1, kWide<T>);
    CropArguments<T> c{};
    c.to = chunk;
    c.to.out += y * row;
    c.from = images;
    c.strides = g.out;
    c.access = Divider(accesses);
    c.run = Divider(g.pair_run);
    c.row = Divider(row);
    c.accesses = static_cast<std::uint32_t>(g.pair_slots * accesses);
    c.count = static_cast<std::uint32_t>(count);
    c.item = g.sy.count() * row;
    c.pair_pitch = g.pair_pitch;
    c.rows = static_cast<int>(g.rows);
    c.cols = static_cast<int>(g.cols);
    c.first_sy = static_cast<int>(g.sy.first + y);
    c.first_sx = static_cast<int>(g.sx.first);
    c.scale = scale;
    launch(kernel, dim3(layout_blocks(c.accesses)), dim3(kLayoutThreads), 0, stream, c);
  }
}

}  // namespace xcorr::fft
