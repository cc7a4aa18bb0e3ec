// The layout of the matrices, spectra and outputs of a chunk of pairs for batched 2D transforms.
//
// A transform has rows x cols elements. It holds one real matrix, or (`pack` 2) two right matrices
// of one left matrix as the real and the imaginary part of a complex matrix. Correlation with a
// real left matrix is linear, so that the real and the imaginary part of the output are the two
// outputs, and no spectrum is unpacked. One real matrix with an odd number of columns is `complex`
// too, with imaginary parts of 0: cuFFT transforms two real matrices of odd length as one complex
// array, where a matrix of small values has the rounding errors of its neighbour (up to 2e-2 of the
// result beside an element of 1e6).
//
// A slot is the place of one transform in a batch: lefts come first, then rights. Rights and pairs
// are in runs (the rights of one left matrix), so that a rectangle of lefts and rights is a chunk
// in every form. Slots beyond the valid part of a chunk are zero in the input and skipped in the
// output. Either all rows of a slot are contiguous, or (`by_rows`) row y of all slots is.
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
  Index pair_run, pair_pitch;  // the same for pairs and their outputs
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
