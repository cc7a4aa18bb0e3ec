// The layout of the matrices, spectra and outputs of a chunk of pairs for batched 2D transforms.
//
// A transform has rows x cols elements. It holds one real matrix, or (`pack` 2) two right matrices
// of one left matrix as the real and the imaginary part of a complex matrix. Correlation with a
// real left matrix is linear, so that the real and the imaginary part of the output are the two
// outputs, and no spectrum is unpacked. For odd lengths cuFFT itself makes one complex array of two
// real matrices. The small one then gets the rounding errors of the large one (up to 2e-2 of its
// result beside an element of 1e6). So a matrix with an odd number of columns is `complex` and has
// imaginary parts of 0.
//
// A slot is the place of one transform in a batch: lefts come first, then rights. A chunk is some
// lefts times some rights. The rights that meet one left lie side by side and are a run. In n-to-m
// all lefts share one run; in the other forms each left has its own. Slots beyond the valid part of
// a chunk are zero in the input and skipped in the output. The rows of a slot are contiguous; with
// `by_rows` row y of slot 0, row y of slot 1 and so on are.
#pragma once

#include "harness/variant.hpp"

namespace xcorr::fft {

// Scalars between slots and between rows of images.
struct Strides {
  Index slot = 0, row = 0;
};

// The part of the layout that is the same for all chunks.
struct FftGeometry {
  Index rows, cols;      // of a transform
  Index pack = 1;        // real matrices per transform: 1 or 2
  bool complex = false;  // transforms are complex to complex; images have imaginary parts
  bool by_rows = false;
  Index padded_rows;  // rows that padding writes: all, or those that can be nonzero
  Index real_pitch;   // scalars per row of an image, with padding
  Index pitch;        // complex elements per row of a spectrum, with padding
  Index spectrum;     // complex elements per spectrum, with padding
  Strides in, out;    // of the images: padded inputs, circular outputs
  Shape left, right;  // of the inputs
  Index left_slots, right_slots;
  Index right_run, right_pitch;  // right slots per run; right matrices between runs
  Index pair_slots;
  Index pair_run, pair_pitch;  // pair slots per run; outputs between runs
  Shifts sy, sx;               // the window

  Index input_slots() const { return left_slots + right_slots; }
  // Complex elements per row of a spectrum.
  Index used_cols() const { return complex ? cols : cols / 2 + 1; }
  // Scalars per column of an image.
  Index parts() const { return complex ? 2 : 1; }
};

// The part that differs between chunks: the first matrices and the first output of a chunk, and the
// size of its valid part. Callbacks that are compiled at run time read it too: all members have
// eight bytes.
template <typename T>
struct FftChunk {
  const T* left;
  const T* right;
  T* out;
  Index lefts;
  Index right_runs, rights;  // runs, and rights per run
  Index pair_runs, pairs;
};

}  // namespace xcorr::fft
