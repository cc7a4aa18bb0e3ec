// The C interface of libxcorr for other languages. A session computes one problem on the data of
// the caller, any number of times. Every function returns 0, or 1 with one line of text in `error`.
// A function that gives JSON returns 2 when the buffer is too small, and writes the needed size
// into the buffer as decimal text.
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>

#include "harness/catalogue.hpp"
#include "harness/error.hpp"
#include "harness/registry.hpp"
#include "harness/score_reference.hpp"
#include "harness/session.hpp"

namespace xcorr {
namespace {

Problem problem_of(const nlohmann::json& request) {
  const auto shape = [&](const char* key) {
    return Shape{request.at(key).at(0).get<Index>(), request.at(key).at(1).get<Index>()};
  };
  Fields fields;
  for (const std::string_view name : kFieldNames) {
    const auto found = request.find(name);
    if (found != request.end()) set_field(fields, name, found->get<std::string>());
  }
  return make_problem(parse_form(request.at("form").get<std::string>()), shape("left"),
                      shape("right"), request.at("lefts").get<Index>(),
                      request.at("rights").get<Index>(), request.value("window", "full"), fields);
}

void put(const std::string& text, char* buffer, std::size_t capacity) {
  if (capacity == 0) return;
  const std::size_t length = std::min(text.size(), capacity - 1);
  std::memcpy(buffer, text.data(), length);
  buffer[length] = '\0';
}

int give(const nlohmann::json& value, char* json, std::size_t capacity) {
  const std::string text = value.dump();
  const bool fits = text.size() < capacity;
  put(fits ? text : std::to_string(text.size() + 1), json, capacity);
  return fits ? 0 : 2;
}

template <typename F>
int guarded(char* error, std::size_t capacity, F&& steps) {
  try {
    return steps();
  } catch (const std::bad_alloc&) {
    put("host memory: the system refused an allocation; use fewer or smaller matrices", error,
        capacity);
  } catch (const std::exception& caught) {
    put(caught.what(), error, capacity);
  }
  return 1;
}

// The variant, the plan request and the device that a request in JSON names.
struct ParsedRequest {
  const Variant& variant;
  PlanRequest plan;
  std::string device;
};

ParsedRequest parse_request(const nlohmann::json& request) {
  const Variant& variant = find_variant(request.at("variant").get<std::string>());
  const std::string params = request.value("params", "");
  return {variant,
          {problem_of(request),
           params.empty() ? grid_points(variant).front() : parse_params(variant, params),
           parse_precision(request.value("precision", "fp32")), nullptr, nullptr},
          request.value("device", "cpu")};
}

}  // namespace
}  // namespace xcorr

extern "C" {

int xcorr_list(char* json, std::size_t capacity, char* error, std::size_t error_capacity) {
  return xcorr::guarded(error, error_capacity,
                        [&] { return xcorr::give(xcorr::catalogue(), json, capacity); });
}

int xcorr_machine(const char* device, char* json, std::size_t capacity, char* error,
                  std::size_t error_capacity) {
  return xcorr::guarded(error, error_capacity, [&] {
    return xcorr::give(xcorr::machine_facts(*xcorr::open_device(device)), json, capacity);
  });
}

int xcorr_describe(const char* request, char* json, std::size_t capacity, char* error,
                   std::size_t error_capacity) {
  return xcorr::guarded(error, error_capacity, [&] {
    const xcorr::Problem problem = xcorr::problem_of(nlohmann::json::parse(request));
    return xcorr::give({{"pairs", problem.pairs()},
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

// Gives {"reason": TEXT}. The text is empty where the variant computes the request on the device.
// Plans nothing.
int xcorr_supports(const char* request, char* json, std::size_t capacity, char* error,
                   std::size_t error_capacity) {
  return xcorr::guarded(error, error_capacity, [&] {
    const xcorr::ParsedRequest parsed = xcorr::parse_request(nlohmann::json::parse(request));
    const auto device = xcorr::open_device(parsed.device);
    const xcorr::Support support = xcorr::supported(parsed.variant, parsed.plan, *device);
    return xcorr::give({{"reason", support.reason}}, json, capacity);
  });
}

// Plans a request and leaves a session in `session`. xcorr_compute uses it any number of times, and
// xcorr_close destroys it.
int xcorr_open(const char* request, void** session, char* error, std::size_t error_capacity) {
  return xcorr::guarded(error, error_capacity, [&] {
    xcorr::ParsedRequest parsed = xcorr::parse_request(nlohmann::json::parse(request));
    *session = new xcorr::Session(parsed.variant, std::move(parsed.plan),
                                  xcorr::open_device(parsed.device));
    return 0;
  });
}

int xcorr_compute(void* session, const void* left, const void* right, void* out, char* error,
                  std::size_t error_capacity) {
  return xcorr::guarded(error, error_capacity, [&] {
    static_cast<xcorr::Session*>(session)->compute(left, right, out);
    return 0;
  });
}

// Of a problem with masks or views. Pointers are to host memory; what the fields of the problem do
// not use may be null or 0 (struct Arrays in harness/session.hpp).
struct xcorr_arrays {
  const void *left, *right;
  void* out;
  const std::uint8_t *left_mask, *right_mask;
  const std::int64_t *left_offsets, *right_offsets;
  std::int64_t left_pitch, right_pitch;
  std::int64_t left_elements, right_elements;
};

int xcorr_compute_with(void* session, const xcorr_arrays* arrays, char* error,
                       std::size_t error_capacity) {
  return xcorr::guarded(error, error_capacity, [&] {
    const xcorr_arrays& a = *arrays;
    static_cast<xcorr::Session*>(session)->compute({a.left,
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

int xcorr_close(void* session, char* error, std::size_t error_capacity) {
  return xcorr::guarded(error, error_capacity, [&] {
    delete static_cast<xcorr::Session*>(session);
    return 0;
  });
}

// The float64 surface of a request, by `method` definition or fft: left [lefts][rows][cols], right
// [rights][rows][cols], out [pairs][out_rows][out_cols]. A request with views has dense matrices
// here. A mask is a byte a pixel, 0 or 1, and null for a side without one.
int xcorr_reference_masked(const char* request, const double* left, const double* right,
                           const std::uint8_t* left_mask, const std::uint8_t* right_mask,
                           double* out, char* error, std::size_t error_capacity) {
  return xcorr::guarded(error, error_capacity, [&] {
    const nlohmann::json parsed = nlohmann::json::parse(request);
    const xcorr::Problem problem = xcorr::problem_of(parsed);
    const std::string method = parsed.value("method", "definition");
    if (method != "definition" && method != "fft") {
      throw xcorr::UserError("method '" + method + "': unknown; use definition or fft");
    }
    const xcorr::Masks masks = problem.fields.masks;
    if (xcorr::masks_left(masks) != (left_mask != nullptr) ||
        xcorr::masks_right(masks) != (right_mask != nullptr)) {
      throw xcorr::UserError("masks '" + std::string(xcorr::to_string(masks)) +
                             "': give a mask for each side that has one, and for no other");
    }
    if (!problem.surface().is_plain()) {
      xcorr::score_surfaces(problem, left, right, left_mask, right_mask, method == "fft", out);
    } else if (method == "fft") {
      xcorr::FftReference(problem, left, right).correlate(0, problem.pairs(), out);
    } else {
      xcorr::correlate_definition(problem, left, right, 0, problem.pairs(), out);
    }
    return 0;
  });
}

int xcorr_reference(const char* request, const double* left, const double* right, double* out,
                    char* error, std::size_t error_capacity) {
  return xcorr_reference_masked(request, left, right, nullptr, nullptr, out, error, error_capacity);
}

}  // extern "C"
