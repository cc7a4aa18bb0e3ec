#include "harness/library/session.hpp"

#include <unistd.h>

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "harness/library/device_session.hpp"
#include "harness/problem/error.hpp"
#include "harness/problem/results.hpp"
#include "harness/reduce/reduce.hpp"
#include "harness/registry.hpp"
#include "harness/truth/reference.hpp"

namespace xcorr {
namespace {

// Refuses missing arrays, views that leave their array, and windows whose elements a GPU kernel
// cannot number.
void check_side(const Problem& problem, Side side, const Arrays& arrays, Backend backend) {
  const bool left = side == Side::left;
  const std::string name = left ? "left" : "right";
  const auto& [boundary, score, masks, result, same, views] = problem.fields;
  if ((left ? arrays.left : arrays.right) == nullptr && (left || !same)) {
    throw UserError(name + ": null; give the address of its matrices");
  }
  const Shape shape = left ? problem.left : problem.right;
  const Index matrices = left ? problem.lefts : problem.rights;
  if ((left ? masks_left(masks) : masks_right(masks)) &&
      (left ? arrays.left_mask : arrays.right_mask) == nullptr) {
    refuse("masks", to_string(masks),
           "the " + name + " masks are missing; pass them to compute, or leave the field out");
  }
  if (views == Views::dense || (!left && same)) return;
  const auto [offsets, pitch] = left ? arrays.left_view : arrays.right_view;
  const Index elements = left ? arrays.left_elements : arrays.right_elements;
  const std::string where = "views '" + std::string(to_string(views)) + "': the " + name + " ";
  if (offsets == nullptr) {
    throw UserError(where + "offsets are missing; pass them to compute, or leave the field out");
  }
  const bool windows = views == Views::windows;
  if (windows && (pitch < 1 || pitch > elements)) {
    throw UserError(where + "pitch is " + std::to_string(pitch) + "; use 1 to the " +
                    std::to_string(elements) + " elements of the array");
  }
  const Index count = windows ? matrices : matrices * shape.rows;
  const Index rows_below = windows ? shape.rows - 1 : 0;
  for (Index i = 0; i < count; ++i) {
    // Compared without a sum that could overflow.
    const Index last_start = elements - shape.cols - offsets[i];
    if (offsets[i] >= 0 && offsets[i] <= elements && last_start >= 0 &&
        (rows_below == 0 || last_start / rows_below >= pitch)) {
      continue;
    }
    throw UserError(where + (windows ? "matrix " : "row ") + std::to_string(i) + " at offset " +
                    std::to_string(offsets[i]) + " leaves the array of " +
                    std::to_string(elements) + " elements; use a smaller offset");
  }
  if (!windows || backend != Backend::cuda) return;
  // Kernels number the elements of a window and those between its rows with 32 bits. The sum does
  // not overflow, since every window lies in the array.
  constexpr Index kMost = std::numeric_limits<std::int32_t>::max();
  if (const Index span = rows_below * pitch + shape.cols; span > kMost) {
    throw UserError(where + "windows of " + std::to_string(shape.rows) + " rows span " +
                    std::to_string(span) + " elements of the array at a pitch of " +
                    std::to_string(pitch) + ", more than 2^31 - 1; use arrays with fewer columns" +
                    ", or device cpu");
  }
}

}  // namespace

void check_capacity(const Problem& problem, const void* out) {
  const Result& result = problem.fields.result;
  if (result.kind != ResultKind::above) return;
  const std::uint64_t count = static_cast<const AboveHeader*>(out)->count;
  if (count <= static_cast<std::uint64_t>(result.capacity)) return;
  refuse("result", field_text(problem.fields, "result"),
         std::to_string(count) + " outputs are at least the threshold, the capacity is " +
             std::to_string(result.capacity) +
             "; use a larger capacity or threshold, or a least distance (above:t:c:d)");
}

Support supported(const Variant& variant, PlanRequest request, Device& device) {
  request.stream = device.stream();
  return device.runs(variant, request);
}

AnySession::AnySession(const Variant& variant, PlanRequest request, std::unique_ptr<Device> device)
    : device_(std::move(device)), request_(std::move(request)) {
  request_.stream = device_->stream();
  if (const Support support = device_->runs(variant, request_); !support) {
    refuse("variant", variant.id, "not supported: " + support.reason + "; --list names others");
  }
}

void AnySession::plan(const Variant& variant, std::size_t data) {
  const std::size_t workspace = plan_workspace_bytes(variant, request_);
  if (workspace + data > device_->available_bytes()) {
    throw OutOfMemory("device memory: " + bytes_text(workspace + data) + " are needed, " +
                      bytes_text(device_->available_bytes()) +
                      " are available; use fewer or smaller matrices");
  }
  workspace_ = device_->allocate(std::max<std::size_t>(workspace, 1));
  request_.workspace = workspace_.get();
  const auto planning = hold_planner();
  plan_ = make_plan(variant, request_);
}

AnySession::~AnySession() {
  const auto planning = hold_planner();
  plan_.reset();
}

// Only CPU variants use the same planner as the reference.
std::unique_lock<std::mutex> AnySession::hold_planner() const {
  if (device_->backend() == Backend::cpu) return std::unique_lock(fftw_planner());
  return {};
}

std::size_t AnySession::bytes(Index elements) const {
  return static_cast<std::size_t>(elements) * scalar_bytes(request_.precision);
}

std::size_t AnySession::result_bytes() const {
  return static_cast<std::size_t>(request_.problem.result_bytes(scalar_bytes(request_.precision)));
}

Session::Session(const Variant& variant, PlanRequest request, std::unique_ptr<Device> device)
    : AnySession(variant, std::move(request), std::move(device)) {
  const Problem& problem = request_.problem;
  // A device that reads host memory uses the arrays of the caller. Other devices get copies.
  const bool dense = problem.fields.views == Views::dense;
  std::size_t data = device_->host_memory() ? 0 : result_bytes();
  if (!device_->host_memory() && dense) {
    data += bytes(problem.left_elements() + (problem.fields.same ? 0 : problem.right_elements()));
  }
  plan(variant, data);
  if (device_->host_memory()) return;
  if (dense) {
    allocate(left_, bytes(problem.left_elements()));
    if (!problem.fields.same) allocate(right_, bytes(problem.right_elements()));
  }
  out_ = device_->allocate(result_bytes());
}

void Session::allocate(Copy& copy, std::size_t bytes) {
  if (bytes <= copy.bytes) return;
  copy = {};
  copy = {device_->allocate(bytes), bytes};
}

// The array as the device reads it: the one of the caller, or a copy.
const void* Session::uploaded(Copy& copy, const void* array, std::size_t bytes) {
  if (device_->host_memory() || bytes == 0) return array;
  allocate(copy, bytes);
  device_->upload(copy.memory.get(), array, bytes);
  return copy.memory.get();
}

Call Session::call_of(const Arrays& arrays) {
  const Problem& problem = request_.problem;
  const auto& [boundary, score, masks, result, same, views] = problem.fields;
  const bool dense = views == Views::dense;
  const auto offsets = [&](Copy& copy, const View& view, Index matrices, Index rows) {
    const Index count = views == Views::windows ? matrices : matrices * rows;
    return View{static_cast<const Index*>(
                    uploaded(copy, view.offsets, static_cast<std::size_t>(count) * sizeof(Index))),
                views == Views::windows ? view.pitch : 0};
  };
  const auto mask = [&](Copy& copy, const std::uint8_t* array, Index pixels) {
    return static_cast<const std::uint8_t*>(
        uploaded(copy, array, static_cast<std::size_t>(pixels)));
  };
  Call call;
  call.stream = device_->stream();
  call.out = device_->host_memory() ? arrays.out : out_.get();
  call.left =
      uploaded(left_, arrays.left, bytes(dense ? problem.left_elements() : arrays.left_elements));
  call.right = same ? call.left
                    : uploaded(right_, arrays.right,
                               bytes(dense ? problem.right_elements() : arrays.right_elements));
  if (masks_left(masks)) {
    call.left_mask = mask(left_mask_, arrays.left_mask, problem.left_elements());
  }
  if (masks_right(masks)) {
    call.right_mask = mask(right_mask_, arrays.right_mask, problem.right_elements());
  }
  if (!dense) {
    call.left_view = offsets(left_offsets_, arrays.left_view, problem.lefts, problem.left.rows);
    call.right_view =
        same ? call.left_view
             : offsets(right_offsets_, arrays.right_view, problem.rights, problem.right.rows);
  }
  return call;
}

void Session::compute(const Arrays& arrays) {
  device_->make_current();
  for (const Side side : {Side::left, Side::right}) {
    check_side(request_.problem, side, arrays, device_->backend());
  }
  if (arrays.out == nullptr) throw UserError("out: null; give the address of the result's memory");
  const Call call = call_of(arrays);
  plan_->compute(call);
  device_->synchronize();
  if (!device_->host_memory()) device_->download(arrays.out, out_.get(), result_bytes());
  check_capacity(request_.problem, arrays.out);
}

namespace {

struct Kept {
  std::unique_ptr<AnySession> session;
  pid_t process;  // 0: also its children may use it
  std::mutex computing;
};

struct Table {
  std::mutex mutex;
  std::map<std::uintptr_t, std::shared_ptr<Kept>> sessions;
  std::uintptr_t last = 0;
};
// Never destroyed, since CUDA may end before it: the process releases open sessions.
Table& table() {
  static Table* const made = new Table;
  return *made;
}

std::shared_ptr<Kept> find(void* handle, bool take) {
  Table& all = table();
  const std::lock_guard lock(all.mutex);
  const auto found = all.sessions.find(reinterpret_cast<std::uintptr_t>(handle));
  if (found == all.sessions.end()) {
    throw UserError("session: not open; xcorr_open gives one, and xcorr_close ends it once");
  }
  std::shared_ptr<Kept> kept = found->second;
  if (take) all.sessions.erase(found);
  return kept;
}

bool is_of_parent(const Kept& kept) { return kept.process != 0 && kept.process != getpid(); }

// Calls f with the session while no other thread computes with it.
template <typename S, typename F>
void with_session(void* handle, const char* other_kind, F&& f) {
  const std::shared_ptr<Kept> kept = find(handle, false);
  if (is_of_parent(*kept)) {
    throw UserError(
        "session: was opened on a GPU before this process was forked; open another in a "
        "process that the method spawn or forkserver of multiprocessing has started");
  }
  const std::lock_guard lock(kept->computing);
  auto* const session = dynamic_cast<S*>(kept->session.get());
  if (session == nullptr) throw UserError(std::string("session: ") + other_kind);
  f(*session);
}

constexpr const char* kOfDevice =
    "is for arrays of a device; call xcorr_enqueue, or open another one with xcorr_open";
constexpr const char* kOfHost =
    "is for arrays of the host; call xcorr_compute, or open another one with xcorr_open_device";

}  // namespace

void* keep_session(std::unique_ptr<AnySession> session, bool uses_cuda) {
  const auto kept = std::make_shared<Kept>();
  kept->session = std::move(session);
  kept->process = uses_cuda ? getpid() : 0;
  Table& all = table();
  const std::lock_guard lock(all.mutex);
  all.sessions.emplace(++all.last, kept);
  return reinterpret_cast<void*>(all.last);
}

void compute_with(void* handle, const Arrays& arrays) {
  with_session<Session>(handle, kOfDevice, [&](Session& session) { session.compute(arrays); });
}

void enqueue_with(void* handle, const DeviceArrays& arrays, void* stream) {
  with_session<DeviceSession>(handle, kOfHost,
                              [&](DeviceSession& session) { session.enqueue(arrays, stream); });
}

void check_with(void* handle, const void* out, void* stream) {
  with_session<DeviceSession>(handle, kOfHost,
                              [&](DeviceSession& session) { session.check(out, stream); });
}

void close_session(void* handle) {
  const std::shared_ptr<Kept> kept = find(handle, true);
  // The memory of the GPU belongs to the parent.
  if (is_of_parent(*kept)) (void)kept->session.release();
}

}  // namespace xcorr
