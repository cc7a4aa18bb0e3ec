#include "harness/session.hpp"

#include <algorithm>

#include "harness/error.hpp"
#include "harness/reference.hpp"
#include "harness/registry.hpp"

namespace xcorr {

Support supported(const Variant& variant, PlanRequest request, Device& device) {
  request.stream = device.stream();
  return device.runs(variant, request);
}

Session::Session(const Variant& variant, PlanRequest request, std::unique_ptr<Device> device)
    : device_(std::move(device)), request_(std::move(request)) {
  request_.stream = device_->stream();
  if (const Support support = device_->runs(variant, request_); !support) {
    throw UserError("variant '" + variant.id + "': not supported: " + support.reason +
                    "; --list names others");
  }
  const Problem& problem = request_.problem;
  const std::size_t workspace = variant.workspace_bytes(request_);
  // A device that reads host memory uses the arrays of the caller; another device gets copies.
  const std::size_t data =
      device_->host_memory()
          ? 0
          : bytes(problem.left_elements() + problem.right_elements() + problem.out_elements());
  if (workspace + data > device_->available_bytes()) {
    throw OutOfMemory("device memory: " + bytes_text(static_cast<double>(workspace + data)) +
                      " are needed, " +
                      bytes_text(static_cast<double>(device_->available_bytes())) +
                      " are available; use fewer or smaller matrices");
  }
  workspace_ = device_->allocate(std::max<std::size_t>(workspace, 1));
  request_.workspace = workspace_.get();
  {
    const auto planning = hold_planner();
    plan_ = variant.plan(request_);
  }
  if (device_->host_memory()) return;
  left_ = device_->allocate(bytes(problem.left_elements()));
  right_ = device_->allocate(bytes(problem.right_elements()));
  out_ = device_->allocate(bytes(problem.out_elements()));
}

Session::~Session() {
  const auto planning = hold_planner();
  plan_.reset();
}

// Only CPU variants use the same planner as the reference.
std::unique_lock<std::mutex> Session::hold_planner() const {
  if (device_->backend() == Backend::cpu) return std::unique_lock(fftw_planner());
  return {};
}

std::size_t Session::bytes(Index elements) const {
  return static_cast<std::size_t>(elements) * scalar_bytes(request_.precision);
}

void Session::compute(const void* left, const void* right, void* out) {
  device_->make_current();
  if (device_->host_memory()) {
    plan_->compute({left, right, out, device_->stream(), nullptr});
    device_->synchronize();
    return;
  }
  const Problem& problem = request_.problem;
  device_->upload(left_.get(), left, bytes(problem.left_elements()));
  device_->upload(right_.get(), right, bytes(problem.right_elements()));
  plan_->compute({left_.get(), right_.get(), out_.get(), device_->stream(), nullptr});
  device_->synchronize();
  device_->download(out, out_.get(), bytes(problem.out_elements()));
}

}  // namespace xcorr
