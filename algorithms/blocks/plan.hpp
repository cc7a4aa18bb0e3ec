// The common parts of the plans of CUDA variants: the pointers of a call, the cleared output, and
// the limits of a launch. The pairing of matrices is in pairs.hpp, the scalar type in
// precision.hpp.
#pragma once

#include <algorithm>
#include <string>

#include "algorithms/blocks/pairs.hpp"
#include "algorithms/blocks/precision.hpp"
#include "algorithms/device/cuda.hpp"

namespace xcorr::device {

// The arrays of a call: left [lefts][rows][cols], right [rights][rows][cols], out
// [pairs][out_rows][out_cols].
template <typename T>
struct Arrays {
  explicit Arrays(const Call& call)
      : left(call.lefts<T>()), right(call.rights<T>()), out(call.outs<T>()) {}
  const T* left;
  const T* right;
  T* out;
};

// A plan of a problem with scalars T. A derived class enqueues its kernels in enqueue().
template <typename T>
class DevicePlan : public Plan {
 public:
  void compute(const Call& call) final {
    if (accumulates_) {
      call.phase("clear");
      clear(call.out, static_cast<std::size_t>(problem_.out_elements()) * sizeof(T), call.stream);
      call.phase("rest");
    }
    enqueue(call, Arrays<T>(call));
  }

 protected:
  // `accumulates`: kernels add to the output, so that every call clears it first.
  explicit DevicePlan(const Problem& problem, bool accumulates = false)
      : problem_(problem), accumulates_(accumulates) {}

  virtual void enqueue(const Call& call, const Arrays<T>& arrays) = 0;

  const Problem problem_;

 private:
  bool accumulates_;
};

// The extent of a grid along y or z for `count` items: kernels process the remaining items in a
// loop with stride gridDim.
inline unsigned grid_extent(Index count) {
  return static_cast<unsigned>(std::min<Index>(count, kGridLimitYZ));
}

// Whether a block may have `bytes` of dynamic shared memory. The device is queried only for more
// than every device has.
inline bool fits_shared(std::size_t bytes) {
  return bytes <= kSharedWithoutAsking || bytes <= shared_limit();
}
// Yes, or why not. `what` names the data in the memory. `asks` queries the device for any size,
// since the emulation's limit may be lower than that of every GPU.
inline Support shared_fits(const std::string& what, std::size_t bytes, bool asks = false) {
  if (asks ? bytes <= shared_limit() : fits_shared(bytes)) return yes();
  return no(what + ": " + std::to_string(bytes) + " bytes of shared memory, and a block has " +
            std::to_string(shared_limit()));
}

}  // namespace xcorr::device
