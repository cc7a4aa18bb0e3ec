#include "tests/stress/problems.hpp"

#include <cmath>

namespace xcorr::stress {
namespace {

constexpr double kRoundoff = 0x1p-24;
constexpr double kByDefinition = 1 << 26;  // FMAs up to which the truth is made by the definition

// In [-1, 1), a multiple of 2^-23: the same number in float and double.
float value_at(std::uint64_t seed, std::uint64_t index) {
  std::uint64_t x = (seed << 40) + index + 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return static_cast<float>(static_cast<double>((x ^ (x >> 31)) >> 40) * 0x1p-23 - 1.0);
}

std::vector<float> values(std::uint64_t seed, std::size_t count) {
  std::vector<float> result(count);
  for (std::size_t i = 0; i < count; ++i) result[i] = value_at(seed, i);
  return result;
}

nlohmann::json request(const char* form, int left_rows, int left_cols, int right_rows,
                       int right_cols, int lefts, int rights, const char* window = "full") {
  return {{"form", form},
          {"left", {left_rows, left_cols}},
          {"right", {right_rows, right_cols}},
          {"lefts", lefts},
          {"rights", rights},
          {"window", window}};
}

}  // namespace

TestProblem::TestProblem(nlohmann::json request, std::uint64_t seed)
    : request_(std::move(request)) {
  const auto at = [&](const char* key) { return request_.at(key).get<std::size_t>(); };
  const auto text = request_.dump();
  const nlohmann::json facts =
      answer([&](auto... into) { return xcorr_describe(text.c_str(), into...); });
  pairs_ = facts.at("pairs");
  out_rows_ = facts.at("out_rows");
  out_cols_ = facts.at("out_cols");
  overlap_ = facts.at("max_overlap");
  const auto side = [&](const char* key) {
    return std::to_string(request_.at(key).at(0).get<int>()) + "x" +
           std::to_string(request_.at(key).at(1).get<int>());
  };
  name_ = request_.at("form").get<std::string>() + "/" + side("left") + "/" + side("right") + "/" +
          std::to_string(at("lefts")) + ":" + std::to_string(at("rights")) + "/" +
          request_.at("window").get<std::string>();
  const auto elements = [&](const char* shape, const char* count) {
    return request_.at(shape).at(0).get<std::size_t>() *
           request_.at(shape).at(1).get<std::size_t>() * at(count);
  };
  const bool same = request_.contains("same");
  if (same) name_ += "/same=yes";
  if (request_.contains("score")) name_ += "/score=" + request_.at("score").get<std::string>();
  nlohmann::json reference = request_;
  reference.erase("same");
  reference["method"] = facts.at("fmas").get<double>() <= kByDefinition ? "definition" : "fft";
  const std::string of_truth = reference.dump();
  for (Data& data : data_) {
    data.left = values(4 * seed, elements("left", "lefts"));
    data.right = same ? data.left : values(4 * seed + 1, elements("right", "rights"));
    seed += 1;
    const std::vector<double> left(data.left.begin(), data.left.end()),
        right(data.right.begin(), data.right.end());
    data.truth.resize(pairs_ * out_rows_ * out_cols_);
    checked([&](char* error, std::size_t n) {
      return xcorr_reference(of_truth.c_str(), left.data(), right.data(), data.truth.data(), error,
                             n);
    });
  }
}

std::string TestProblem::wrong(int turn, const std::vector<float>& out, bool by_transform) const {
  const std::vector<double>& truth = data(turn).truth;
  const std::size_t size = out_rows_ * out_cols_;
  // Of ||out - truth|| / ||truth|| of a pair. One value of 2^18 that is off by its own size gives
  // 2^-9, 200 times as much.
  const double most = by_transform ? 1e-5 : kRoundoff * (4 * std::sqrt(overlap_) + 16);
  for (std::size_t pair = 0; pair < pairs_; ++pair) {
    double error = 0, total = 0, largest = -1;
    std::size_t worst = 0;
    for (std::size_t i = pair * size; i < (pair + 1) * size; ++i) {
      const double off = std::isfinite(out[i]) ? std::abs(out[i] - truth[i]) : INFINITY;
      error += off * off;
      total += truth[i] * truth[i];
      if (off > largest) {
        largest = off;
        worst = i;
      }
    }
    if (error <= most * most * total) continue;
    const std::size_t i = worst - pair * size;
    return "pair " + std::to_string(pair) + ", row " + std::to_string(i / out_cols_) + ", column " +
           std::to_string(i % out_cols_) + " is " + std::to_string(out[worst]) + ", expected " +
           std::to_string(truth[worst]);
  }
  return "";
}

std::vector<nlohmann::json> requests(bool small) {
  std::vector<nlohmann::json> result = {
      request("one-to-one", 16, 16, 16, 16, 1, 1),
      request("one-to-one", 33, 31, 33, 31, 1, 1),
      request("one-to-many", 24, 24, 24, 24, 1, 5),
      request("n-to-mn", 16, 20, 16, 20, 3, 6),
      request("n-to-m", 17, 13, 17, 13, 3, 4),
      request("n-to-m", 8, 8, 20, 24, 2, 3, "valid"),
      request("one-to-one", 1, 60, 1, 90, 1, 1),
      request("one-to-one", 5, 9, 12, 7, 1, 1, "sy:-2..3,sx:-4..1"),
      request("n-to-m", 2, 21, 2, 300, 3, 1, "valid"),
      request("n-to-m", 6, 7, 20, 24, 2, 3, "valid"),
      request("one-to-one", 9, 14, 9, 14, 1, 1, "sy:0..5,sx:-6..6"),
  };
  (result.end() - 2)->emplace("score", "zncc");
  result.back()["same"] = "yes";
  if (small) return result;
  for (const int side : {32, 64, 96, 128, 256}) {
    result.push_back(request("one-to-one", side, side, side, side, 1, 1));
  }
  for (const int side : {32, 64, 100}) {
    result.push_back(request("one-to-many", side, side, side, side, 1, 32));
    result.push_back(request("n-to-mn", side, side, side, side, 4, 32));
    result.push_back(request("n-to-m", side, side, side, side, 6, 8));
  }
  result.push_back(request("n-to-m", 32, 32, 64, 64, 16, 4, "valid"));
  result.push_back(request("one-to-one", 1, 3000, 1, 4000, 1, 1));
  result.push_back(request("n-to-m", 1, 256, 1, 20000, 16, 1, "valid"));
  return result;
}

}  // namespace xcorr::stress
