// What is computed from the products (docs/design.md, Fields of a problem). The defaults are the
// surface of products with zeros outside the matrices. In a problem's id, in rows and on command
// lines a field is `name=value`, and a field with its default is left out.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

namespace xcorr {

// What lies outside the matrices. zero: zeros. circular: indices of R are taken modulo its shape,
// which is that of L.
enum class Boundary { zero, circular };

// product: sum L R. covariance: the same, after the mean of each whole matrix is subtracted.
// ncc: product / (norm of L in the overlap x norm of R in the overlap). zncc: the same, after the
// mean in the overlap is subtracted from each.
// phase: the cross spectrum X of the matrices without their means becomes X / max(|X|, f)^(1 - p)
// with the floor f of phase_floor(). Its bin of frequency 0 becomes 0.
enum class ScoreKind { product, covariance, ncc, zncc, phase };

struct Score {
  ScoreKind kind = ScoreKind::product;
  // ncc, zncc: the least overlap in valid elements, as a share in (0, 1] of the largest in the
  // window. Scores of less overlap are 0.
  double min_overlap = 0.3;
  // phase: the exponent p in [0, 1). 0 is phase correlation.
  double exponent = 0;
  constexpr bool operator==(const Score&) const = default;
};
// The floor f of phase correlation, divided by the product of the norms of both matrices without
// their means. `points` is the number of pixels of a matrix. The mean of |X| is at most that
// product, and a float32 transform has an error of about 0.6 x 2^-24 log2(points) of it in a bin.
// The factor 4 was calibrated (docs/design.md, Fields of a problem) and is frozen: a larger one
// takes bins of a photograph with little texture for rounding errors, a smaller one lets rounding
// errors count.
inline double phase_floor(double points) { return 4 * 0x1p-24 * std::log2(points); }

// Whether a score is divided by the norms of the overlap, so that it lies between -1 and 1.
constexpr bool is_normalised(ScoreKind kind) {
  switch (kind) {
    case ScoreKind::product:
    case ScoreKind::covariance:
    case ScoreKind::phase:
      return false;
    case ScoreKind::ncc:
    case ScoreKind::zncc:
      return true;
  }
  return false;
}

// Which mean a score subtracts from the elements: none, that of the whole matrix or that of the
// overlap.
enum class Centring { none, matrix, overlap };
constexpr Centring centring(ScoreKind kind) {
  switch (kind) {
    case ScoreKind::product:
    case ScoreKind::ncc:
      return Centring::none;
    case ScoreKind::covariance:
    case ScoreKind::phase:
      return Centring::matrix;
    case ScoreKind::zncc:
      return Centring::overlap;
  }
  return Centring::none;
}
constexpr bool is_centred(ScoreKind kind) { return centring(kind) != Centring::none; }

// Which side has a mask, with ncc and zncc: a byte a pixel, 1 for valid, 0 for a pixel that no sum
// uses.
enum class Masks { none, left, right, both };
constexpr bool masks_left(Masks m) { return m == Masks::left || m == Masks::both; }
constexpr bool masks_right(Masks m) { return m == Masks::right || m == Masks::both; }

// surface: all outputs. peak: the largest output of each pair and its position. peaks: the `count`
// largest local maxima. above: all outputs of at least a threshold. sum: the sum of the outputs.
// Records: harness/problem/results.hpp.
enum class ResultKind { surface, peak, peaks, above, sum };
// How a peak is located between outputs.
enum class SubPixel { parabola, gaussian, upsample };

struct Result {
  ResultKind kind = ResultKind::surface;
  SubPixel sub_pixel = SubPixel::parabola;  // of peak
  int upsample = 1;                         // of peak:upsample=u: 1 / u is the resolution
  int count = 0;                            // of peaks:k, for each pair
  double threshold = 0;                     // of above:t:c
  // above:8mad:c: the threshold of a pair is its median + `threshold` x its median absolute
  // deviation.
  bool of_deviations = false;
  std::int64_t capacity = 0;  // of above, for all pairs together
  // above:t:c:d: an output closer than this to a larger one is not listed. 1 lists all.
  int distance = 1;
  constexpr bool operator==(const Result&) const = default;
};

// dense: [matrices][rows][cols] without gaps. windows: each matrix is a window of a larger array;
// one offset each, one row pitch for all. channels: each row of each matrix has an offset (moveouts
// of channels).
enum class Views { dense, windows, channels };

struct Fields {
  Boundary boundary = Boundary::zero;
  Score score;
  Masks masks = Masks::none;
  Result result;
  bool same = false;  // left and right are one array
  Views views = Views::dense;
  constexpr bool operator==(const Fields&) const = default;
};

// Sets the field `name`: set_field(fields, "score", "zncc:0.5"). UserError for an unknown name or
// value. make_problem refuses fields that do not fit each other.
void set_field(Fields& fields, std::string_view name, std::string_view value);
// The value of the field `name` as text, also at its default: "product".
std::string field_text(const Fields& fields, std::string_view name);
// Names of the fields in the order of an id.
inline constexpr std::string_view kFieldNames[] = {"boundary", "score", "masks",
                                                   "result",   "same",  "views"};

std::string_view to_string(Boundary boundary);
std::string_view to_string(ScoreKind kind);
std::string_view to_string(Masks masks);
std::string_view to_string(ResultKind kind);
std::string_view to_string(Views views);

}  // namespace xcorr
