#include "harness/problem/fields.hpp"

#include <charconv>
#include <cmath>
#include <utility>

#include "harness/problem/names.hpp"

namespace xcorr {
namespace {

constexpr std::pair<Boundary, std::string_view> kBoundaries[] = {{Boundary::zero, "zero"},
                                                                 {Boundary::circular, "circular"}};
constexpr std::pair<ScoreKind, std::string_view> kScores[] = {{ScoreKind::product, "product"},
                                                              {ScoreKind::covariance, "covariance"},
                                                              {ScoreKind::ncc, "ncc"},
                                                              {ScoreKind::zncc, "zncc"},
                                                              {ScoreKind::phase, "phase"}};
constexpr std::pair<Masks, std::string_view> kMasks[] = {
    {Masks::none, "none"}, {Masks::left, "left"}, {Masks::right, "right"}, {Masks::both, "both"}};
constexpr std::pair<ResultKind, std::string_view> kResults[] = {{ResultKind::surface, "surface"},
                                                                {ResultKind::peak, "peak"},
                                                                {ResultKind::peaks, "peaks"},
                                                                {ResultKind::above, "above"},
                                                                {ResultKind::sum, "sum"}};
constexpr std::pair<bool, std::string_view> kSame[] = {{false, "no"}, {true, "yes"}};
constexpr std::pair<Views, std::string_view> kViews[] = {
    {Views::dense, "dense"}, {Views::windows, "windows"}, {Views::channels, "channels"}};

// The shortest decimal without exponent that reads back as the same number.
std::string decimal(double value) {
  char text[400];
  const auto end = std::to_chars(text, text + sizeof text, value, std::chars_format::fixed).ptr;
  return {text, end};
}

template <typename T>
T number(std::string_view digits, std::string_view field, std::string_view text,
         const std::string& example) {
  T value{};
  const char* const end = digits.data() + digits.size();
  const auto read = std::from_chars(digits.data(), end, value);
  bool fits = read.ec == std::errc{} && read.ptr == end;
  if constexpr (std::is_floating_point_v<T>) fits = fits && std::isfinite(value);
  if (!fits) refuse(field, text, "a number was expected; write " + example);
  return value;
}

// "zncc:0.5" is "zncc" and "0.5"; without a colon the second part is empty.
std::pair<std::string_view, std::string_view> split(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return {text, {}};
  return {text.substr(0, colon), text.substr(colon + 1)};
}
bool has_argument(std::string_view text) { return text.find(':') != std::string_view::npos; }

Score parse_score(std::string_view text) {
  const auto [name, argument] = split(text);
  Score score;
  score.kind = value_of(kScores, "score", name);
  if (!has_argument(text)) return score;
  if (is_normalised(score.kind)) {
    const std::string example = std::string(name) + ":0.3, a least overlap above 0 and at most 1";
    score.min_overlap = number<double>(argument, "score", text, example);
    if (!(score.min_overlap > 0 && score.min_overlap <= 1)) {
      refuse("score", text, "out of range; write " + example);
    }
  } else if (score.kind == ScoreKind::phase) {
    const std::string example = "phase:0.5, an exponent of at least 0 and below 1";
    score.exponent = number<double>(argument, "score", text, example);
    if (!(score.exponent >= 0 && score.exponent < 1)) {
      refuse("score", text, "out of range; write " + example);
    }
    score.exponent += 0.0;  // -0 is 0
  } else {
    refuse("score", text, "takes no number; write " + std::string(name));
  }
  return score;
}

std::string score_text(const Score& score) {
  std::string text(name_of(kScores, score.kind));
  if (is_normalised(score.kind)) text.append(":").append(decimal(score.min_overlap));
  if (score.kind == ScoreKind::phase) text.append(":").append(decimal(score.exponent));
  return text;
}

Result parse_result(std::string_view text) {
  constexpr int kMostPeaks = 1024, kFinest = 1000, kLargestDistance = 32767;
  constexpr std::int64_t kMostDetections = std::int64_t{1} << 30;  // 16 GiB of them
  const auto [name, argument] = split(text);
  Result result;
  result.kind = value_of(kResults, "result", name);
  switch (result.kind) {
    case ResultKind::peak: {
      if (!has_argument(text) || argument == "parabola") return result;
      if (argument == "gaussian") {
        result.sub_pixel = SubPixel::gaussian;
        return result;
      }
      constexpr std::string_view kUpsample = "upsample=";
      if (!argument.starts_with(kUpsample)) {
        refuse("result", text, "unknown; use peak:parabola, peak:gaussian or peak:upsample=20");
      }
      result.sub_pixel = SubPixel::upsample;
      result.upsample =
          number<int>(argument.substr(kUpsample.size()), "result", text, "peak:upsample=20");
      if (result.upsample < 2 || result.upsample > kFinest) {
        refuse("result", text, "out of range; use 2.." + std::to_string(kFinest));
      }
      return result;
    }
    case ResultKind::peaks:
      result.count = number<int>(argument, "result", text, "peaks:5, the number of peaks a pair");
      if (result.count < 1 || result.count > kMostPeaks) {
        refuse("result", text, "out of range; use 1.." + std::to_string(kMostPeaks));
      }
      return result;
    case ResultKind::above: {
      const std::string example =
          "above:0.8:1000 or above:8mad:1000, a threshold and a capacity, or above:0.8:1000:16 "
          "with a "
          "least distance";
      auto [threshold, rest] = split(argument);
      const auto [capacity, distance] = split(rest);
      if (capacity.empty()) refuse("result", text, "a capacity is missing; write " + example);
      if (threshold.ends_with("mad")) {
        result.of_deviations = true;
        threshold.remove_suffix(3);
      }
      result.threshold = number<double>(threshold, "result", text, example) + 0.0;
      result.capacity = number<std::int64_t>(capacity, "result", text, example);
      if (result.capacity < 1 || result.capacity > kMostDetections) {
        refuse("result", text,
               "capacity out of range; use 1 to " + std::to_string(kMostDetections) +
                   ", and a larger threshold or a least distance if more are found");
      }
      if (has_argument(rest)) result.distance = number<int>(distance, "result", text, example);
      if (result.distance < 1 || result.distance > kLargestDistance) {
        refuse("result", text,
               "distance out of range; use 1 to " + std::to_string(kLargestDistance) + " pixels");
      }
      if (result.of_deviations && result.threshold < 0) {
        refuse("result", text, "a negative number of deviations; write " + example);
      }
      return result;
    }
    default:
      if (has_argument(text)) refuse("result", text, "takes no number; write " + std::string(name));
      return result;
  }
}

std::string result_text(const Result& result) {
  std::string name(name_of(kResults, result.kind));
  switch (result.kind) {
    case ResultKind::peak:
      if (result.sub_pixel == SubPixel::gaussian) return name + ":gaussian";
      if (result.sub_pixel == SubPixel::parabola) return name;
      return name + ":upsample=" + std::to_string(result.upsample);
    case ResultKind::peaks:
      return name + ":" + std::to_string(result.count);
    case ResultKind::above:
      return name + ":" + decimal(result.threshold) + (result.of_deviations ? "mad" : "") + ":" +
             std::to_string(result.capacity) +
             (result.distance > 1 ? ":" + std::to_string(result.distance) : "");
    default:
      return name;
  }
}

}  // namespace

void set_field(Fields& fields, std::string_view name, std::string_view value) {
  if (name == "boundary") {
    fields.boundary = value_of(kBoundaries, name, value);
  } else if (name == "score") {
    fields.score = parse_score(value);
  } else if (name == "masks") {
    fields.masks = value_of(kMasks, name, value);
  } else if (name == "result") {
    fields.result = parse_result(value);
  } else if (name == "same") {
    fields.same = value_of(kSame, name, value);
  } else if (name == "views") {
    fields.views = value_of(kViews, name, value);
  } else {
    refuse("field", name, "unknown; use boundary, score, masks, result, same or views");
  }
}

std::string field_text(const Fields& fields, std::string_view name) {
  if (name == "boundary") return std::string(to_string(fields.boundary));
  if (name == "score") return score_text(fields.score);
  if (name == "masks") return std::string(to_string(fields.masks));
  if (name == "result") return result_text(fields.result);
  if (name == "same") return std::string(name_of(kSame, fields.same));
  return std::string(to_string(fields.views));
}

std::string_view to_string(Boundary boundary) { return name_of(kBoundaries, boundary); }
std::string_view to_string(ScoreKind kind) { return name_of(kScores, kind); }
std::string_view to_string(Masks masks) { return name_of(kMasks, masks); }
std::string_view to_string(ResultKind kind) { return name_of(kResults, kind); }
std::string_view to_string(Views views) { return name_of(kViews, views); }

}  // namespace xcorr
