// Access of kernels to the records of results (harness/problem/results.hpp, which
// harness/variant.hpp includes).
#pragma once

#include <bit>

#include "algorithms/device/cuda.hpp"
#include "harness/variant.hpp"

namespace xcorr::device {

// A record as parts of 16 bytes.
template <typename Record>
struct RecordParts {
  struct alignas(16) Part {
    float of[4];
  };
  Part parts[sizeof(Record) / sizeof(Part)];
};
template <typename Record>
__device__ __forceinline__ void store_record(Record* to, const Record& record) {
  *reinterpret_cast<RecordParts<Record>*>(to) = std::bit_cast<RecordParts<Record>>(record);
}
template <typename Record>
__device__ __forceinline__ Record load_record(const Record* from) {
  return std::bit_cast<Record>(*reinterpret_cast<const RecordParts<Record>*>(from));
}

// For the result above: the count, in the type of atomic additions, and the detections after it.
__device__ __forceinline__ unsigned long long* counter_of(AboveHeader* header) {
  return reinterpret_cast<unsigned long long*>(&header->count);
}
__device__ __forceinline__ Detection* detections_of(AboveHeader* header) {
  return reinterpret_cast<Detection*>(header + 1);
}

}  // namespace xcorr::device
