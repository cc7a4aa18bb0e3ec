#include "harness/device/device.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "harness/device/host_memory.hpp"
#include "harness/library/forks.hpp"
#include "harness/problem/names.hpp"
#include "harness/reduce/reduce.hpp"
#include "harness/registry.hpp"
#include "harness/truth/field_truth.hpp"
#include "harness/verdict/result_verdict.hpp"

namespace xcorr {
namespace {

constexpr std::pair<Mode, std::string_view> kModes[] = {{Mode::stream, "stream"},
                                                        {Mode::latency, "latency"},
                                                        {Mode::graph, "graph"},
                                                        {Mode::cold, "cold"},
                                                        {Mode::paper, "paper"}};

template <typename Values>
std::string listed(const Values& values) {
  std::string text;
  for (const auto& value : values)
    text += (text.empty() ? "" : ", ") + std::string(to_string(value));
  return text;
}

std::string truth_name(const Problem& problem, Precision precision, AlgorithmClass algorithm_class,
                       std::uint64_t seed) {
  return problem.id() + "/" + std::string(to_string(precision)) + "/" +
         std::to_string(static_cast<int>(algorithm_class)) + "/" + std::to_string(seed);
}

int device_index(const std::string& name, const std::string& digits) {
  if (!digits.empty() && digits.size() < 4 &&
      digits.find_first_not_of("0123456789") == std::string::npos) {
    return std::stoi(digits);
  }
  refuse(
      "device", name,
      "'" + digits + "' is not a number from 0 to 999; write the number of a device, as in cuda:0");
}

}  // namespace

Support Device::runs(const Variant& variant, const PlanRequest& request) const {
  const auto has = [](const auto& values, auto value) {
    return std::find(values.begin(), values.end(), value) != values.end();
  };
  if (const Support backend = runs(variant); !backend) return backend;
  const auto refused = [](std::string what, std::string_view asked, const std::string& known) {
    return no(what.append(" ").append(asked) + ": the variant computes only " + known);
  };
  const Form form = request.problem.form;
  if (!has(variant.forms, form)) return refused("form", to_string(form), listed(variant.forms));
  if (!has(variant.precisions, request.precision)) {
    return refused("precision", to_string(request.precision), listed(variant.precisions));
  }
  const Fields& fields = request.problem.fields;
  const auto only = [&](const char* field, const std::string& known) {
    return refused(field, field_text(fields, field), known);
  };
  if (!has(variant.boundaries, fields.boundary)) {
    return only("boundary", listed(variant.boundaries));
  }
  if (!has(variant.scores, fields.score.kind)) return only("score", listed(variant.scores));
  if (fields.masks != Masks::none && !variant.masks) return only("masks", "none");
  if (!has(variant.views, fields.views)) return only("views", listed(variant.views));
  if (variant.same_only && !fields.same) return only("same", "yes");
  return variant.supports(variant_request(variant, request));
}

Support Device::runs(const Variant& variant) const {
  if (variant.backend == backend()) return yes();
  return no("needs a " + std::string(to_string(variant.backend)) + " device, this is " +
            machine_key());
}

std::shared_ptr<Truth> Device::truth(const Problem& problem, Precision precision,
                                     AlgorithmClass algorithm_class, std::uint64_t seed) {
  const std::string name = truth_name(problem, precision, algorithm_class, seed);
  if (name != cached_truth_name_) {
    cached_truth_.reset();
    const Problem surface = problem.surface();
    std::shared_ptr<Truth> truth;
    if (surface.is_plain()) {
      truth = make_truth(surface, precision, algorithm_class, seed);
    } else {
      truth = std::make_shared<FieldTruth>(surface, precision, algorithm_class, seed, *this,
                                           available_host_bytes() / 2);
    }
    if (problem.fields.result.kind != ResultKind::surface) {
      truth = make_result_truth(problem, std::move(truth), *this);
    }
    cached_truth_ = std::move(truth);
    cached_truth_name_ = name;
  }
  return cached_truth_;
}

std::size_t Device::truth_bytes(const Problem& problem, Precision precision,
                                AlgorithmClass algorithm_class, std::uint64_t seed) {
  if (truth_name(problem, precision, algorithm_class, seed) == cached_truth_name_) return 0;
  cached_truth_.reset();
  cached_truth_name_.clear();
  const Problem surface = problem.surface();
  const std::size_t of_surface =
      surface.is_plain() ? new_truth_bytes(surface) : score_reference_bytes(surface);
  return of_surface + result_truth_bytes(problem);
}

std::size_t Device::score_reference_bytes(const Problem& problem) const {
  return FieldTruth::host_bytes(problem, available_host_bytes() / 2);
}

std::string_view to_string(Mode mode) { return name_of(kModes, mode); }
Mode parse_mode(const std::string& text) { return value_of(kModes, "mode", text); }

std::unique_ptr<Device> open_device(const std::string& name) {
  if (name == "cpu") return open_cpu();
  if (name == "cuda" || name.rfind("cuda:", 0) == 0) {
#ifdef XCORR_WITH_CUDA
    refuse_cuda_after_fork(name);
    return open_cuda(name == "cuda" ? 0 : device_index(name, name.substr(5)));
#else
    device_index(name, name == "cuda" ? "0" : name.substr(5));
    refuse("device", name,
           "this build has no CUDA; build where nvcc is found, or use --device cpu");
#endif
  }
  refuse("device", name, "unknown; use cpu, cuda or cuda:N");
}

std::string bytes_text(std::size_t bytes) {
  constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
  auto count = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; count >= 1000 && unit + 1 < std::size(kUnits); ++unit) count /= 1000;
  char text[32];
  std::snprintf(text, sizeof text, "%.3g %s", count, kUnits[unit]);
  return text;
}

}  // namespace xcorr
