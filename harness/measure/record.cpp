// What the record of a point says (experiments/driver/columns.py has the columns).
#include <nlohmann/json.hpp>

#include "harness/compilation.hpp"
#include "harness/measure/measure.hpp"
#include "harness/measure/median.hpp"
#include "harness/reduce/reduce.hpp"

namespace xcorr {

nlohmann::json Point::record() const {
  const Variant& v = *request_.variant;
  const Problem& p = request_.problem;
  const auto number = [](const std::optional<double>& value) {
    return value ? nlohmann::json(*value) : nlohmann::json(nullptr);
  };
  // A mark takes time itself, on a GPU more than a short phase. So marked times only give the
  // shares of phases in the time without marks.
  double marked_us = 0;
  for (const auto& [name, us] : phases_us_) marked_us += us;
  const auto phase = [&](const char* name, double compute_us) {
    const auto found = phases_us_.find(name);
    return found == phases_us_.end() ? nlohmann::json(nullptr)
                                     : nlohmann::json(found->second * compute_us / marked_us);
  };
  nlohmann::json repetitions = nlohmann::json::array();
  const bool unfinished = outcome_ == Outcome::passed && !finished_;
  for (std::size_t i = 0; finished_ && i < repetitions_.size(); ++i) {
    const auto [iterations, compute_us, sm_mhz] = repetitions_[i];
    nlohmann::json repetition = {{"repetition", i},
                                 {"iterations", iterations},
                                 {"compute_us", compute_us},
                                 {"sm_mhz", sm_mhz > 0 ? nlohmann::json(sm_mhz) : nullptr},
                                 {"slow_clock", sm_mhz > 0 ? (slow(sm_mhz) ? "yes" : "no") : ""},
                                 {"clear_us", phase("clear", compute_us)},
                                 {"build_us", phase("build", compute_us)},
                                 {"forward_us", phase("forward", compute_us)},
                                 {"hadamard_us", phase("hadamard", compute_us)},
                                 {"inverse_us", phase("inverse", compute_us)}};
    if (phases_us_.count("result")) repetition["result_us"] = phase("result", compute_us);
    repetitions.push_back(std::move(repetition));
  }
  const auto of = [](const auto& from, auto member) {
    return from ? nlohmann::json((*from).*member) : nlohmann::json(nullptr);
  };
  const auto of_plans = [&](auto&& statistic) {
    return plans_us_.empty() ? nlohmann::json(nullptr) : nlohmann::json(statistic(plans_us_));
  };

  nlohmann::json record = {
      {"variant", v.id},
      {"family", v.family},
      {"backend", to_string(v.backend)},
      {"precision", to_string(request_.precision)},
      {"form", to_string(p.form)},
      {"left_rows", p.left.rows},
      {"left_cols", p.left.cols},
      {"right_rows", p.right.rows},
      {"right_cols", p.right.cols},
      {"lefts", p.lefts},
      {"rights", p.rights},
      {"window", to_string(p.window)},
      {"params", request_.params.canonical()},
      {"mode", to_string(request_.mode)},
      {"input", to_string(request_.input)},
      {"seed", request_.seed},
      {"outcome", to_string(unfinished ? Outcome::failed : outcome_)},
      {"reason", unfinished ? "the outputs of the timed loop were not checked" : reason_},
      {"plan_us",
       of_plans([](const auto& us) { return (us[(us.size() - 1) / 2] + us[us.size() / 2]) / 2; })},
      {"plan_low_us", of_plans([](const auto& us) { return us[(us.size() - 1) / 4]; })},
      {"plan_high_us",
       of_plans([](const auto& us) { return us[us.size() - 1 - (us.size() - 1) / 4]; })},
      {"plans", plans_us_.size()},
      {"compile_us", of(compilation_, &Compilation::compile_us)},
      {"load_us", of(compilation_, &Compilation::load_us)},
      {"registers", of(compilation_, &Compilation::registers)},
      {"allocate_us", number(allocate_us_)},
      {"upload_us", number(upload_us_)},
      {"download_us", number(download_us_)},
      {"energy_uj", number(energy_uj_)},
      {"launch_us", number(launch_us_)},
      {"max_error", of(statistical_, &Check::error)},
      {"error_bound", of(statistical_, &Check::bound)},
      {"exact_error", of(exact_, &Check::error)},
      {"exact_bound", of(exact_, &Check::bound)},
      {"rel_l2_error", of(statistical_, &Check::rel_l2_error)},
      {"rel_l2_bound", of(statistical_, &Check::rel_l2_bound)},
      {"normalised_error", statistical_ && statistical_->normalised_error < 0
                               ? nlohmann::json(nullptr)
                               : of(statistical_, &Check::normalised_error)},
      {"argmax_agrees", of(statistical_, &Check::argmax_agrees)},
      {"overlap_checked", overlap_checked_},
      {"host_paced", finished_ ? host_paced() : ""},
      {"stopped", stopped_},
      {"fmas", p.fmas()},
      {"bytes", p.bytes(scalar_bytes(request_.precision))},
      {"source_hash", point_hash(v, p)},
      {"machine_key", device_.machine_key()},
      {"repetitions", repetitions}};
  for (const std::string_view name : kFieldNames) {
    const std::string value = field_text(p.fields, name);
    if (value != field_text({}, name)) record[std::string(name)] = value;
  }
  return record;
}

}  // namespace xcorr
