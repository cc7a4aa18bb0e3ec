// Work of others on the device that the variants run on: what a library must live with.
#pragma once

#include <cstdint>
#include <functional>

namespace xcorr::stress {

// Called before every step with what comes next; false ends the load.
using Beat = std::function<bool(const char* next)>;

// Cooperative kernels on a stream of the highest priority, the blocks of which wait for each other
// on all multiprocessors. Launches; throws std::runtime_error where a block was missing.
std::int64_t cooperative_load(int device, const Beat& beat);

// Matrix products of cuBLAS on a stream of their own. Products; throws where a value is wrong.
std::int64_t product_load(int device, const Beat& beat);

}  // namespace xcorr::stress
