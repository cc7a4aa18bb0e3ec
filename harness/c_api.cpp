// The C interface of libxcorr, for harness/library.py: one call computes one problem on the
// caller's data. Every function returns 0, or 1 with one line in `error`; functions that give JSON
// return 2 when the buffer is too small and then leave the needed size in it as decimal text.
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>

#include "harness/catalogue.hpp"
#include "harness/error.hpp"
#include "harness/registry.hpp"

namespace xcorr {
namespace {

Problem problem_of(const nlohmann::json& request) {
  const auto shape = [&](const char* key) {
    return Shape{request.at(key).at(0).get<Index>(), request.at(key).at(1).get<Index>()};
  };
  return make_problem(parse_form(request.at("form").get<std::string>()), shape("left"),
                      shape("right"), request.at("lefts").get<Index>(),
                      request.at("rights").get<Index>(), request.value("window", "full"));
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
    put("memory: the system refused an allocation; use fewer or smaller matrices", error, capacity);
  } catch (const std::exception& caught) {
    put(caught.what(), error, capacity);
  }
  return 1;
}

void correlate(const nlohmann::json& request, const void* left, const void* right, void* out) {
  const Variant& variant = find_variant(request.at("variant").get<std::string>());
  const std::string params = request.value("params", "");
  PlanRequest plan{problem_of(request),
                   params.empty() ? grid_points(variant).front() : parse_params(variant, params),
                   parse_precision(request.value("precision", "fp32")), nullptr, nullptr};
  const std::unique_ptr<Device> device = open_device(request.value("device", "cpu"));
  const Problem& problem = plan.problem;
  plan.stream = device->stream();
  if (const Support support = device->runs(variant, plan); !support) {
    throw UserError("variant '" + variant.id + "': not supported: " + support.reason +
                    "; --list names others");
  }

  const std::size_t scalar = scalar_bytes(plan.precision);
  const auto bytes = [&](Index elements) { return static_cast<std::size_t>(elements) * scalar; };
  const std::size_t workspace = variant.workspace_bytes(plan);
  // On the host the caller's own arrays are used; elsewhere they are copied.
  const std::size_t data =
      device->host_memory()
          ? 0
          : bytes(problem.left_elements() + problem.right_elements() + problem.out_elements());
  if (workspace + data > device->available_bytes()) {
    throw OutOfMemory("memory: " + bytes_text(static_cast<double>(workspace + data)) +
                      " are needed, " + bytes_text(static_cast<double>(device->available_bytes())) +
                      " are available; use fewer or smaller matrices");
  }
  const Buffer scratch = device->allocate(std::max<std::size_t>(workspace, 1));
  plan.workspace = scratch.get();
  const std::unique_ptr<Plan> planned = variant.plan(plan);
  if (device->host_memory()) {
    planned->compute({left, right, out, device->stream(), nullptr});
    device->synchronize();
    return;
  }
  const Buffer l = device->allocate(bytes(problem.left_elements()));
  const Buffer r = device->allocate(bytes(problem.right_elements()));
  const Buffer o = device->allocate(bytes(problem.out_elements()));
  device->upload(l.get(), left, bytes(problem.left_elements()));
  device->upload(r.get(), right, bytes(problem.right_elements()));
  planned->compute({l.get(), r.get(), o.get(), device->stream(), nullptr});
  device->synchronize();
  device->download(out, o.get(), bytes(problem.out_elements()));
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
                        {"max_overlap", problem.max_overlap()}},
                       json, capacity);
  });
}

int xcorr_correlate(const char* request, const void* left, const void* right, void* out,
                    char* error, std::size_t error_capacity) {
  return xcorr::guarded(error, error_capacity, [&] {
    xcorr::correlate(nlohmann::json::parse(request), left, right, out);
    return 0;
  });
}

int xcorr_reference(const char* request, const double* left, const double* right, double* out,
                    char* error, std::size_t error_capacity) {
  return xcorr::guarded(error, error_capacity, [&] {
    const nlohmann::json parsed = nlohmann::json::parse(request);
    const xcorr::Problem problem = xcorr::problem_of(parsed);
    const std::string method = parsed.value("method", "definition");
    if (method == "fft") {
      xcorr::FftReference(problem, left, right).correlate(0, problem.pairs(), out);
    } else if (method != "definition") {
      throw xcorr::UserError("method '" + method + "': unknown; use definition or fft");
    } else {
      xcorr::correlate_definition(problem, left, right, 0, problem.pairs(), out);
    }
    return 0;
  });
}

}  // extern "C"
