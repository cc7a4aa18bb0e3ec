#include "harness/measure/options.hpp"

#include <nlohmann/json.hpp>

#include "harness/problem/error.hpp"

namespace xcorr {

Options with_line(Options options, const std::string& text, int number) {
  const std::string where = "points, line " + std::to_string(number + 1);
  nlohmann::json line = nlohmann::json::parse(text, nullptr, false);
  if (!line.is_object()) throw UserError(where + ": is no JSON object; write one a line");
  const auto take = [&](const char* name, auto& into) {
    const auto found = line.find(name);
    if (found == line.end()) return;
    try {
      found->get_to(into);
    } catch (const nlohmann::json::exception&) {
      throw UserError(where + ": " + name + " has another type; see --help");
    }
    line.erase(found);
  };
  for (const auto& [name, list] :
       {std::pair{"variant", &options.variants}, {"params", &options.params}}) {
    if (!line.contains(name)) continue;
    list->assign(1, "");
    take(name, list->front());
  }
  take("precision", options.precision);
  take("form", options.form);
  take("left", options.left);
  take("right", options.right);
  take("lefts", options.lefts);
  take("rights", options.rights);
  take("window", options.window);
  take("mode", options.mode);
  take("input", options.input);
  take("energy_time", options.energy_time);
  take("repetitions", options.repetitions);
  take("brief", options.brief);
  for (const std::string_view field : kFieldNames) {
    const std::string name(field);
    if (line.contains(name)) take(name.c_str(), options.fields[name]);
  }
  if (!line.empty()) {
    throw UserError(where + ": key '" + line.begin().key() + "' is unknown; see --help");
  }
  if (!(options.energy_time >= 0 && options.energy_time <= kLongestMeasurement)) {
    throw UserError(where + ": energy_time is out of range; give seconds from 0 to a day");
  }
  if (options.repetitions < 0 || options.repetitions > kMostRepetitions) {
    throw UserError(where + ": repetitions are out of range; give 1 to 1000000");
  }
  return options;
}

}  // namespace xcorr
