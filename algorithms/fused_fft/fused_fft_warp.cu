// One warp for one, two or four rights: a lane holds a whole row or a whole column of a padded tile
// in registers.
#include "algorithms/device/divide.hpp"
#include "algorithms/device/fused_fft_plan.hpp"
#include "algorithms/device/lane_fft.hpp"
#include "harness/variant.hpp"

namespace xcorr {
namespace {

using Squares = Lengths<16, 32, 64>;

constexpr int most_warps(int n) { return n <= 16 ? 20 : n <= 32 ? 16 : 12; }

struct alignas(16) Quad {
  float v[4];
};

struct Arguments : FusedProblem {
  std::uint32_t rights_of_left, chunks, chunk;  // blocks of a left, rights of one of them
  std::uint32_t rights_back;
  int quads;  // whether rows of the inputs are whole aligned quads
  int signs;  // whether the rotation is by half of both axes
};

template <int kN>
struct LaneTile {
  static constexpr int half = kN / 2, tiles = 32 / half, pitch = half + 1, elements = kN * pitch;
  static constexpr bool mates = tiles > 1;
};

// Row `row` of a real matrix, as kCount complex values.
template <int kCount>
__device__ __forceinline__ void load_row(const Source& from, int row, bool quads,
                                         Complex (&z)[kCount]) {
  const float* data = from.data + row * from.cols;
  if (quads) {
#pragma unroll
    for (int s = 0; s < kCount; s += 2) {
      Quad q{};
      if (row < from.rows && 2 * s < from.cols) q = *reinterpret_cast<const Quad*>(data + 2 * s);
      z[s] = {q.v[0], q.v[1]};
      z[s + 1] = {q.v[2], q.v[3]};
    }
  } else {
#pragma unroll
    for (int s = 0; s < kCount; ++s) {
      z[s].re = row < from.rows && 2 * s < from.cols ? data[2 * s] : 0.0f;
      z[s].im = row < from.rows && 2 * s + 1 < from.cols ? data[2 * s + 1] : 0.0f;
    }
  }
}

// A row's spectrum into the tile; edge: where frequency 0 goes, n / 2 to the mate's.
template <int kN, int kInputs>
__device__ __forceinline__ void forward_row(const Source& from, int row, bool quads, Complex* to,
                                            float* edge) {
  using T = LaneTile<kN>;
  Complex z[T::half];
  Complex part[kInputs];
  load_row(from, row, quads, part);
#pragma unroll
  for (int s = 0; s < kInputs; ++s) z[s] = part[s];
  transform<T::half, Direction::forward, kInputs>(z);
  untangle(z);
  if constexpr (T::mates) {
    edge[0] = z[0].re;
    edge[2 * T::elements] = z[0].im;
  } else {
    to[0] = z[0];
  }
#pragma unroll
  for (int k = 1; k < T::half; ++k) to[k] = z[k];
}

template <int kN>
__global__ void __launch_bounds__(32 * most_warps(kN), 1) warp_kernel(Arguments a) {
  using T = LaneTile<kN>;
  constexpr int kHalf = T::half, kPitch = T::pitch;
  Complex* const left_spectrum = dynamic_shared<Complex>();  // kN x kPitch, column kHalf: below
  Complex* const tiles = left_spectrum + T::elements;
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int warps = static_cast<int>(blockDim.x) / 32;
  const int of_warp = lane / kHalf, j = lane % kHalf;
  Complex* const warp_tiles = tiles + warp * T::tiles * T::elements;
  Complex* const tile = warp_tiles + of_warp * T::elements;
  // Mates' edges: part of_warp % 2 of column 0 of the even tile and of the odd one.
  float* const edge = T::mates ? &(tile - of_warp % 2 * T::elements)->re + of_warp % 2 : nullptr;
  Complex* const row_j = tile + j * kPitch;

  const std::uint32_t l = blockIdx.x / a.chunks, m = a.rights_of_left;
  const int begin = static_cast<int>((blockIdx.x - l * a.chunks) * a.chunk);
  const int end = static_cast<int>(begin + a.chunk < m ? begin + a.chunk : m);
  const int step = warps * T::tiles;
  // What this lane multiplies with; frequency n / 2 for lane 0 of an odd tile.
  const Complex* const mine = left_spectrum + (T::mates && j == 0 && of_warp % 2 == 1 ? kHalf : j);
  constexpr int kOfLeft = T::mates ? 2 : 1;  // tiles that the left takes in the first round

#pragma unroll 1
  for (int round = 0;; ++round) {
    const int first = begin - kOfLeft + round * step + warp * T::tiles;
    const bool lefts = round == 0 && warp == 0;
    const int r = first + of_warp;
    const bool works = r >= begin && r < end;
    Source from{a.left, 0, 0};
    if (works) from = a.right_of(l * (m - a.rights_back) + r);
    if (lefts && of_warp == 0) from = a.left_of(l);
    // Mates share columns, so all tiles have the rows of the one with most.
    const int rows = !T::mates ? from.rows : a.left_rows > a.right_rows ? a.left_rows : a.right_rows;
    Complex v[kN];
    if (round == 0 || first < end) {
#pragma unroll 1
      for (int row = j; row == j || row < rows; row += kHalf) {
        const int at = (row - j) * kPitch;
        if (from.cols <= kHalf) {
          forward_row<kN, kHalf / 2>(from, row, a.quads, row_j + at, edge + 2 * row * kPitch);
        } else {
          forward_row<kN, kHalf>(from, row, a.quads, row_j + at, edge + 2 * row * kPitch);
        }
      }
    }
    warp::barrier();
    if (rows <= kHalf) {
#pragma unroll
      for (int y = 0; y < kHalf; ++y) v[y] = tile[y * kPitch + j];
      lane_transform<kN, Direction::forward, kHalf>(v);
    } else {
#pragma unroll
      for (int y = 0; y < kN; ++y) {
        v[y] = y < kHalf || y < rows ? tile[y * kPitch + j] : Complex{0.0f, 0.0f};
      }
      lane_transform<kN, Direction::forward>(v);
    }
    if (round == 0) {
      if (lefts) {
        const Complex* const powers_x = a.roots + 2 * kRootTable;
        const Complex* const powers_y = powers_x + kRootTable;
        const bool of_half = T::mates && j == 0 && of_warp == 1;
        const int kx = of_half ? kHalf : j;
        Complex* const to = left_spectrum + kx;
        Complex of_column = {a.scale, 0.0f};
        if (!a.signs) of_column = {a.scale * powers_x[kx * a.turn_x % kN].re, a.scale * powers_x[kx * a.turn_x % kN].im};
        const float sign = kx % 2 == 0 ? a.scale : -a.scale;
        Complex half_turn = {1.0f, 0.0f};
        if constexpr (!T::mates) half_turn = powers_x[kHalf * a.turn_x % kN];
        if (of_warp == 0 || of_half) {
          for_each_constant<kN>([&](auto index) {
            constexpr int k = decltype(index)::value;
            Complex phase = {k % 2 == 0 ? sign : -sign, 0.0f};
            if (!a.signs) phase = of_column * powers_y[k * a.turn_y % kN];
            Complex value = v[k];
            if constexpr (!T::mates) {
              if (j == 0) {
                const Complex other = conj(v[(kN - k) % kN]);
                const Complex s = (value + other), d = value - other;
                const Complex la = {0.5f * s.re, 0.5f * s.im};
                const Complex lb = Complex{0.5f * d.im, -0.5f * d.re} * half_turn;
                const Complex cross = conj((la - lb) * phase);
                left_spectrum[k * kPitch + kHalf] = {0.5f * cross.re, 0.5f * cross.im};
                value = {0.5f * (la.re + lb.re), 0.5f * (la.im + lb.im)};
              }
            }
            to[k * kPitch] = conj(value * phase);
          });
        }
      }
      block::barrier();
      if (lefts && T::tiles == kOfLeft) continue;
    }
    if (first >= end) break;
    if constexpr (T::mates) {
#pragma unroll
      for (int k = 0; k < kN; ++k) v[k] = v[k] * mine[k * kPitch];
    } else {
#pragma unroll
      for (int k = 0; k <= kN / 2; ++k) {
        const int mirror = (kN - k) % kN;
        const Complex p = v[k], q = v[mirror];
        v[k] = p * mine[k * kPitch];
        if (mirror != k) v[mirror] = q * mine[mirror * kPitch];
        if (j == 0) {
          const Complex cross = left_spectrum[k * kPitch + kHalf];
          v[k] = v[k] + cross * conj(q);
          if (mirror != k) v[mirror] = v[mirror] + conj(cross * p);
        }
      }
    }
    lane_transform<kN, Direction::inverse>(v);
    warp::barrier();
#pragma unroll
    for (int y = 0; y < kN; ++y) tile[y * kPitch + j] = v[y];
    warp::barrier();

    const Index size = static_cast<Index>(a.rows.count) * a.cols.count;
    const Index p = static_cast<Index>(l) * m + r;
    // The tile becomes the dense output, with the alignment that it has in global memory.
    const int shift = static_cast<int>((reinterpret_cast<std::uintptr_t>(a.out) / 4 + p * size) % 4);
    float* const dense = &tile->re + shift;
#pragma unroll 1
    for (int y = j; y < kN; y += kHalf) {
      Complex x[kHalf];
      if constexpr (T::mates) {
        x[0] = {edge[2 * y * kPitch], edge[2 * y * kPitch + 2 * T::elements]};
      } else {
        x[0] = tile[y * kPitch];
      }
#pragma unroll
      for (int k = 1; k < kHalf; ++k) x[k] = tile[y * kPitch + k];
      tangle(x);
      transform<kHalf, Direction::inverse>(x);
      warp::barrier();
      if (a.rows.has(y)) {
        float* const to = dense + (y - a.rows.first) * a.cols.count - a.cols.first;
#pragma unroll
        for (int k = 0; k < kHalf; ++k) {
          if (a.cols.has(2 * k)) to[2 * k] = x[k].re;
          if (a.cols.has(2 * k + 1)) to[2 * k + 1] = x[k].im;
        }
      }
    }
    warp::barrier();
#pragma unroll 1
    for (int t = 0; t < T::tiles; ++t) {
      const int right = first + t;
      if (right < begin || right >= end) continue;
      float* const out = a.out + (static_cast<Index>(l) * m + right) * size;
      const int begins = static_cast<int>(reinterpret_cast<std::uintptr_t>(out) / 4 % 4);
      const int ends = begins + static_cast<int>(size);
      const float* const from_tile = &(warp_tiles + t * T::elements)->re;
      float* const aligned = out - begins;
#pragma unroll 4
      for (int i = 4 * lane; i < ends; i += 128) {
        if (i >= begins && i + 4 <= ends) {
          *reinterpret_cast<Quad*>(aligned + i) = *reinterpret_cast<const Quad*>(from_tile + i);
        } else {
          for (int e = i; e < i + 4; ++e) {
            if (e >= begins && e < ends) aligned[e] = from_tile[e];
          }
        }
      }
    }
    warp::barrier();
  }
}

template <int kN>
class WarpPlan final : public Plan {
  using T = LaneTile<kN>;

 public:
  explicit WarpPlan(const PlanRequest& request) {
    const Problem& q = request.problem;
    auto* const roots = static_cast<Complex*>(request.workspace);
    store_root_tables<Length<kN>, Length<kN>>(roots, request.stream);
    static_cast<FusedProblem&>(a_) = FusedProblem(q, kN, kN, roots);
    const Index m = q.pairs() / q.lefts;
    a_.rights_of_left = static_cast<std::uint32_t>(m);
    a_.rights_back = q.form == Form::n_to_m ? static_cast<std::uint32_t>(m) : 0;
    a_.quads = q.left.cols % 4 == 0 && q.right.cols % 4 == 0;
    a_.signs = a_.turn_x == kN / 2 && a_.turn_y == kN / 2;
    constexpr int kOfLeft = T::mates ? 2 : 1;
    const Index processors = resident_blocks(reinterpret_cast<const void*>(warp_kernel<kN>),
                                             32 * most_warps(kN), shared_bytes(most_warps(kN)));
    // As many blocks as the device has room for, of as few warps as that takes.
    const Index chunks = std::clamp<Index>(processors / q.lefts, 1, m);
    const Index most = most_warps(kN) * T::tiles;
    Index chunk = ceil_div(m, chunks);
    a_.chunk = static_cast<std::uint32_t>(chunk);
    a_.chunks = static_cast<std::uint32_t>(ceil_div<Index>(m, chunk));
    warps_ = static_cast<unsigned>(std::min(most, chunk + kOfLeft + T::tiles - 1) / T::tiles);
    blocks_ = static_cast<unsigned>(q.lefts * a_.chunks);
  }

  void compute(const Call& call) override {
    a_.left = call.lefts<float>();
    a_.right = call.rights<float>();
    a_.out = call.outs<float>();
    launch(warp_kernel<kN>, dim3(blocks_), dim3(32 * warps_), shared_bytes(warps_), call.stream,
           a_);
  }

 private:
  static std::size_t shared_bytes(unsigned warps) {
    return sizeof(Complex) * T::elements * (1 + warps * T::tiles);
  }
  Arguments a_{};
  unsigned warps_ = 0, blocks_ = 0;
};

Support supports(const PlanRequest& request) { return Squares::supports(request.problem); }
std::size_t workspace_bytes(const PlanRequest&) { return kRootBytes; }
std::unique_ptr<Plan> plan(const PlanRequest& request) {
  return Squares::with(Squares::square(request.problem), [&](auto length) -> std::unique_ptr<Plan> {
    return std::make_unique<WarpPlan<decltype(length)::n>>(request);
  });
}

XCORR_VARIANT({
    .summary = "Transform theorem in the registers of a warp: a lane holds a row or a column",
    .parent = "fused_fft_block",
    .source = "beyond the paper",
    .backend = Backend::cuda,
    .algorithm_class = AlgorithmClass::fft,
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .plan = plan,
});

}  // namespace
}  // namespace xcorr
