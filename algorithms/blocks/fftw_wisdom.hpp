// What FFTW's planner has learnt by timing (its wisdom), kept on disk for later processes: a file for each CPU model,
// version of FFTW, and half of it, in the folder of kept_files.hpp. Also the names of transforms for which the time
// limit was too short: they are not timed again.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "algorithms/blocks/fftw_names.hpp"
#include "algorithms/blocks/kept_files.hpp"
#include "harness/variant.hpp"

namespace xcorr::device {

// Of one half of FFTW. Everything is called with the planner held.
template <typename T>
class Wisdom {
 public:
  explicit Wisdom(std::filesystem::path folder)
      : key_(std::string(kKind)
                 .append(" ")
                 .append(Fftw<T>::version)
                 .append(" ")
                 .append(cpu_model())),
        name_(std::string(kKind).append("-").append(hex(fnv1a(key_))).append(".wisdom")),
        folder_(std::move(folder)) {}

  // That of this process.
  static Wisdom& usual() {
    static Wisdom one(cache_folder());
    return one;
  }

  std::filesystem::path path() const { return folder_.path(name_); }

  // Gives the planner, which knows nothing, what is known. The file is read once.
  void recall() {
    if (!std::exchange(read_, true)) learn();
    Fftw<T>::import(plans_.c_str());
    recalled_ = {lines(), late_};
  }

  // Keeps what the planner has learnt since, beside what other processes have kept in the meantime.
  void keep() {
    if (State{lines(), late_} == recalled_) return;
    plans_ = exported();
    const Descriptor lock = folder_.lock(name_ + ".lock");
    learn();
    std::string all;
    for (const std::string& name : late_) all.append(kLate).append(name).append("\n");
    all.append(plans_);
    folder_.write(name_, head(all).append(all));
  }

  bool is_late(const std::string& name) const { return late_.contains(name); }
  void set_late(const std::string& name) { late_.insert(name); }

 private:
  using Lines = std::multiset<std::string>;
  using State = std::pair<Lines, std::set<std::string>>;
  static constexpr const char* kKind = pick<T>("fftwf", "fftw");
  static constexpr std::string_view kLate = "late ";

  static std::string exported() {
    char* const text = Fftw<T>::export_all();
    std::string plans = text == nullptr ? "" : text;
    std::free(text);
    return plans;
  }

  // Of what the planner knows; their order is that in which it has learnt.
  static Lines lines() {
    Lines found;
    const std::string plans = exported();
    for (std::size_t at = 0; at < plans.size();) {
      const std::size_t end = std::min(plans.find('\n', at), plans.size());
      found.insert(plans.substr(at, end - at));
      at = end + 1;
    }
    return found;
  }

  // A file of another key or of other content counts as not there.
  std::string head(std::string_view all) const {
    return std::string("xcorr wisdom 1, ")
        .append(key_)
        .append(", ")
        .append(hex(fnv1a(all)))
        .append("\n");
  }

  // Adds what the file holds to the planner and to what is known.
  void learn() {
    const std::string file = folder_.read(name_).value_or("");
    std::string_view rest = std::string_view(file).substr(std::min(file.find('\n'), file.size()));
    if (rest.empty()) return;
    rest.remove_prefix(1);
    if (!file.starts_with(head(rest))) return;
    while (rest.starts_with(kLate)) {
      const std::size_t end = rest.find('\n');
      if (end == rest.npos) return;
      late_.emplace(rest.substr(kLate.size(), end - kLate.size()));
      rest.remove_prefix(end + 1);
    }
    if (Fftw<T>::import(std::string(rest).c_str())) plans_ = exported();
  }

  std::string key_, name_;
  KeptFolder folder_;
  bool read_ = false;
  std::string plans_;
  std::set<std::string> late_;
  State recalled_;
};

}  // namespace xcorr::device
