// What algorithms/device/texture.hpp asks of the CUDA runtime. A fake runtime (fake_cuda/) notes it on any machine.
#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

#include "algorithms/device/texture.hpp"

namespace xcorr {
namespace {

class Textures : public testing::Test {
 protected:
  Textures() { cuda = FakeCuda(); }
  static constexpr int kRows = 5, kCols = 750;
  FakeCuda& cuda = FakeCuda::state();
  std::vector<char> memory = std::vector<char>(OwnTexture::bytes(kRows, kCols));
};

TEST_F(Textures, AreTwoDimensionalPointsInPitchedMemory) {
  const OwnTexture texture(memory.data(), kRows, kCols);
  const auto& [resource, reading] = cuda.textures.at({0, texture.get()});
  EXPECT_EQ(resource.resType, cudaResourceTypePitch2D);
  const auto& pitched = resource.res.pitch2D;
  EXPECT_EQ(pitched.width, kCols);
  EXPECT_EQ(pitched.height, kRows);
  EXPECT_EQ(pitched.pitchInBytes, 3072);  // 750 floats in a multiple of 512 bytes
  EXPECT_EQ(pitched.desc.bytes, sizeof(float));
  EXPECT_EQ(reading.filterMode, cudaFilterModePoint);
  EXPECT_EQ(reading.readMode, cudaReadModeElementType);
  EXPECT_EQ(reading.normalizedCoords, 0);
  // Coordinates that are not normalised allow the modes clamp and border alone.
  for (const int i : {0, 1}) EXPECT_EQ(reading.addressMode[i], cudaAddressModeBorder);
}

TEST_F(Textures, LieWithinTheirMemoryWhereverItStarts) {
  std::vector<char> more(memory.size() + 1024);
  for (std::size_t start = 0; start <= 1024; start += 4) {
    char* const first = more.data() + start;
    const OwnTexture texture(first, kRows, kCols);
    const auto& pitched = cuda.textures.at({0, texture.get()}).resource.res.pitch2D;
    const auto* const begin = static_cast<const char*>(pitched.devPtr);
    EXPECT_GE(begin, first);
    EXPECT_LE(begin + pitched.height * pitched.pitchInBytes, first + memory.size());
  }
}

TEST_F(Textures, CopyOneDenseMatrixInOrderOfTheStream) {
  OwnTexture texture(memory.data(), kRows, kCols);
  const std::vector<float> matrix(kRows * kCols);
  auto* const stream = reinterpret_cast<cudaStream_t>(7);
  texture.load(matrix.data(), stream);
  ASSERT_EQ(cuda.copies.size(), 1);
  const FakeCopy& copy = cuda.copies[0];
  const auto& pitched = cuda.textures.at({0, texture.get()}).resource.res.pitch2D;
  EXPECT_EQ(copy.to, pitched.devPtr);
  EXPECT_EQ(copy.to_pitch, pitched.pitchInBytes);
  EXPECT_EQ(copy.from, matrix.data());
  EXPECT_EQ(copy.from_pitch, kCols * sizeof(float));
  EXPECT_EQ(copy.row_bytes, kCols * sizeof(float));
  EXPECT_EQ(copy.rows, kRows);
  EXPECT_EQ(copy.stream, stream);
}

TEST_F(Textures, ColumnsAreTheFirstCoordinate) { EXPECT_EQ(texel(1, 3, 20), 3020); }

// Another device may have a texture of the same number.
TEST_F(Textures, EndOnTheirDeviceWhicheverIsCurrent) {
  std::vector<char> others(memory.size());
  cuda.device = 1;
  const OwnTexture other(others.data(), kRows, kCols);
  {
    cuda.device = 0;
    const OwnTexture texture(memory.data(), kRows, kCols);
    ASSERT_EQ(texture.get(), other.get());
    cuda.device = 1;
  }
  EXPECT_EQ(cuda.device, 1);
  EXPECT_EQ(cuda.textures.size(), 1);
  EXPECT_EQ(cuda.textures.count({1, other.get()}), 1);
}

TEST_F(Textures, AreAllDestroyed) {
  for (int i = 0; i < 3; ++i) {
    OwnTexture texture(memory.data(), kRows, kCols);
    texture.load(nullptr, nullptr);
  }
  EXPECT_TRUE(cuda.textures.empty());
}

TEST_F(Textures, ThatTheGpuRefusesAreAnErrorOfOneLine) {
  alignas(512) static float aligned[1024];
  try {
    create_texture(aligned + 1, 1, 1, 512);
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "texture: invalid argument (cudaErrorInvalidValue)");
  }
}

}  // namespace
}  // namespace xcorr
