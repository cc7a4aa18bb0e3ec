#pragma once

#include <nlohmann/json_fwd.hpp>

#include "harness/device/device.hpp"

namespace xcorr {

// Copy and fill (bytes/s), FP32 FMA and matrix products FP32 and TF32 (FLOP/s), an empty launch on
// a stream and by graph replay (us). Takes 12 GiB of device memory.
nlohmann::json measure_ceilings(Device& device);

}  // namespace xcorr
