#include "harness/library/catalogue.hpp"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "build_facts.hpp"
#include "harness/reduce/reduce.hpp"
#include "harness/registry.hpp"

namespace xcorr {
namespace {

template <typename Values>
std::vector<std::string> names(const Values& values) {
  std::vector<std::string> result;
  for (const auto& value : values) result.emplace_back(to_string(value));
  return result;
}

nlohmann::json describe(const Variant& v) {
  nlohmann::json axes = nlohmann::json::array(), drops = nlohmann::json::array();
  for (const Axis& axis : v.axes) {
    axes.push_back(
        {{"name", axis.name}, {"values", axis.values}, {"compile_time", axis.compile_time}});
  }
  for (const Drop& drop : v.drops) {
    drops.push_back({{"when", drop.name + "=" + drop.value}, {"drops", drop.drops}});
  }
  nlohmann::json points = nlohmann::json::array();
  for (const Params& point : grid_points(v)) points.push_back(point.canonical());
  std::vector<ResultKind> reduced;  // by the harness, from the variant's surface
  for (const ResultKind kind : {ResultKind::surface, ResultKind::peak, ResultKind::peaks,
                                ResultKind::above, ResultKind::sum}) {
    if (std::find(v.results.begin(), v.results.end(), kind) == v.results.end()) {
      reduced.push_back(kind);
    }
  }
  std::vector<std::string> modes = {"stream", "latency", "cold", "paper"};
  if (v.backend == Backend::cuda) modes.push_back("graph");
  return {{"id", v.id},
          {"family", v.family},
          {"parent", v.parent},
          {"summary", v.summary},
          {"source", v.source},
          {"backend", to_string(v.backend)},
          {"algorithm_class", to_string(v.algorithm_class)},
          {"precisions", names(v.precisions)},
          {"forms", names(v.forms)},
          {"boundaries", names(v.boundaries)},
          {"scores", names(v.scores)},
          {"masks", v.masks},
          {"results", names(v.results)},
          {"reduced_results", names(reduced)},
          {"views", names(v.views)},
          {"same_only", v.same_only},
          {"axes", axes},
          {"drops", drops},
          {"points", points},
          {"modes", modes},
          {"emulated", v.emulated},
          {"source_file", v.source_file},
          {"source_hash", v.source_hash},
          {"reduction_hash", reduction_hash(v.backend)}};
}

}  // namespace

nlohmann::json catalogue() {
  nlohmann::json all = nlohmann::json::array();
  for (const Variant& variant : variants()) all.push_back(describe(variant));
  return {{"grid", XCORR_GRID}, {"variants", all}};
}

std::string catalogue_table() {
  std::vector<std::vector<std::string>> rows = {
      {"id", "family", "backend", "precisions", "points", "without a GPU", "summary"}};
  const auto join = [](const std::vector<std::string>& parts) {
    std::string text;
    for (const std::string& part : parts) text += (text.empty() ? "" : ",") + part;
    return text;
  };
  for (const Variant& v : variants()) {
    const std::string testable = v.backend == Backend::cpu ? "runs"
                                 : v.emulated              ? "emulated"
                                                           : "exempt";
    rows.push_back({v.id, v.family, std::string(to_string(v.backend)), join(names(v.precisions)),
                    std::to_string(grid_points(v).size()), testable, v.summary});
  }
  std::vector<std::size_t> widths(rows[0].size());
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::ostringstream text;
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      text << row[i];
      if (i + 1 < row.size()) text << std::string(widths[i] - row[i].size() + 2, ' ');
    }
    text << '\n';
  }
  return text.str();
}

nlohmann::json machine_facts(const Device& device) {
  nlohmann::json facts = device.facts();
  utsname system{};
  uname(&system);
  facts["machine_key"] = device.machine_key();
  facts["host"] = {
      {"system", system.sysname}, {"release", system.release}, {"machine", system.machine}};
  facts["compiler"] = XCORR_COMPILER;
  facts["flags"] = XCORR_FLAGS;
  facts["package_version"] = XCORR_VERSION;
  facts["google_benchmark"] = XCORR_BENCHMARK_VERSION
      " (a distribution's package may be a debug build; manual time does not pass through it)";
  for (const char* key : {"driver", "cuda", "cufft_version"}) {
    if (!facts.contains(key)) facts[key] = "";
  }
  return facts;
}

}  // namespace xcorr
