// The C interface of libxcorr for other languages; xcorr.h describes it.
#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>

#include "harness/library/catalogue.hpp"
#include "harness/library/device_session.hpp"
#include "harness/library/forks.hpp"
#include "harness/library/request.hpp"
#include "harness/library/session.hpp"
#include "harness/library/xcorr.h"
#include "harness/problem/error.hpp"
#include "harness/truth/score_reference.hpp"

namespace xcorr {
namespace {

// Cuts the text where the buffer ends, between two characters of UTF-8.
void put(const std::string& text, char* buffer, std::size_t capacity) {
  if (buffer == nullptr || capacity == 0) return;
  std::size_t length = std::min(text.size(), capacity - 1);
  while (length < text.size() && length > 0 && (text[length] & 0xC0) == 0x80) --length;
  std::memcpy(buffer, text.data(), length);
  buffer[length] = '\0';
}

// A message is one line, whatever it quotes.
void put_message(std::string text, char* buffer, std::size_t capacity) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  }
  put(text, buffer, capacity);
}

int give(const nlohmann::json& value, char* json, std::size_t capacity) {
  const std::string text = value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  const bool fits = text.size() < capacity;
  put(fits ? text : std::to_string(text.size() + 1), json, capacity);
  return fits ? 0 : 2;
}

void need(const void* pointer, const char* name) {
  if (pointer == nullptr) throw UserError(std::string(name) + ": null; give its address");
}

template <typename F>
int guarded(char* error, std::size_t capacity, F&& steps) {
  try {
    const auto call = within_call();
    return steps();
  } catch (const NotEnqueued& caught) {
    put_message(caught.what(), error, capacity);
    return 3;
  } catch (const std::bad_alloc&) {
    put_message("host memory: the system refused an allocation; use fewer or smaller matrices",
                error, capacity);
  } catch (const std::exception& caught) {
    put_message(caught.what(), error, capacity);
  } catch (...) {
    put_message("unknown error: an exception of no known type was thrown; report it", error,
                capacity);
  }
  return 1;
}

}  // namespace

extern "C" {

int xcorr_list(char* json, std::size_t capacity, char* error, std::size_t error_capacity) {
  return guarded(error, error_capacity, [&] {
    need(json, "json");
    return give(catalogue(), json, capacity);
  });
}

int xcorr_machine(const char* device, char* json, std::size_t capacity, char* error,
                  std::size_t error_capacity) {
  return guarded(error, error_capacity, [&] {
    need(device, "device");
    need(json, "json");
    return give(machine_facts(*open_device(device)), json, capacity);
  });
}

int xcorr_describe(const char* request, char* json, std::size_t capacity, char* error,
                   std::size_t error_capacity) {
  return guarded(error, error_capacity, [&] {
    need(json, "json");
    const Problem problem = read_problem(request);
    return give({{"pairs", problem.pairs()},
                 {"out_rows", problem.out_rows()},
                 {"out_cols", problem.out_cols()},
                 {"sy0", problem.window.sy.first},
                 {"sx0", problem.window.sx.first},
                 {"fmas", problem.fmas()},
                 {"bytes", problem.bytes(4)},
                 {"result_bytes", problem.result_bytes(4)},
                 {"max_overlap", problem.max_overlap()}},
                json, capacity);
  });
}

int xcorr_supports(const char* request, char* json, std::size_t capacity, char* error,
                   std::size_t error_capacity) {
  return guarded(error, error_capacity, [&] {
    need(json, "json");
    const ComputeRequest asked = read_compute(request);
    const auto device = open_device(asked.device);
    const Support support = supported(*asked.variant, asked.plan, *device);
    return give({{"reason", support.reason}}, json, capacity);
  });
}

int xcorr_open(const char* request, void** session, char* error, std::size_t error_capacity) {
  return guarded(error, error_capacity, [&] {
    need(static_cast<const void*>(session), "session");
    *session = nullptr;
    const ComputeRequest asked = read_compute(request);
    *session = keep_session(
        std::make_unique<Session>(*asked.variant, asked.plan, open_device(asked.device)),
        asked.device != "cpu");
    return 0;
  });
}

int xcorr_compute(void* session, const void* left, const void* right, void* out, char* error,
                  std::size_t error_capacity) {
  return guarded(error, error_capacity, [&] {
    compute_with(session, {left, right, out});
    return 0;
  });
}

int xcorr_compute_with(void* session, const xcorr_arrays* arrays, char* error,
                       std::size_t error_capacity) {
  return guarded(error, error_capacity, [&] {
    need(arrays, "arrays");
    const xcorr_arrays& a = *arrays;
    compute_with(session, {a.left,
                           a.right,
                           a.out,
                           a.left_mask,
                           a.right_mask,
                           {a.left_offsets, a.left_pitch},
                           {a.right_offsets, a.right_pitch},
                           a.left_elements,
                           a.right_elements});
    return 0;
  });
}

int xcorr_open_device(const char* request, void** session, char* error,
                      std::size_t error_capacity) {
  return guarded(error, error_capacity, [&] {
    need(static_cast<const void*>(session), "session");
    *session = nullptr;
    const DeviceRequest asked = read_device(request);
    const ComputeRequest& compute = asked.compute;
    *session =
        keep_session(std::make_unique<DeviceSession>(*compute.variant, compute.plan, asked.layouts,
                                                     open_device(compute.device)),
                     compute.device != "cpu");
    return 0;
  });
}

int xcorr_enqueue(void* session, const xcorr_arrays* arrays, void* stream, char* error,
                  std::size_t error_capacity) {
  return guarded(error, error_capacity, [&] {
    need(arrays, "arrays");
    const xcorr_arrays& a = *arrays;
    enqueue_with(session, {a.left, a.right, a.out, a.left_mask, a.right_mask}, stream);
    return 0;
  });
}

int xcorr_check(void* session, const void* out, void* stream, char* error,
                std::size_t error_capacity) {
  return guarded(error, error_capacity, [&] {
    check_with(session, out, stream);
    return 0;
  });
}

int xcorr_close(void* session, char* error, std::size_t error_capacity) {
  return guarded(error, error_capacity, [&] {
    close_session(session);
    return 0;
  });
}

// The float64 surface of a request by `method` definition or fft: left [lefts][rows][cols], right
// [rights][rows][cols], out [pairs][out_rows][out_cols]; dense, also for a request with views. A
// mask is a byte a pixel, 0 or 1, and null for a side without one.
int xcorr_reference_masked(const char* request, const double* left, const double* right,
                           const std::uint8_t* left_mask, const std::uint8_t* right_mask,
                           double* out, char* error, std::size_t error_capacity) {
  return guarded(error, error_capacity, [&] {
    const auto [problem, by_transform] = read_reference(request);
    need(left, "left");
    need(right, "right");
    need(out, "out");
    const Masks masks = problem.fields.masks;
    if (masks_left(masks) != (left_mask != nullptr) ||
        masks_right(masks) != (right_mask != nullptr)) {
      refuse("masks", to_string(masks), "give a mask for each side that has one, and for no other");
    }
    if (!problem.surface().is_plain()) {
      score_surfaces(problem, left, right, left_mask, right_mask, by_transform, out);
    } else if (by_transform) {
      FftReference(problem, left, right).correlate(0, problem.pairs(), out);
    } else {
      correlate_definition(problem, left, right, 0, problem.pairs(), out);
    }
    return 0;
  });
}

int xcorr_reference(const char* request, const double* left, const double* right, double* out,
                    char* error, std::size_t error_capacity) {
  return xcorr_reference_masked(request, left, right, nullptr, nullptr, out, error, error_capacity);
}

}  // extern "C"
}  // namespace xcorr
