// The CPU, but every error takes it along, as an illegal address does with a CUDA device. The
// program finds this definition of open_device before the one of the library.
#include "harness/problem/error.hpp"
#include "tests/support/forwarding_device.hpp"

namespace xcorr {
namespace {

class LostDevice final : public ForwardingDevice {
 public:
  bool lost() override { return true; }  // asked after an error only
};

}  // namespace

std::unique_ptr<Device> open_device(const std::string& name) {
  if (name != "cpu") throw UserError("device '" + name + "': only cpu can be lost here; use cpu");
  return std::make_unique<LostDevice>();
}

}  // namespace xcorr
