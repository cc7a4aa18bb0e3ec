// The results of FFTW's timing (its wisdom), kept on disk for later processes: a file per CPU
// model, version of FFTW, and scalar type, in the folder of kept_files.hpp. The file also has the
// names of transforms for which the time limit was too short: they are not timed again.
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

// The wisdom for one scalar type. All functions are called with the planner locked.
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

  // The wisdom of this process.
  static Wisdom& usual() {
    static Wisdom one(cache_folder());
    return one;
  }

  std::filesystem::path path() const { return folder_.path(name_); }

  // Loads the known wisdom into the planner, which must be empty. The file is read once.
  void recall() {
    if (!std::exchange(read_, true)) learn();
    Fftw<T>::import(plans_.c_str());
    recalled_ = {lines(), late_};
  }

  // Saves new wisdom of the planner, together with the wisdom that other processes have saved
  // meanwhile.
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

  // The lines of the planner's wisdom, sorted: the planner exports them in the order of learning.
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

  // A file with another key or other content is treated as missing.
  std::string head(std::string_view all) const {
    return std::string("xcorr wisdom 1, ")
        .append(key_)
        .append(", ")
        .append(hex(fnv1a(all)))
        .append("\n");
  }

  // Adds the content of the file to the planner and to the known wisdom.
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
