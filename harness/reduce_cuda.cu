#include <stdexcept>

#include "harness/reduce.hpp"

namespace xcorr {

void reduce_on_cuda(const Problem&, Precision, const void*, void*, void*, void*) {
  throw std::runtime_error("the reduction of surfaces is not built yet");
}

}  // namespace xcorr
