// Where the matrices, spectra and outputs of a chunk of pairs lie around batched 2D transforms.
//
// A transform is rows x cols elements. It holds one real matrix, or (`pack` 2) two right matrices
// of one left matrix as the real and the imaginary part of a complex one: correlation with a real
// left matrix is linear, so its output holds both outputs in the same way, and no spectrum is
// unpacked.
//
// A slot is the place of one transform in a batch. The slots of a chunk are first left_slots
// matrices, then right_slots. Rights and pairs come in runs (the rights of one left matrix), so
// that one rectangle of lefts and rights of any form is a chunk. What is beyond its valid part is
// zero on the way in, and skipped on the way out. Either all rows of a slot lie together, or
// (`by_rows`) row y of all slots does.
#pragma once

#include "harness/variant.hpp"

namespace xcorr::fft {

// Scalars from slot to slot and from row to row of images.
struct Strides {
  Index slot = 0, row = 0;
};

// What stays the same from chunk to chunk.
struct FftGeometry {
  Index rows, cols;  // of a transform
  Index pack = 1;    // real matrices in a transform: 1 or 2
  bool by_rows = false;
  Index padded_rows;  // rows that padding writes: all, or those that are not zero anyway
  Index real_pitch;   // scalars in a row of an image, with what fills it up
  Index pitch;        // complex elements in a row of a spectrum
  Index spectrum;     // complex elements of a spectrum, with what fills it up
  Strides in, out;    // of the images: padded inputs, circular outputs
  Shape left, right;  // of the inputs
  Index left_slots, right_slots;
  Index right_run, right_pitch;  // right slots of a run; right matrices from run to run
  Index pair_slots;
  Index pair_run, pair_pitch;  // likewise for pairs and their outputs
  Shifts sy, sx;               // the window

  Index input_slots() const { return left_slots + right_slots; }
};

// What differs: the first matrices and the first output of a chunk, and how much of it is valid.
// Also read by callbacks that are compiled at run time: eight-byte members only.
template <typename T>
struct FftChunk {
  const T* left;
  const T* right;
  T* out;
  Index lefts;
  Index right_runs, rights;  // runs, and rights in each
  Index pair_runs, pairs;
};

}  // namespace xcorr::fft
