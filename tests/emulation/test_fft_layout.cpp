// Padding, products, layout and chunks of the FFT pipelines around a transform by its definition.
#include <gtest/gtest.h>

#include <complex>
#include <numbers>

#include "algorithms/fft/cufft/chunks.hpp"
#include "algorithms/fft/cufft/products.hpp"

namespace xcorr::fft {
namespace {

using Complex = std::complex<float>;

// sign -1: forward; +1: inverse, not scaled. In rows of `pitch`, of a slot; `real` for the half
// spectrum.
struct Dft {
  const FftGeometry& g;
  Index row;  // complex elements from row to row

  std::vector<std::complex<double>> read(const Complex* at, bool half) const {
    std::vector<std::complex<double>> all(static_cast<std::size_t>(g.rows * g.cols));
    for (Index y = 0; y < g.rows; ++y) {
      for (Index x = 0; x < g.cols; ++x) {
        const bool mirrored = half && x > g.cols / 2;
        const Complex value =
            mirrored ? std::conj(at[(g.rows - y) % g.rows * row + g.cols - x]) : at[y * row + x];
        all[static_cast<std::size_t>(y * g.cols + x)] = value;
      }
    }
    return all;
  }

  std::vector<std::complex<double>> transform(const std::vector<std::complex<double>>& in,
                                              double sign) const {
    auto out = in;
    for (const bool columns : {false, true}) {
      const Index n = columns ? g.rows : g.cols, step = columns ? g.cols : 1;
      const auto from = out;
      for (Index line = 0; line < (columns ? g.cols : g.rows); ++line) {
        const Index first = columns ? line : line * g.cols;
        for (Index k = 0; k < n; ++k) {
          std::complex<double> sum = 0;
          for (Index i = 0; i < n; ++i) {
            const double angle = sign * 2 * std::numbers::pi * static_cast<double>(k * i % n) /
                                 static_cast<double>(n);
            sum += from[static_cast<std::size_t>(first + i * step)] * std::polar(1.0, angle);
          }
          out[static_cast<std::size_t>(first + k * step)] = sum;
        }
      }
    }
    return out;
  }
};

void forward(const FftGeometry& g, const float* images, Complex* spectra) {
  const Index slot = g.by_rows ? g.pitch : g.spectrum;
  const Dft dft{g, g.by_rows ? g.input_slots() * g.pitch : g.pitch};
  for (Index s = 0; s < g.input_slots(); ++s) {
    const float* from = images + s * g.in.slot;
    std::vector<std::complex<double>> in;
    for (Index y = 0; y < g.rows; ++y) {
      for (Index x = 0; x < g.cols; ++x) {
        const float* at = from + y * g.in.row + x * g.pack;
        in.emplace_back(at[0], g.pack == 2 ? at[1] : 0.0f);
      }
    }
    const auto out = dft.transform(in, -1);
    for (Index y = 0; y < g.rows; ++y) {
      for (Index x = 0; x < (g.pack == 2 ? g.cols : g.cols / 2 + 1); ++x) {
        spectra[s * slot + y * dft.row + x] =
            Complex(out[static_cast<std::size_t>(y * g.cols + x)]);
      }
    }
  }
}

void inverse(const FftGeometry& g, Complex* products) {
  const Index slot = g.by_rows ? g.pitch : g.spectrum;
  const Dft dft{g, g.by_rows ? g.pair_slots * g.pitch : g.pitch};
  auto* images = reinterpret_cast<float*>(products);
  for (Index s = 0; s < g.pair_slots; ++s) {
    const auto out = dft.transform(dft.read(products + s * slot, g.pack == 1), 1);
    for (Index y = 0; y < g.rows; ++y) {
      for (Index x = 0; x < g.cols; ++x) {
        const auto value = out[static_cast<std::size_t>(y * g.cols + x)];
        float* at = images + s * g.out.slot + y * g.out.row + x * g.pack;
        at[0] = static_cast<float>(value.real());
        if (g.pack == 2) at[1] = static_cast<float>(value.imag());
      }
    }
  }
}

// Correlates in chunks as `cufft` does; `most_outputs` also splits the layout's launches.
std::vector<float> correlate(const Problem& q, Transform transform, Index chunk_bytes,
                             Index all_spectra_bytes, Index most_outputs,
                             const std::vector<float>& left, const std::vector<float>& right) {
  const FftChunks at = fft_chunks(q, sizeof(float), transform, chunk_bytes, all_spectra_bytes);
  const FftGeometry& g = at.g;
  struct alignas(16) Block {
    float at[4];
  };
  std::vector<Block> workspace(static_cast<std::size_t>(at.end / 16));
  char* base = reinterpret_cast<char*>(workspace.data());
  auto* images = reinterpret_cast<float*>(base);
  auto* lefts = reinterpret_cast<Complex*>(base + at.spectra);
  auto* products = reinterpret_cast<Complex*>(base + at.products);
  const Index slot = g.by_rows ? g.pitch : g.spectrum;
  const bool n_to_m = q.form == Form::n_to_m;
  std::vector<float> out(static_cast<std::size_t>(q.pairs() * q.out_size()), -1.0f);
  for (Index l = 0; l < q.lefts; l += at.chunk.lefts) {
    for (Index r = 0; r < g.pair_pitch; r += at.chunk.rights) {
      const Index part_lefts = std::min(at.chunk.lefts, q.lefts - l);
      const Index part_rights = std::min(at.chunk.rights, g.pair_pitch - r);
      const Index pair = l * g.pair_pitch + r;
      FftChunk<float> chunk{
          left.data(), right.data(), out.data() + pair * q.out_size(), q.lefts, 1, q.rights,
          part_lefts,  part_rights};
      if (!at.all_spectra) {
        chunk.left = left.data() + l * q.left.size();
        chunk.right = right.data() + (n_to_m ? r : pair) * q.right.size();
        chunk.lefts = part_lefts;
        chunk.right_runs = n_to_m ? 1 : part_lefts;
        chunk.rights = part_rights;
      }
      if (!at.all_spectra || pair == 0) {
        pad(g, chunk, images, nullptr);
        forward(g, images, lefts);
      }
      const Complex* first_left = lefts + (at.all_spectra ? l * slot : 0);
      const Complex* first_right =
          lefts + (g.left_slots + (at.all_spectra ? r / g.pack : 0)) * slot;
      hadamard<float>(g, first_left, first_right, products, part_lefts,
                      ceil_div(part_rights, g.pack), n_to_m, nullptr);
      inverse(g, products);
      crop(g, chunk, reinterpret_cast<const float*>(products), 1.0f, nullptr, most_outputs);
    }
  }
  return out;
}

void expect_correlates(const Problem& q, Transform transform, Index chunk_bytes,
                       Index all_spectra_bytes, Index most_outputs) {
  std::vector<float> left(static_cast<std::size_t>(q.lefts * q.left.size())),
      right(static_cast<std::size_t>(q.rights * q.right.size()));
  for (std::size_t i = 0; i < left.size(); ++i) left[i] = static_cast<float>(i * 7 % 11) - 4;
  for (std::size_t i = 0; i < right.size(); ++i) right[i] = static_cast<float>(i * 5 % 13) - 6;
  const auto out =
      correlate(q, transform, chunk_bytes, all_spectra_bytes, most_outputs, left, right);
  for (Index p = 0; p < q.pairs(); ++p) {
    const Pair of = q.pair(p);
    for (Index row = 0; row < q.out_rows(); ++row) {
      for (Index col = 0; col < q.out_cols(); ++col) {
        const Index sy = q.window.sy.first + row, sx = q.window.sx.first + col;
        float sum = 0;
        for (Index y = 0; y < q.left.rows; ++y) {
          for (Index x = 0; x < q.left.cols; ++x) {
            if (y + sy < 0 || y + sy >= q.right.rows || x + sx < 0 || x + sx >= q.right.cols)
              continue;
            sum += left[static_cast<std::size_t>(of.left * q.left.size() + y * q.left.cols + x)] *
                   right[static_cast<std::size_t>(of.right * q.right.size() +
                                                  (y + sy) * q.right.cols + x + sx)];
          }
        }
        ASSERT_NEAR(out[static_cast<std::size_t>((p * q.out_rows() + row) * q.out_cols() + col)],
                    sum, 0.01)
            << "pair " << p << " sy " << sy << " sx " << sx << " transform "
            << static_cast<int>(transform) << " chunk " << chunk_bytes << " most " << most_outputs;
      }
    }
  }
}

TEST(FftLayout, every_form_transform_chunk_and_split_correlates) {
  struct Counts {
    Form form;
    Index lefts, rights;
  };
  for (const auto& [form, lefts, rights] :
       {Counts{Form::one_to_one, 1, 1}, Counts{Form::one_to_many, 1, 7},
        Counts{Form::n_to_mn, 3, 9}, Counts{Form::n_to_mn, 2, 8}, Counts{Form::n_to_m, 3, 5}}) {
    for (const auto& [left, right] :
         {std::pair{Shape{3, 5}, Shape{3, 5}}, {Shape{2, 7}, Shape{5, 4}}}) {
      for (const char* window : {"full", "sy:-1..2,sx:0..3"}) {
        const Problem q = make_problem(form, left, right, lefts, rights, window);
        for (const Transform transform :
             {Transform::real, Transform::complex, Transform::complex_rows}) {
          for (const Index spectra : {3, 6, 100}) {
            const Index chunk = spectra * fft_chunks(q, 4, transform, 1, 0).g.spectrum * 8;
            expect_correlates(q, transform, chunk, 0, kCropOutputs);
            expect_correlates(q, transform, chunk, Index{1} << 20, 50);
          }
          expect_correlates(q, transform, Index{1} << 20, 0, 20);
          if (HasFailure()) return;
        }
      }
    }
  }
}

TEST(Divider, quotient_is_exact_for_every_divisor_and_at_the_edges) {
  for (std::int64_t by = 1; by < 3000; ++by) {
    const Divider divider(by);
    const auto b = static_cast<std::uint32_t>(by);
    const std::uint32_t last = 0xffffffffu / b * b;
    for (const std::uint32_t n : {0u, 1u, b - 1, b, b + 1, 7 * b - 1, 7 * b, last - 1, last,
                                  0x7fffffffu, 0x80000000u, 0xfffffffeu, 0xffffffffu}) {
      std::uint32_t rest = n;
      ASSERT_EQ(divider.split(rest), n / b) << n << " / " << by;
      ASSERT_EQ(rest, n % b);
    }
  }
  for (const std::int64_t by :
       {65535ll, 65536ll, 65537ll, 0x7fffffffll, 0x80000000ll, 0x80000001ll, 0xffffffffll}) {
    const Divider divider(by);
    for (const std::uint32_t n : {0u, 65536u, 0x7fffffffu, 0x80000000u, 0xfffffffeu, 0xffffffffu}) {
      ASSERT_EQ(divider.quotient(n), n / static_cast<std::uint32_t>(by)) << n << " / " << by;
    }
  }
}

}  // namespace
}  // namespace xcorr::fft
