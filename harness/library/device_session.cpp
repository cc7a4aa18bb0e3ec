#include "harness/library/device_session.hpp"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "harness/problem/error.hpp"
#include "harness/problem/results.hpp"
#include "harness/registry.hpp"

namespace xcorr {
namespace {

constexpr std::uintptr_t kAlignment = 16;  // of the widest access of a kernel

// The device is current for the thread while the object lives. The caller may use another one.
class Entered {
 public:
  explicit Entered(CallerStreams& streams) : streams_(streams), before_(streams.enter()) {}
  ~Entered() { streams_.leave(before_); }
  Entered(const Entered&) = delete;
  Entered& operator=(const Entered&) = delete;

 private:
  CallerStreams& streams_;
  int before_;
};

const char* name_of(Side side) { return side == Side::left ? "left" : "right"; }

bool is_aligned(const void* array) {
  return reinterpret_cast<std::uintptr_t>(array) % kAlignment == 0;
}

void need(const char* name, const void* array) {
  if (array == nullptr)
    throw UserError(std::string(name) + ": null; give the address of the array");
}

void need_aligned(const char* name, const void* array) {
  need(name, array);
  if (is_aligned(array)) return;
  throw UserError(std::string(name) +
                  ": its address is no multiple of 16 bytes; give a copy, or open a session for "
                  "arrays that are not aligned");
}

Packing packing_of(const Problem& problem, Side side, Precision precision,
                   const SideLayout& layout) {
  const bool left = side == Side::left;
  return {layout.type, scalar_bytes(precision) == sizeof(double),
          left ? problem.lefts : problem.rights, left ? problem.left : problem.right,
          layout.strides};
}

// Elements from the first of the memory that a call reads in place to the last.
Index span(const Packing& p, bool windows) {
  if (!windows) return p.elements();
  return (p.matrices - 1) * p.strides[0] + (p.shape.rows - 1) * p.strides[1] + p.shape.cols;
}

// Kernels number the elements of a window and those between its rows with 32 bits.
void check_windows(const char* name, const Packing& p) {
  const SideLayout scalars = {p.to_double ? ElementType::float64 : ElementType::float32, {}, true};
  constexpr Index kMost = std::numeric_limits<std::int32_t>::max();
  const auto& [matrix, row, col] = p.strides;
  const bool in_rows = (p.shape.cols == 1 || col == 1) && row >= 1 && matrix >= 0;
  if (p.from != scalars.type || !in_rows || (p.shape.rows - 1) * row + p.shape.cols > kMost) {
    throw UserError("views 'windows': the " + std::string(name) +
                    " strides or type are not those of windows of scalars with whole rows; leave "
                    "the field out, and the array is copied by each call");
  }
}

}  // namespace

SideLayout dense_layout(const Problem& problem, Side side, Precision precision) {
  const Shape shape = side == Side::left ? problem.left : problem.right;
  const bool wide = scalar_bytes(precision) == sizeof(double);
  return {wide ? ElementType::float64 : ElementType::float32, {shape.size(), shape.cols, 1}, true};
}

DeviceSession::DeviceSession(const Variant& variant, PlanRequest request,
                             const std::array<SideLayout, 2>& layouts,
                             std::unique_ptr<Device> device)
    : AnySession(variant, std::move(request), std::move(device)),
      streams_(device_->caller_streams()) {
  const Entered here(*streams_);
  const Problem& problem = request_.problem;
  if (problem.fields.views == Views::channels) {
    throw UserError("views 'channels': no session for arrays of a device; use dense or windows");
  }
  left_ = make_input(Side::left, layouts[0]);
  if (!problem.fields.same) right_ = make_input(Side::right, layouts[1]);
  plan(variant, 0);
  record(variant);
}

DeviceSession::~DeviceSession() {
  try {
    const Entered here(*streams_);
    streams_->wait_for_all();
    const auto planning = hold_planner();
    plan_.reset();
  } catch (const std::exception&) {
    device_->lost();  // clears the error: a device that has failed runs nothing any more
  }
}

DeviceSession::Input DeviceSession::make_input(Side side, const SideLayout& layout) {
  const Problem& problem = request_.problem;
  Input input;
  input.packing = packing_of(problem, side, request_.precision, layout);
  const std::size_t scalar = scalar_bytes(request_.precision);
  if (least_scalar_bytes(layout.type) > scalar) {
    throw UserError(std::string(name_of(side)) + ": precision '" +
                    std::string(to_string(request_.precision)) + "' would round numbers of type " +
                    std::string(to_string(layout.type)) +
                    "; use precision fp64, or convert the array first");
  }
  if (problem.fields.views == Views::windows) {
    check_windows(name_of(side), input.packing);
    std::vector<Index> offsets(static_cast<std::size_t>(input.packing.matrices));
    for (std::size_t i = 0; i < offsets.size(); ++i) {
      offsets[i] = static_cast<Index>(i) * layout.strides[0];
    }
    input.offsets = device_->allocate(offsets.size() * sizeof(Index));
    device_->upload(input.offsets.get(), offsets.data(), offsets.size() * sizeof(Index));
    input.view = {static_cast<const Index*>(input.offsets.get()), layout.strides[1]};
  } else if (!input.packing.is_dense() || !layout.aligned) {
    input.packed = device_->allocate(bytes(input.packing.elements()));
  }
  return input;
}

// Records a call that nobody needs: it shows whether a call can be enqueued, and loads the kernels,
// for which CUDA may wait for the device. One memory, of zeros, stands for all arrays.
void DeviceSession::record(const Variant& variant) {
  const Problem& problem = request_.problem;
  const bool windows = problem.fields.views == Views::windows;
  const Index left = span(left_.packing, windows);
  const Index right = problem.fields.same ? 0 : span(right_.packing, windows);
  const std::size_t most = std::max(bytes(std::max(left, right)), result_bytes());
  const Buffer memory = device_->allocate(most);
  device_->fill(memory.get(), 0, most);
  device_->synchronize();  // also for tables that the plan has stored in its own stream
  Call call;
  call.left = call.right = call.out = memory.get();
  if (masks_left(problem.fields.masks)) call.left_mask = static_cast<std::uint8_t*>(memory.get());
  if (masks_right(problem.fields.masks)) call.right_mask = static_cast<std::uint8_t*>(memory.get());
  const Enqueued found = streams_->record([&](void* stream) {
    call.stream = stream;
    call.left_view = left_.view;
    call.right_view = problem.fields.same ? left_.view : right_.view;
    plan_->compute(call);
  });
  if (!found.support) {
    throw NotEnqueued("variant '" + variant.id + "': a call cannot be enqueued for arrays of a " +
                      "device (" + found.support.reason + "); use another variant");
  }
  cooperative_ = found.cooperative;
}

const void* DeviceSession::read(const Input& input, const void* array, void* stream) {
  if (!input.packed) return array;
  streams_->pack(input.packing, array, input.packed.get(), stream);
  return input.packed.get();
}

void DeviceSession::enqueue(const DeviceArrays& arrays, void* stream) {
  const Fields& fields = request_.problem.fields;
  // Refused before anything is enqueued.
  left_.packed ? need("left", arrays.left) : need_aligned("left", arrays.left);
  if (!fields.same) {
    right_.packed ? need("right", arrays.right) : need_aligned("right", arrays.right);
  }
  need_aligned("out", arrays.out);
  if (masks_left(fields.masks)) need("left_mask", arrays.left_mask);
  if (masks_right(fields.masks)) need("right_mask", arrays.right_mask);
  const Entered here(*streams_);
  Call call;
  call.left = read(left_, arrays.left, stream);
  call.right = fields.same ? call.left : read(right_, arrays.right, stream);
  call.out = arrays.out;
  if (masks_left(fields.masks)) call.left_mask = arrays.left_mask;
  if (masks_right(fields.masks)) call.right_mask = arrays.right_mask;
  call.left_view = left_.view;
  call.right_view = fields.same ? left_.view : right_.view;
  compute(call, stream);
}

// A plan with cooperative kernels remembers the last stream of the process in which such a kernel
// was, and lets the next one wait for it. So it gets a stream of the session, which no caller can
// destroy or record meanwhile.
void DeviceSession::compute(Call call, void* stream) {
  call.stream = stream;
  if (!cooperative_) return plan_->compute(call);
  call.stream = streams_->own(streams_->captures(stream));
  streams_->follow(call.stream, stream);
  plan_->compute(call);
  streams_->follow(stream, call.stream);
}

void DeviceSession::check(const void* out, void* stream) {
  const Entered here(*streams_);
  streams_->wait(stream);
  if (request_.problem.fields.result.kind != ResultKind::above) return;
  need("out", out);
  AboveHeader header = {};
  device_->download(&header, out, sizeof header);
  check_capacity(request_.problem, &header);
}

}  // namespace xcorr
