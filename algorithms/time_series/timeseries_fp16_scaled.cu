// timeseries_fp16 with local scaling, which the TF32 paper describes as the method for Volta. Half
// has a small range, so both operands are multiplied by factors before they are rounded, and the
// products are divided by the factors. Factors are powers of two and thus exact. They bring the
// largest input of a block of inputs to between 2^14 and 2^15.
//
// A block of a template is 16 samples, one step. A block of the signal is the 31 samples of a tile
// of 16 samples x 16 shifts (two products); its largest is the largest of 4 times 8 samples. The
// largest of 16 and of 8 samples is found with shuffles when the samples are staged. The signal
// stays float32 in shared memory, because neighbouring tiles share samples but not factors. A lane
// rounds a tile to half when it loads it, once for all steps that use the tile. A product starts
// from zero and is added to the sums after multiplication by the inverses of both factors, which
// needs a second set of registers.
//
// Parameters: those of timeseries_tf32. Limits: compute capability 8.0. If the product of the
// largest inputs of two blocks is below 2^-100 their sums may become 0, above 2^120 infinite. An
// infinity or a NaN may reach outputs up to 30 shifts away from those whose windows contain it.
#include <bit>

#include "algorithms/blocks/float_order.hpp"
#include "algorithms/time_series/warp_plan.hpp"
#include "harness/variant.hpp"

namespace xcorr::time_series {
namespace {

// A factor and its inverse for a block whose largest input has these bits.
struct Scale {
  __device__ __forceinline__ explicit Scale(std::uint32_t largest) {
    // Both factors are normal numbers.
    const std::uint32_t exponent = larger(largest >> 23, 15);
    times = std::bit_cast<float>((268 - exponent) << 23);
    back = std::bit_cast<float>((exponent - 14) << 23);
  }
  __device__ static __forceinline__ std::uint32_t larger(std::uint32_t a, std::uint32_t b) {
    return a > b ? a : b;
  }
  float times, back;
};

// The largest of the values of eight neighbouring lanes.
__device__ __forceinline__ std::uint32_t largest_of_eight(std::uint32_t bits) {
#pragma unroll
  for (int mask = 1; mask < 8; mask *= 2) {
    bits = Scale::larger(bits, warp::shuffle_xor(bits, mask));
  }
  return bits;
}

class ScaledFp16 {
 public:
  static constexpr int kStep = 16, kTileColumns = 16, kNew = 1, kExtra = 0, kRegisters = 9;
  static constexpr int kBlock = 8;  // samples of the signal whose largest is stored
  // A tile of 16 shifts; the second 8 shifts use words 1 and 2.
  struct Tile {
    std::uint32_t b[3];
    float back;
  };
  struct Left {
    Words words;
    float back[2];  // of the lane's two templates
  };

  static std::size_t words(int panel, int shifts) {
    return static_cast<std::size_t>(panel / 2 * kGroup + panel + panel + shifts +
                                    (panel + shifts) / kBlock);
  }
  __device__ ScaledFp16(std::uint32_t* shared, int panel, int shifts)
      : templates_(shared),
        backs_(reinterpret_cast<float*>(templates_ + panel / 2 * kGroup)),
        signal_(backs_ + panel),
        largest_(reinterpret_cast<std::uint32_t*>(signal_ + panel + shifts)) {}

  __device__ __forceinline__ void stage_templates(const TemplatePart& part, int steps,
                                                  const Copier& copier) const {
    const int words = steps * kStep / 2;
    for (int row = copier.warp; row < kGroup; row += copier.warps) {
#pragma unroll 1
      for (int begin = 0; begin < words; begin += warp::kSize) {
        const int i = begin + warp::lane();
        const float first = part(row, 2 * i), second = part(row, 2 * i + 1);
        const Scale scale(largest_of_eight(Scale::larger(size_bits(first), size_bits(second))));
        if (i >= words) continue;
        templates_[fragment_place(row, i)] =
            matrix::to_halves(first * scale.times, second * scale.times);
        if (i % 8 == 0) backs_[i / 8 * kGroup + row] = scale.back;
      }
    }
  }
  // `samples` is a multiple of kBlock.
  __device__ __forceinline__ void stage_signal(const SignalPart& part, int samples,
                                               const Copier& copier) const {
#pragma unroll 2
    for (int begin = copier.warp * warp::kSize; begin < samples; begin += copier.threads) {
      const int i = begin + warp::lane();
      const float value = part(i);
      const std::uint32_t largest = largest_of_eight(size_bits(value));
      if (i < samples) {
        signal_[i] = value;
        if (i % kBlock == 0) largest_[i / kBlock] = largest;
      }
    }
  }

  template <int kTiles>
  __device__ __forceinline__ void correlate(Sums<kTiles>& sums, int from, int steps) const {
    add_keeping_tiles(*this, sums, from, steps);
  }

  __device__ __forceinline__ Left left(int step) const {
    const float* const backs = backs_ + step * kGroup + static_cast<unsigned>(warp::lane()) / 4;
    return {fragment(templates_, step), {backs[0], backs[8]}};
  }
  __device__ __forceinline__ Tile tile(int at) const {
    const std::uint32_t* const blocks = largest_ + static_cast<unsigned>(at) / kBlock;
    const Scale scale(
        Scale::larger(Scale::larger(blocks[0], blocks[1]), Scale::larger(blocks[2], blocks[3])));
    const auto lane = static_cast<unsigned>(warp::lane());
    const float* const mine = signal_ + at + (lane / 4 + lane % 4 * 2);
    Tile tile;
#pragma unroll
    for (int i = 0; i < 3; ++i) {
      tile.b[i] = matrix::to_halves(mine[8 * i] * scale.times, mine[8 * i + 1] * scale.times);
    }
    tile.back = scale.back;
    return tile;
  }
  template <int kTiles>
  __device__ __forceinline__ void add(Sums<kTiles>& sums, const Left& left,
                                      const Tile* tiles) const {
#pragma unroll
    for (int j = 0; j < kTiles; ++j) {
      const Tile& tile = tiles[j / 2];
      float c[4] = {};
      matrix::add_product_half(c, left.words.of, tile.b[j % 2], tile.b[j % 2 + 1]);
      const float upper = left.back[0] * tile.back, lower = left.back[1] * tile.back;
      sums.d[j][0] += c[0] * upper;
      sums.d[j][1] += c[1] * upper;
      sums.d[j][2] += c[2] * lower;
      sums.d[j][3] += c[3] * lower;
    }
  }

 private:
  std::uint32_t* templates_;
  float* backs_;  // [steps][templates]
  float* signal_;
  std::uint32_t* largest_;  // bits of the largest magnitude of each kBlock samples
};

using Shifts = PointAxis<Values<32, 64, 96, 128>, Values<32, 96, 128>>;

XCORR_VARIANT({
    .summary = "timeseries_fp16 whose operands are scaled by blocks, the TF32 paper's Volta method",
    .parent = "timeseries_fp16",
    .source = "the TF32 paper, section 2.2",
    .backend = Backend::cuda,
    .precisions = {Precision::fp16},
    .forms = {Form::n_to_m},
    .axes = {Shifts::axis("shifts_per_warp"), {"warps_per_block", {"4", "8"}}},
    .supports = supports_by_warps<products_by_shifts<ScaledFp16, Shifts>>,
    .plan = plan_by_warps<products_by_shifts<ScaledFp16, Shifts>>,
});

}  // namespace
}  // namespace xcorr::time_series
