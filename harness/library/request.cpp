#include "harness/library/request.hpp"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <vector>

#include "harness/problem/names.hpp"

namespace xcorr {
namespace {

using nlohmann::json;

constexpr std::pair<Planning, std::string_view> kPlannings[] = {
    {Planning::once, "once"}, {Planning::measured, "measured"}, {Planning::kept, "kept"}};
constexpr std::pair<bool, std::string_view> kAnswers[] = {{true, "yes"}, {false, "no"}};
constexpr std::pair<bool, std::string_view> kMethods[] = {{false, "definition"}, {true, "fft"}};

[[noreturn]] void refuse(const std::string& what) { throw UserError("request: " + what); }

std::string shown(const json& value) {
  constexpr std::size_t kMost = 60;
  const std::string text = value.dump(-1, ' ', true, json::error_handler_t::replace);
  return text.size() <= kMost ? text : text.substr(0, kMost) + "...";
}

// An object whose keys are read once each. `end` refuses keys that were not read.
class Reader {
 public:
  explicit Reader(const char* text) {
    if (text == nullptr) refuse("null; give a text in JSON");
    std::set<std::string> keys;
    std::string twice;
    const auto see = [&](int depth, json::parse_event_t event, json& parsed) {
      // No request is deeper than a list in an object. Deeper values are not kept, so that no text
      // causes a deep recursion.
      if (depth > 2) return false;
      if (depth == 1 && event == json::parse_event_t::key &&
          !keys.insert(parsed.get<std::string>()).second) {
        twice = parsed.get<std::string>();
      }
      return true;
    };
    object_ = json::parse(text, see, false);
    if (object_.is_discarded()) refuse("not a text in JSON; give an object of keys and values");
    if (!object_.is_object()) refuse(shown(object_) + " is no object; give keys and values");
    if (!twice.empty()) refuse(shown(twice) + " is given twice; give it once");
  }

  std::string text(const char* key) {
    const json& value = at(key);
    if (!value.is_string()) refuse(named(key, value) + "; give a text");
    return value.get<std::string>();
  }
  std::string text(const char* key, const char* otherwise) {
    known_.emplace_back(key);
    return object_.contains(key) ? text(key) : otherwise;
  }
  Index whole(const char* key) { return whole(key, at(key)); }
  Shape shape(const char* key) {
    const json& value = at(key);
    if (!value.is_array() || value.size() != 2) {
      refuse(named(key, value) + "; give [rows, cols]");
    }
    return {whole(key, value[0]), whole(key, value[1])};
  }
  std::array<Index, 3> strides(const char* key) {
    const json& value = at(key);
    if (!value.is_array() || value.size() != 3) {
      refuse(named(key, value) + "; give [matrix, row, column] in elements");
    }
    return {whole(key, value[0]), whole(key, value[1]), whole(key, value[2])};
  }
  bool has(const char* key) {
    known_.emplace_back(key);
    return object_.contains(key);
  }

  void end() const {
    for (const auto& [key, value] : object_.items()) {
      if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
      std::string keys;
      for (const std::string& one : known_) {
        if (keys.find(one) == std::string::npos) keys += (keys.empty() ? "" : ", ") + one;
      }
      refuse(shown(key) + " is an unknown key; the keys are " + keys);
    }
  }

 private:
  static std::string named(const char* key, const json& value) {
    return std::string(key) + " is " + shown(value);
  }
  const json& at(const char* key) {
    known_.emplace_back(key);
    const auto found = object_.find(key);
    if (found == object_.end()) refuse(std::string(key) + " is missing; give it");
    return *found;
  }
  static Index whole(const char* key, const json& value) {
    constexpr std::uint64_t kMost = std::numeric_limits<Index>::max();
    const bool fits = value.is_number_integer() &&
                      !(value.is_number_unsigned() && value.get<std::uint64_t>() > kMost);
    if (!fits) refuse(named(key, value) + "; give a whole number within 64 bits");
    return value.get<Index>();
  }

  json object_;
  std::vector<std::string> known_;
};

Problem problem_of(Reader& reader) {
  Fields fields;
  for (const std::string_view name : kFieldNames) {
    const std::string key(name);
    if (reader.has(key.c_str())) set_field(fields, name, reader.text(key.c_str()));
  }
  const Form form = parse_form(reader.text("form"));
  const Shape left = reader.shape("left"), right = reader.shape("right");
  const Index lefts = reader.whole("lefts"), rights = reader.whole("rights");
  return make_problem(form, left, right, lefts, rights, reader.text("window", "full"), fields);
}

// Members are set one by one: GCC 12 destroys members of an aggregate twice where a later
// initialiser of its braces throws.
ComputeRequest compute_of(Reader& reader) {
  ComputeRequest request;
  request.plan.problem = problem_of(reader);
  const std::string variant = reader.text("variant"), params = reader.text("params", ""),
                    precision = reader.text("precision", "fp32");
  request.device = reader.text("device", "cpu");
  const std::string planning = reader.text("planning", "once");
  request.variant = &find_variant(variant);
  request.plan.params = params.empty() ? grid_points(*request.variant).front()
                                       : parse_params(*request.variant, params);
  request.plan.precision = parse_precision(precision);
  request.plan.planning = value_of(kPlannings, "planning", planning);
  return request;
}

SideLayout layout_of(Reader& reader, const ComputeRequest& request, Side side) {
  const std::string name = side == Side::left ? "left_" : "right_";
  const std::string type = name + "type", strides = name + "strides", aligned = name + "aligned";
  SideLayout layout = dense_layout(request.plan.problem, side, request.plan.precision);
  if (reader.has(type.c_str())) layout.type = parse_element_type(type, reader.text(type.c_str()));
  if (reader.has(strides.c_str())) layout.strides = reader.strides(strides.c_str());
  layout.aligned = value_of(kAnswers, aligned, reader.text(aligned.c_str(), "yes"));
  return layout;
}

}  // namespace

Problem read_problem(const char* text) {
  Reader reader(text);
  const Problem problem = problem_of(reader);
  reader.end();
  return problem;
}

ComputeRequest read_compute(const char* text) {
  Reader reader(text);
  ComputeRequest request = compute_of(reader);
  reader.end();
  return request;
}

DeviceRequest read_device(const char* text) {
  Reader reader(text);
  DeviceRequest request;
  request.compute = compute_of(reader);
  request.layouts[0] = layout_of(reader, request.compute, Side::left);
  request.layouts[1] = layout_of(reader, request.compute, Side::right);
  reader.end();
  return request;
}

ReferenceRequest read_reference(const char* text) {
  Reader reader(text);
  ReferenceRequest request;
  request.problem = problem_of(reader);
  const std::string method = reader.text("method", "definition");
  reader.end();
  request.by_transform = value_of(kMethods, "method", method);
  return request;
}

}  // namespace xcorr
