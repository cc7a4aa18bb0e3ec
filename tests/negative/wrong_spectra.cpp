// Faults of transforms: single bins of a frequency spectrum, or the twiddles of one pass. What is
// right is computed in double, so that nothing but the fault is seen.
#include <fftw3.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <map>
#include <numbers>
#include <vector>

#include "tests/harness/fp32.hpp"
#include "tests/negative/broken.hpp"

namespace xcorr::broken {
namespace {

using Complex = std::complex<double>;

// Transforms of one length by the passes of Cooley and Tukey, smallest factor first.
class Transform {
 public:
  // Passes whose length is `bare` are done without their twiddles.
  Transform(Index length, Index bare) : bare_(bare), roots_(static_cast<std::size_t>(length)) {
    for (Index k = 0; k < length; ++k) {
      roots_[static_cast<std::size_t>(k)] = std::polar(
          1.0, -2.0 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(length));
    }
    scratch_.resize(roots_.size());
  }

  // In place; `stride` between elements.
  void operator()(Complex* data, Index stride) {
    std::vector<Complex> line(roots_.size());
    for (std::size_t i = 0; i < line.size(); ++i) line[i] = data[static_cast<Index>(i) * stride];
    pass(line.data(), scratch_.data(), static_cast<Index>(line.size()), 1);
    for (std::size_t i = 0; i < line.size(); ++i) data[static_cast<Index>(i) * stride] = line[i];
  }

 private:
  Complex root(Index k, Index step) const { return roots_[static_cast<std::size_t>(k * step)]; }

  // `step`: of the table of roots for this length.
  void pass(Complex* data, Complex* scratch, Index length, Index step) const {
    if (length == 1) return;
    Index factor = 2;
    while (length % factor) ++factor;
    const Index part = length / factor;
    for (Index i = 0; i < length; ++i) scratch[i % factor * part + i / factor] = data[i];
    for (Index f = 0; f < factor; ++f) {
      pass(scratch + f * part, data + f * part, part, step * factor);
    }
    for (Index k = 0; k < part; ++k) {
      for (Index q = 0; q < factor; ++q) {
        Complex sum = 0;
        for (Index f = 0; f < factor; ++f) {
          const Complex twiddle = length == bare_ ? 1.0 : root(f * k, step);
          sum += scratch[f * part + k] * twiddle * root(f * q % factor * part, step);
        }
        data[q * part + k] = sum;
      }
    }
  }

  Index bare_;
  std::vector<Complex> roots_, scratch_;
};

// A smallest length 2^a 3^b 5^c of a linear, not wrapping, transform.
Index padded(Index left, Index right) {
  for (Index length = std::max<Index>(2, left + right - 1);; ++length) {
    Index rest = length;
    for (const Index factor : {2, 3, 5}) {
      while (rest % factor == 0) rest /= factor;
    }
    if (rest == 1 && length % 2 == 0) return length;
  }
}

// Right; a fault derives from it.
struct SoundSpectra : Sound {
  using Sound::Sound;

  void compute(const Call& call) override {
    ++calls_;
    rows_ = padded(problem_.left.rows, problem_.right.rows);
    cols_ = padded(problem_.left.cols, problem_.right.cols);
    const double scale = 1 / static_cast<double>(rows_ * cols_);
    std::vector<Complex> l;
    each_output(problem_, [&](Index i, Pair pair, Index sy, Index sx) {
      if (i % problem_.out_size() == 0) {
        l = product(left(call, pair.left), right(call, pair.right));
        spoil(l);
        transform(l);  // of the conjugate: the inverse of real data
      }
      call.outs<float>()[i] = static_cast<float>(bin(l, sy, sx).real() * scale);
    });
  }

  // Changes the spectrum of a pair. A real result wants both a bin and its mirror image changed.
  virtual void spoil(std::vector<Complex>&) {}
  // Length of a pass along rows whose twiddles are missing.
  virtual Index bare() const { return 0; }

  Complex& bin(std::vector<Complex>& spectrum, Index row, Index col) const {
    return spectrum[static_cast<std::size_t>((row + rows_) % rows_ * cols_ +
                                             (col + cols_) % cols_)];
  }
  // One bin and its mirror image.
  template <typename F>
  void both(std::vector<Complex>& spectrum, F&& change) const {
    const Index row = rows_ / 3, col = cols_ / 5;
    change(bin(spectrum, row, col));
    if ((2 * row) % rows_ != 0 || (2 * col) % cols_ != 0) change(bin(spectrum, -row, -col));
  }

  Index rows_ = 0, cols_ = 0;

 private:
  void transform(std::vector<Complex>& data) const {
    if (bare() == 0) {
      auto* d = reinterpret_cast<fftw_complex*>(data.data());
      const fftw_plan whole = fftw_plan_dft_2d(static_cast<int>(rows_), static_cast<int>(cols_), d,
                                               d, FFTW_FORWARD, FFTW_ESTIMATE);
      fftw_execute(whole);
      fftw_destroy_plan(whole);
      return;
    }
    Transform along_rows(cols_, bare()), along_cols(rows_, 0);
    for (Index y = 0; y < rows_; ++y) along_rows(data.data() + y * cols_, 1);
    for (Index x = 0; x < cols_; ++x) along_cols(data.data() + x, cols_);
  }
  // The conjugate of the cross spectrum. Kept for the faults that follow: it is most of the time of
  // a test, and only faults of passes change it.
  std::vector<Complex> product(const float* left, const float* right) const {
    static std::map<std::vector<float>, std::vector<Complex>> kept;
    const Index outputs = rows_ * cols_;
    const bool keep = bare() == 0 && outputs >= 1 << 18;
    std::vector<float> key(left, left + problem_.left.size());
    key.insert(key.end(), right, right + problem_.right.size());
    if (keep && kept.count(key)) return kept.at(key);
    std::vector<Complex> l = spectrum(left, problem_.left);
    const std::vector<Complex> r = spectrum(right, problem_.right);
    for (std::size_t i = 0; i < l.size(); ++i) l[i] *= std::conj(r[i]);
    if (!keep) return l;
    if (kept.size() == 4) kept.clear();  // as many as there are kinds of input
    return kept.emplace(std::move(key), std::move(l)).first->second;
  }
  std::vector<Complex> spectrum(const float* matrix, Shape shape) const {
    std::vector<Complex> data(static_cast<std::size_t>(rows_ * cols_));
    for (Index i = 0; i < shape.size(); ++i) {
      data[static_cast<std::size_t>(i / shape.cols * cols_ + i % shape.cols)] =
          static_cast<double>(matrix[i]);
    }
    transform(data);
    return data;
  }
};

// Left and right as the two parts of one complex array in float32, as they are: the smaller one gets
// rounding errors in proportion to the larger one.
struct Shared : Sound {
  using Sound::Sound;

  void compute(const Call& call) override {
    const Index rows = padded(problem_.left.rows, problem_.right.rows);
    const Index cols = padded(problem_.left.cols, problem_.right.cols);
    using Values = std::vector<std::complex<float>>;
    fp32::Transform transform(rows, cols);
    const auto at = [&](Index y, Index x) {
      return static_cast<std::size_t>((y + rows) % rows * cols + (x + cols) % cols);
    };
    float* out = call.outs<float>();
    for (Index p = 0; p < problem_.pairs(); ++p) {
      const float* const l = left(call, problem_.pair(p).left);
      const float* const r = right(call, problem_.pair(p).right);
      Values both(static_cast<std::size_t>(rows * cols)), product(both.size());
      for (Index i = 0; i < problem_.left.size(); ++i) {
        both[at(i / problem_.left.cols, i % problem_.left.cols)].real(l[i]);
      }
      for (Index i = 0; i < problem_.right.size(); ++i) {
        both[at(i / problem_.right.cols, i % problem_.right.cols)].imag(r[i]);
      }
      both = transform.run(std::move(both), true);
      for (Index y = 0; y < rows; ++y) {
        for (Index x = 0; x < cols; ++x) {
          const std::complex<float> here = both[at(y, x)], mirror = std::conj(both[at(-y, -x)]);
          const std::complex<float> of_left = 0.5f * (here + mirror),
                                    of_right = std::complex<float>(0, -0.5f) * (here - mirror);
          product[at(y, x)] = of_left * std::conj(of_right);  // conjugated, as the inverse wants it
        }
      }
      product = transform.run(std::move(product), true);
      const float scale = 1 / static_cast<float>(rows * cols);
      each_shift(problem_,
                 [&](Index sy, Index sx) { *out++ = scale * product[at(sy, sx)].real(); });
    }
  }
};

// A fault that F(plan, spectrum of a pair) makes.
template <typename F>
struct WrongBins : SoundSpectra {
  using SoundSpectra::SoundSpectra;
  void spoil(std::vector<Complex>& spectrum) override { F{}(*this, spectrum); }
};
// Twiddles of one pass along rows are gone: of the last one, or of one in the middle.
template <int kDivisor>
struct TwiddlesGone : SoundSpectra {
  using SoundSpectra::SoundSpectra;
  Index bare() const override { return cols_ / kDivisor; }
};

bool add_transform(const char* id, const char* summary, decltype(Variant::plan) plan) {
  Variant variant;
  variant.algorithm_class = AlgorithmClass::fft;
  return add_variant(id, summary, plan, std::move(variant));
}
template <std::invocable<SoundSpectra&, std::vector<Complex>&> F>
bool add_transform(const char* id, const char* summary, F) {
  return add_transform(id, summary, make_plan<WrongBins<F>>);
}

using Spectrum = std::vector<Complex>;

const bool kAdded[] = {
    add_transform("broken_shared", "Both sides as they are in one complex transform",
                  make_plan<Shared>),
    add_transform("broken_no_spectrum", "Right, the control of transforms",
                  make_plan<SoundSpectra>),
    add_transform("broken_bin_lost", "One frequency bin is 0",
                  [](SoundSpectra& of, Spectrum& s) { of.both(s, [](Complex& v) { v = 0; }); }),
    add_transform(
        "broken_bin_conjugated", "One frequency bin is conjugated",
        [](SoundSpectra& of, Spectrum& s) { of.both(s, [](Complex& v) { v = std::conj(v); }); }),
    add_transform("broken_bins_swapped", "Two frequency bins are swapped",
                  [](SoundSpectra& of, Spectrum& s) {
                    const Index y = of.rows_ / 3, x = of.cols_ / 5;
                    std::swap(of.bin(s, y, x), of.bin(s, y, x + 1));
                    std::swap(of.bin(s, -y, -x), of.bin(s, -y, -x - 1));
                  }),
    add_transform("broken_bin_off", "One frequency bin is off by 1 %",
                  [](SoundSpectra& of, Spectrum& s) { of.both(s, [](Complex& v) { v *= 1.01; }); }),
    add_transform("broken_nyquist", "The Nyquist column is lost",
                  [](SoundSpectra& of, Spectrum& s) {
                    for (Index y = 0; y < of.rows_; ++y) of.bin(s, y, of.cols_ / 2) = 0;
                  }),
    add_transform("broken_twiddles", "The last pass has no twiddles", make_plan<TwiddlesGone<1>>),
    add_transform("broken_middle_twiddles", "A pass in the middle has no twiddles",
                  make_plan<TwiddlesGone<2>>),
};

}  // namespace
}  // namespace xcorr::broken
