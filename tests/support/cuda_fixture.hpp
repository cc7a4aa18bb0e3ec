// Tests of the first GPU. Skipped, and said so, where there is no CUDA device.
#pragma once

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <memory>

#include "harness/device/device.hpp"
#include "harness/problem/error.hpp"

namespace xcorr {

class OnCuda : public testing::Test {
 protected:
  void SetUp() override {
    try {
      device = open_device("cuda");
    } catch (const UserError& error) {
      GTEST_SKIP() << error.what();
    }
    stream = static_cast<cudaStream_t>(device->stream());
  }

  std::unique_ptr<Device> device;
  cudaStream_t stream{};
};

}  // namespace xcorr
