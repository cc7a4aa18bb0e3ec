// Padding, products, scores, layout and chunks of the FFT pipelines around a transform by its definition.
#include "algorithms/fft/chunks.hpp"
#include "algorithms/fft/cufft/products.hpp"
#include "algorithms/fft/cufft/scores.hpp"
#include "tests/emulation/support.hpp"
#include "tests/support/field_reference.hpp"

namespace xcorr::fft {
namespace {

using Complex = std::complex<float>;

// Transforms of a slot: sign -1 forward, +1 inverse, not scaled. `half`: the spectrum holds columns up to cols / 2 only.
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
    for (Index y = 0; y < g.rows; ++y) {
      emulation::transform_line(out.data() + y * g.cols, 1, g.cols, sign < 0);
    }
    for (Index x = 0; x < g.cols; ++x) {
      emulation::transform_line(out.data() + x, g.cols, g.rows, sign < 0);
    }
    return out;
  }
};

void forward(const FftGeometry& g, const float* images, Complex* spectra) {
  const Index slot = g.by_rows ? g.pitch : g.spectrum;
  const Dft dft{g, g.by_rows ? g.input_slots() * g.pitch : g.pitch};
  ASSERT_TRUE(g.complex || g.cols % 2 == 0) << "cuFFT makes one array of two such matrices";
  for (Index s = 0; s < g.input_slots(); ++s) {
    const float* from = images + s * g.in.slot;
    std::vector<std::complex<double>> in;
    for (Index y = 0; y < g.rows; ++y) {
      for (Index x = 0; x < g.cols; ++x) {
        const float* at = from + y * g.in.row + x * g.parts();
        in.emplace_back(at[0], g.complex ? at[1] : 0.0f);
      }
    }
    const auto out = dft.transform(in, -1);
    for (Index y = 0; y < g.rows; ++y) {
      for (Index x = 0; x < g.used_cols(); ++x) {
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
    const auto out = dft.transform(dft.read(products + s * slot, !g.complex), 1);
    for (Index y = 0; y < g.rows; ++y) {
      for (Index x = 0; x < g.cols; ++x) {
        const auto value = out[static_cast<std::size_t>(y * g.cols + x)];
        float* at = images + s * g.out.slot + y * g.out.row + x * g.parts();
        at[0] = static_cast<float>(value.real());
        if (g.complex) at[1] = static_cast<float>(value.imag());
      }
    }
  }
}

struct Inputs {
  std::vector<float> left, right;
};

// How a problem is cut; `most_outputs` splits the launches that write outputs.
struct Cut {
  Transform transform = Transform::real;
  Index chunk_bytes = Index{1} << 20, all_spectra_bytes = 0, most_outputs = kCropOutputs;
};

// Correlates in chunks as `cufft` does.
std::vector<float> correlate(const Problem& q, const Inputs& in, const Cut& cut = {}) {
  const FftChunks at =
      fft_chunks(q, sizeof(float), cut.transform, cut.chunk_bytes, cut.all_spectra_bytes);
  const FftGeometry& g = at.g;
  Workspace counted(nullptr);
  FftMemory<float, Complex>(at, counted);
  const GlobalMemory bytes(counted.bytes());
  std::fill_n(bytes.get<char>(), counted.bytes(), '\0');
  Workspace workspace(bytes.get());
  const FftMemory<float, Complex> memory(at, workspace);
  float* const images = memory.images;
  Complex *const lefts = memory.spectra, *const products = memory.products;
  const Index slot = g.by_rows ? g.pitch : g.spectrum;
  const bool n_to_m = q.form == Form::n_to_m;
  const Score& score = q.fields.score;
  std::vector<double> norms(static_cast<std::size_t>(matrix_norms(g)), NAN);
  std::vector<float> out(static_cast<std::size_t>(q.pairs() * q.out_size()), -1.0f);
  for (Index l = 0; l < q.lefts; l += at.chunk.lefts) {
    for (Index r = 0; r < g.pair_pitch; r += at.chunk.rights) {
      const Index part_lefts = std::min(at.chunk.lefts, q.lefts - l);
      const Index part_rights = std::min(at.chunk.rights, g.pair_pitch - r);
      const Index pair = l * g.pair_pitch + r;
      FftChunk<float> chunk{
          in.left.data(), in.right.data(), out.data() + pair * q.out_size(), q.lefts, 1, q.rights,
          part_lefts,     part_rights};
      if (!at.all_spectra) {
        chunk.left = in.left.data() + l * q.left.size();
        chunk.right = in.right.data() + (n_to_m ? r : pair) * q.right.size();
        chunk.lefts = part_lefts;
        chunk.right_runs = n_to_m ? 1 : part_lefts;
        chunk.rights = part_rights;
      }
      if (!at.all_spectra || pair == 0) {
        pad(g, chunk, images, nullptr);
        if (score.kind != ScoreKind::product) remove_means(g, images, norms.data(), nullptr);
        forward(g, images, lefts);
      }
      const Complex* first_left = lefts + (at.all_spectra ? l * slot : 0);
      const Complex* first_right =
          lefts + (g.left_slots + (at.all_spectra ? r / g.pack : 0)) * slot;
      if (score.kind == ScoreKind::phase) {
        const double* left_norms = norms.data() + (at.all_spectra ? l : 0);
        const double* right_norms = norms.data() + g.left_slots + (at.all_spectra ? r : 0);
        phase_products<float>(g, first_left, first_right, left_norms, right_norms, products,
                              part_lefts, part_rights, n_to_m, score.exponent, nullptr);
      } else {
        hadamard<float>(g, first_left, first_right, products, part_lefts,
                        ceil_div(part_rights, g.pack), n_to_m, nullptr);
      }
      inverse(g, products);
      crop(g, chunk, reinterpret_cast<const float*>(products), 1.0f, nullptr, cut.most_outputs);
    }
  }
  return out;
}

std::vector<float> numbers(Index count, Index factor, Index modulus, float offset) {
  std::vector<float> found;
  for (Index i = 0; i < count; ++i) {
    found.push_back(static_cast<float>(i * factor % modulus) + offset);
  }
  return found;
}

Inputs inputs(const Problem& q, float left_offset = -4, float right_offset = -6) {
  return {numbers(q.left_elements(), 7, 11, left_offset),
          numbers(q.right_elements(), 5, 13, right_offset)};
}

std::vector<FieldValue> reference(const Problem& q, const Inputs& in) {
  const auto fill = [&](Side side, Index i) {
    return double{(side == Side::left ? in.left : in.right)[static_cast<std::size_t>(i)]};
  };
  return field_reference(q, FieldInput(q, Side::left, fill), FieldInput(q, Side::right, fill));
}

// An output of v is off by at most relative * max(1, |v|) + absolute.
void expect_right(const Problem& q, const Inputs& in, const std::vector<FieldValue>& want,
                  double relative, double absolute, const Cut& cut = {}) {
  const std::vector<float> out = correlate(q, in, cut);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const double value = want[i].value;
    ASSERT_NEAR(out[i], value, relative * std::max(1.0, std::abs(value)) + absolute)
        << q.id() << " output " << i << " transform " << static_cast<int>(cut.transform)
        << " chunk " << cut.chunk_bytes << " most " << cut.most_outputs;
  }
}

TEST(FftLayout, every_form_transform_chunk_and_split_correlates) {
  for (const Problem& q :
       problems_of({"one-to-one/3x5/3x5/1:1", "one-to-many/3x5/3x5/1:7", "n-to-mn/3x5/3x5/3:9",
                    "n-to-mn/3x5/3x5/2:8", "n-to-m/3x5/3x5/3:5", "one-to-one/2x7/5x4/1:1",
                    "one-to-many/2x7/5x4/1:7", "n-to-mn/2x7/5x4/3:9", "n-to-mn/2x7/5x4/2:8",
                    "n-to-m/2x7/5x4/3:5"},
                   {"/full", "/sy:-1..2,sx:0..3"})) {
    const Inputs in = inputs(q);
    const std::vector<FieldValue> want = reference(q, in);
    for (const Transform transform :
         {Transform::real, Transform::complex, Transform::complex_rows}) {
      for (const Index spectra : {3, 6, 100}) {
        const Index chunk = spectra * fft_chunks(q, 4, transform, 1, 0).g.spectrum * 8;
        expect_right(q, in, want, 0, 0.01, {transform, chunk});
        expect_right(q, in, want, 0, 0.01, {transform, chunk, Index{1} << 20, 50});
      }
      expect_right(q, in, want, 0, 0.01, {transform, Index{1} << 20, 0, 20});
      if (HasFailure()) return;
    }
  }
}

TEST(FftLayout, circular_scores_in_chunks) {
  for (const Problem& q : problems_of(
           {"one-to-one/1x1/1x1/1:1/full", "one-to-many/5x1/5x1/1:3/full",
            "n-to-mn/4x7/4x7/2:6/full", "n-to-mn/1x12/1x12/2:2/sy:0..0,sx:-6..-2",
            "n-to-m/7x6/7x6/3:2/sy:-1..3,sx:-3..1", "one-to-one/33x50/33x50/1:1/sy:-1..1,sx:0..24"},
           {"/boundary=circular", "/boundary=circular/score=covariance",
            "/boundary=circular/score=phase:0", "/boundary=circular/score=phase:0.5"})) {
    const Inputs in = inputs(q);
    const std::vector<FieldValue> want = reference(q, in);
    const double lost = q.fields.score.kind == ScoreKind::covariance ? 1e-4 : 0;
    for (const Index spectra : {3, 100}) {
      const Index chunk = spectra * fft_chunks(q, 4, Transform::real, 1, 0).g.spectrum * 8;
      emulation::set_order(static_cast<std::uint64_t>(spectra));
      for (const Index all_spectra_bytes : {Index{0}, Index{1} << 20}) {
        expect_right(q, in, want, 1e-5, lost, {Transform::real, chunk, all_spectra_bytes});
      }
      if (HasFatalFailure()) return;
    }
  }
}

TEST(FftLayout, means_are_removed_of_an_offset_too) {
  // Padded on all sides: what is beyond the matrices stays 0.
  const Problem q = parse_problem("n-to-mn/3x5/4x6/2:4/full/score=covariance");
  const Inputs in = inputs(q, 1e4f, -1e4f);
  expect_right(q, in, reference(q, in), 0, 1e-3);
}

// One frequency, among the bins of the second block, is so large that all others are below the floor.
TEST(FftLayout, phase_divides_small_bins_by_the_floor) {
  for (const Problem& q : problems_of({"one-to-one/33x50/33x50/1:1/full/boundary=circular/score="},
                                      {"phase:0", "phase:0.25"})) {
    Inputs in = inputs(q, -5);
    for (Index i = 0; i < q.left.size(); ++i) {
      const double turns =
          static_cast<double>(16 * (i / 50)) / 33 + static_cast<double>(5 * (i % 50)) / 50;
      const auto wave = static_cast<float>(1e4 * std::cos(2 * std::numbers::pi * turns));
      in.left[static_cast<std::size_t>(i)] += wave;
      in.right[static_cast<std::size_t>(i)] += wave;
    }
    expect_right(q, in, reference(q, in), 1e-5, 0);
  }
}

// The covariance too: the rounding of equal elements would be a peak somewhere.
TEST(FftLayout, phase_of_equal_elements_is_zero) {
  const Problem q = parse_problem("one-to-many/4x5/4x5/1:2/full/boundary=circular/score=phase:0");
  for (const float value : {0.0f, 0.1f, 1e5f / 3}) {
    Inputs in = {numbers(q.left_elements(), 7, 17, -4), numbers(q.right_elements(), 5, 19, -6)};
    std::fill_n(in.right.begin(), q.right.size(), value);
    for (const ScoreKind score : {ScoreKind::phase, ScoreKind::covariance}) {
      Problem scored = q;
      scored.fields.score.kind = score;
      const auto out = correlate(scored, in);
      EXPECT_EQ(std::count(out.begin(), out.begin() + q.out_size(), 0.0f), q.out_size());
    }
    expect_right(q, in, reference(q, in), 1e-5, 0);
  }
}

TEST(FftLayout, phase_is_the_same_at_every_scale) {
  const Problem q = parse_problem("one-to-one/8x9/8x9/1:1/full/boundary=circular/score=phase:0");
  std::vector<std::vector<float>> outs;
  for (const float scale : {1.0f, 0x1p60f, 0x1p-60f}) {
    Inputs in = inputs(q);
    for (auto* side : {&in.left, &in.right}) {
      for (float& value : *side) value *= scale;
    }
    outs.push_back(correlate(q, in));
  }
  EXPECT_EQ(outs[0], outs[1]);
  EXPECT_EQ(outs[0], outs[2]);
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
