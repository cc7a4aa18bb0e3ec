// Textures: the emulated names mean what CUDA's do, and autocorr_cuda_simple_texture copies the
// images of every call.
#include <numeric>

#include "algorithms/device/texture.hpp"
#include "tests/emulation/support.hpp"

namespace xcorr::emulation {
namespace {

__global__ void read_kernel(Texture texture, int y, int x, float* out) {
  *out = texel(texture, y, x);
}

// A texture at every place of the memory, whose matrix is 0, 1, 2 ... by rows.
class OfTexture : public testing::Test {
 protected:
  static constexpr int kRows = 3, kCols = 130;  // a row is not a multiple of the pitch
  void load(OwnTexture& texture, float first = 0) {
    std::vector<float> matrix(kRows * kCols);
    std::iota(matrix.begin(), matrix.end(), first);
    texture.load(matrix.data(), nullptr);
  }
  static float read(const OwnTexture& texture, int y, int x) {
    float value = -1;
    launch(read_kernel, 1, 1, 0, nullptr, texture.get(), y, x, &value);
    return value;
  }
  static std::string refused(float* memory, std::int64_t rows, std::int64_t cols,
                             std::size_t pitch) {
    try {
      destroy_texture(create_texture(memory, rows, cols, pitch), 0);
      return "";
    } catch (const Fault& fault) {
      return fault.what();
    }
  }
};

TEST_F(OfTexture, elements_are_those_of_the_matrix_wherever_the_memory_starts) {
  for (const std::size_t start : {0, 4, 256, 508, 512}) {
    GlobalMemory memory(start + OwnTexture::bytes(kRows, kCols));
    OwnTexture texture(memory.get<char>() + start, kRows, kCols);
    load(texture);
    for (int y = 0; y < kRows; ++y) {
      for (int x = 0; x < kCols; ++x) ASSERT_EQ(read(texture, y, x), y * kCols + x) << start;
    }
    load(texture, 1000);
    EXPECT_EQ(read(texture, 2, 7), 1000 + 2 * kCols + 7);
  }
}

TEST_F(OfTexture, elements_outside_are_a_fault) {
  GlobalMemory memory(OwnTexture::bytes(kRows, kCols));
  OwnTexture texture(memory.get(), kRows, kCols);
  load(texture);
  EXPECT_EQ(read(texture, kRows - 1, kCols - 1), kRows * kCols - 1);
  for (const auto& [y, x] : {std::pair{-1, 0}, {0, -1}, {kRows, 0}, {0, kCols}}) {
    try {
      read(texture, y, x);
      FAIL() << y << " " << x;
    } catch (const Fault& fault) {
      EXPECT_EQ(fault.what(), "texture: element (" + std::to_string(y) + ", " + std::to_string(x) +
                                  ") of 3 x 130");
    }
  }
}

TEST_F(OfTexture, what_a_gpu_refuses_is_a_fault) {
  alignas(512) static float memory[1024];
  EXPECT_EQ(refused(memory, 2, 100, 512), "");
  EXPECT_THAT(refused(memory + 64, 2, 100, 512), testing::HasSubstr("multiple of 512 bytes"));
  EXPECT_THAT(refused(memory, 2, 100, 508), testing::HasSubstr("multiple of 32 bytes"));
  EXPECT_THAT(refused(memory, 2, 129, 512), testing::HasSubstr("less than a row"));
  EXPECT_THAT(refused(memory, 0, 100, 512), testing::HasSubstr("1 to 65000"));
  EXPECT_EQ(refused(memory, 65000, 100, 512), "");
  EXPECT_THAT(refused(memory, 65001, 100, 512), testing::HasSubstr("1 to 65000"));
  EXPECT_EQ(refused(memory, 1, 65000, 260096), "");
  EXPECT_THAT(refused(memory, 1, 65001, 260096), testing::HasSubstr("1 to 65000"));
}

using OfTextureDeathTest = OfTexture;
TEST_F(OfTextureDeathTest, a_texture_of_a_destroyed_plan_is_seen) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  GlobalMemory memory(OwnTexture::bytes(kRows, kCols));
  auto texture = std::make_unique<OwnTexture>(memory.get(), kRows, kCols);
  load(*texture);
  const Texture kept = texture->get();
  texture.reset();
  float value = 0;
  EXPECT_DEATH(launch(read_kernel, 1, 1, 0, nullptr, kept, 0, 0, &value), "heap-use-after-free");
}

struct SimpleTexture : OfVariant {
  SimpleTexture() : OfVariant("autocorr_cuda_simple_texture") {}
  std::string refusal(const std::string& id) const {
    return variant().supports({parse_problem(id), {}, Precision::fp32}).reason;
  }
};

// Calls of one plan with different images at different addresses, as the harness makes them in turn.
TEST_F(SimpleTexture, every_call_has_its_images) {
  const Problem q = parse_problem("n-to-mn/5x9/5x9/3:3/sy:-2..4,sx:-3..8/same=yes");
  std::vector<std::vector<float>> stacks(2);
  for (std::size_t which = 0; which < stacks.size(); ++which) {
    for (Index i = 0; i < q.left_elements(); ++i) {
      stacks[which].push_back(static_cast<float>(std::floor(8 * noise(which, i))));
    }
  }
  Planned planned(variant(), q);
  for (int call = 0; call < 4; ++call) {
    const std::vector<float>& images = stacks[static_cast<std::size_t>(call) % 2];
    planned.compute(images.data(), images.data());
    Index at = 0;
    each_output(q, [&](Index, Pair pair, Index sy, Index sx) {
      const float* const image = images.data() + pair.left * q.left.size();
      ASSERT_EQ(planned.surface()[at++], product_sum(q, image, image, sy, sx)) << call;
    });
  }
}

// The contract aligns a workspace to 256 bytes, a texture starts at a multiple of 512. Rows of 128 pixels fill the pitch.
TEST_F(SimpleTexture, a_workspace_that_starts_between_two_textures) {
  const Problem q = parse_problem("one-to-one/3x128/3x128/1:1/sy:0..2,sx:-1..1/same=yes");
  PlanRequest asked{q, {}, Precision::fp32};
  const std::size_t bytes = variant().workspace_bytes(asked);
  constexpr std::align_val_t kAlignment{512};
  const std::unique_ptr<char, void (*)(char*)> memory(
      static_cast<char*>(::operator new(bytes + 256, kAlignment)),
      [](char* all) { ::operator delete(all, kAlignment); });
  asked.workspace = memory.get() + 256;
  const std::vector<float> image(static_cast<std::size_t>(q.left_elements()), 1);
  std::vector<float> out(static_cast<std::size_t>(q.out_elements()));
  const auto plan = variant().plan(asked);
  plan->compute({.left = image.data(), .right = image.data(), .out = out.data()});
  EXPECT_THAT(out, testing::ElementsAre(381, 384, 381, 254, 256, 254, 127, 128, 127));
}

TEST_F(SimpleTexture, more_rows_or_columns_than_a_texture_has_are_refused) {
  const std::string window = "/sy:0..1,sx:0..1/same=yes";
  EXPECT_EQ(refusal("one-to-one/2x65000/2x65000/1:1" + window), "");
  EXPECT_EQ(refusal("one-to-one/2x65001/2x65001/1:1" + window),
            "65001 columns: a texture has at most 65000; use autocorr_cuda_simple");
  EXPECT_EQ(refusal("one-to-one/65000x2/65000x2/1:1" + window), "");
  EXPECT_EQ(refusal("one-to-one/65001x2/65001x2/1:1" + window),
            "65001 rows of all images: a texture has at most 65000; use autocorr_cuda_simple");
  EXPECT_EQ(refusal("n-to-mn/1000x2/1000x2/65:65" + window), "");
  EXPECT_EQ(refusal("n-to-mn/1000x2/1000x2/66:66" + window),
            "66000 rows of all images: a texture has at most 65000; use autocorr_cuda_simple");
}

}  // namespace
}  // namespace xcorr::emulation
