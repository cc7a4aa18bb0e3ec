#include "tests/emulation/sample.hpp"

#include "harness/registry.hpp"

namespace xcorr::emulation {

std::map<std::string, std::map<std::vector<int>, AnyKernel>>& compiled_points() {
  static std::map<std::string, std::map<std::vector<int>, AnyKernel>> all;
  return all;
}

std::set<AnyKernel>& launched_kernels() {
  static std::set<AnyKernel> all;
  return all;
}

std::vector<Params> emulated_points(const Variant& variant) {
  std::vector<Params> points = grid_points(variant);
  const auto compiled = compiled_points().find(variant.id);
  if (compiled == compiled_points().end()) return points;
  std::erase_if(points, [&](const Params& params) {
    std::vector<int> point;
    for (const Axis& axis : variant.axes) {
      if (axis.compile_time) point.push_back(params.get_int(axis.name));
    }
    return compiled->second.at(point) == nullptr;
  });
  return points;
}

}  // namespace xcorr::emulation
