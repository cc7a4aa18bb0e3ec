#include "harness/registry.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <sstream>
#include <utility>

#include "harness/problem/error.hpp"

namespace xcorr {
namespace {

struct PrecisionFacts {
  Precision precision;
  std::string_view name;
  std::size_t bytes;
  double unit_roundoff;
  int digits;  // of a number, or of the first part of a number that is split, in bits
};
// tf32 and fp16 have 10 fraction bits, bf16 has 7. 3xtf32 and bf16x3 split each number into a value
// and a rounded rest, and leave out the product of both rests. A product loses up to 0.75 x 2^-21
// with 3xtf32, and up to 1.6 x 2^-16, mostly less than 2^-17, with bf16x3.
constexpr PrecisionFacts kPrecisions[] = {
    {Precision::fp64, "fp64", 8, 0x1p-53, 53},    {Precision::fp32, "fp32", 4, 0x1p-24, 24},
    {Precision::tf32, "tf32", 4, 0x1p-11, 11},    {Precision::three_tf32, "3xtf32", 4, 0x1p-21, 11},
    {Precision::bf16x3, "bf16x3", 4, 0x1p-16, 8}, {Precision::fp16, "fp16", 4, 0x1p-11, 11}};

const PrecisionFacts& facts(Precision precision) {
  return *std::find_if(std::begin(kPrecisions), std::end(kPrecisions),
                       [&](const PrecisionFacts& f) { return f.precision == precision; });
}

// Filled during static initialisation, in an unspecified order.
std::vector<Variant>& registered() {
  static std::vector<Variant> all;
  return all;
}

const std::vector<std::string>& built_values(const Axis& axis) {
#ifdef XCORR_GRID_QUICK
  if (!axis.quick.empty()) return axis.quick;
#endif
  return axis.values;
}

std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, substituted}));
    }
  }
  return row.back();
}

}  // namespace

bool register_variant(Variant variant, const char* id, const char* family, const char* source_file,
                      const char* source_hash) {
  variant.id = id;
  variant.family = family;
  variant.source_file = source_file;
  variant.source_hash = source_hash;
  registered().push_back(std::move(variant));
  return true;
}

const std::vector<Variant>& variants() {
  static const std::vector<Variant> sorted = [] {
    std::vector<Variant> all = registered();
    std::sort(all.begin(), all.end(),
              [](const Variant& a, const Variant& b) { return a.id < b.id; });
    const auto same = std::adjacent_find(all.begin(), all.end(),
                                         [](const auto& a, const auto& b) { return a.id == b.id; });
    if (same != all.end()) {
      refuse("variant", same->id,
             "two files have this name (" + same->source_file + ", " + (same + 1)->source_file +
                 "); rename one");
    }
    return all;
  }();
  return sorted;
}

const Variant& find_variant(const std::string& id) {
  std::vector<std::string> ids;
  for (const Variant& variant : variants()) {
    if (variant.id == id) return variant;
    ids.push_back(variant.id);
  }
  refuse("variant", id, "unknown; the nearest is '" + nearest(id, ids) + "', --list names all");
}

namespace {

// The points of a variant whose axes have the values in `fixed`. Axes that it does not name have all of their values.
std::vector<Params> points_with(const Variant& variant,
                                const std::map<std::string, std::string>& fixed) {
  std::vector<Params> points = {Params{}};
  for (const Axis& axis : variant.axes) {
    const auto only = fixed.find(axis.name);
    std::vector<Params> extended;
    for (const Params& point : points) {
      for (const std::string& value : built_values(axis)) {
        if (only != fixed.end() && only->second != value) continue;
        Params next = point;
        next.set(axis.name, value);
        extended.push_back(next);
      }
    }
    points = std::move(extended);
  }
  std::vector<Params> distinct;
  std::set<std::string> known;
  for (const Params& point : points) {
    Params remaining;
    for (const auto& [name, value] : point.values()) {
      const bool dropped = std::any_of(
          variant.drops.begin(), variant.drops.end(), [&, name = name](const Drop& drop) {
            return drop.drops == name && point.has(drop.name) && point.get(drop.name) == drop.value;
          });
      if (!dropped) remaining.set(name, value);
    }
    if (known.insert(remaining.canonical()).second) distinct.push_back(remaining);
  }
  return distinct;
}

// The assignments in a text such as "rows=2;warps=4".
std::map<std::string, std::string> assignments(const std::string& text) {
  std::map<std::string, std::string> found;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ';');) {
    const std::size_t equals = std::min(word.find('='), word.size());
    found[word.substr(0, equals)] = word.substr(std::min(equals + 1, word.size()));
  }
  return found;
}

}  // namespace

std::vector<Params> grid_points(const Variant& variant) { return points_with(variant, {}); }

// A grid may have hundreds of points, and a process is asked for tens of thousands.
Params parse_params(const Variant& variant, const std::string& text) {
  for (const Params& point : points_with(variant, assignments(text))) {
    if (point.canonical() == text) return point;
  }
  std::vector<std::string> names;
  for (const Params& point : grid_points(variant)) names.push_back(point.canonical());
  refuse("params", text,
         "no point of " + variant.id + "; the nearest is '" + nearest(text, names) +
             "', --list=json names all");
}

std::string nearest(const std::string& text, const std::vector<std::string>& candidates) {
  const auto best = std::min_element(candidates.begin(), candidates.end(),
                                     [&](const std::string& a, const std::string& b) {
                                       return edit_distance(text, a) < edit_distance(text, b);
                                     });
  return best == candidates.end() ? "" : *best;
}

std::string Params::canonical() const {
  std::string text;
  for (const auto& [name, value] : values_) text += (text.empty() ? "" : ";") + name + "=" + value;
  return text;
}

std::string_view to_string(Backend backend) { return backend == Backend::cpu ? "cpu" : "cuda"; }

std::string_view to_string(Precision precision) { return facts(precision).name; }

std::string_view to_string(AlgorithmClass algorithm_class) {
  return is_definition(algorithm_class) ? "definition" : "fft";
}

Precision parse_precision(const std::string& text) {
  std::vector<std::string> names;
  for (const PrecisionFacts& f : kPrecisions) {
    if (f.name == text) return f.precision;
    names.emplace_back(f.name);
  }
  refuse("precision", text, "unknown; the nearest is '" + nearest(text, names) + "'");
}

std::size_t scalar_bytes(Precision precision) { return facts(precision).bytes; }
double unit_roundoff(Precision precision) { return facts(precision).unit_roundoff; }
bool holds(Precision precision, InputKind kind) {
  return precision != Precision::fp16 ||
         (kind != InputKind::outlier && kind != InputKind::subnormal && kind != InputKind::fill &&
          kind != InputKind::unequal);
}
Index largest_exact_integer(Precision precision) { return Index{1} << facts(precision).digits; }

}  // namespace xcorr
