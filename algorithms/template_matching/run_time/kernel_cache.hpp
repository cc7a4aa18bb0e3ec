// Machine code that was compiled at run time, on disk. The key is everything on which the code
// depends: source, sizes, architecture and compiler. A file holds the whole key, which tells keys
// with the same hash apart, and checksums of its content. A file that is cut short or damaged
// counts as missing, and so does one that does not belong to the user alone
// (blocks/kept_files.hpp).
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "algorithms/blocks/kept_files.hpp"

namespace xcorr::template_matching {

using device::fnv1a;

// The key of a program's machine code. The program contains the sizes of the problem; `capability`
// is 90 for 9.0.
inline std::string kernel_key(const std::string& compiler, int capability,
                              const std::string& program) {
  return compiler + " sm_" + std::to_string(capability) + "\n" + program;
}

class KernelCache {
 public:
  static constexpr std::size_t kMostBytes = device::KeptFolder::kMostBytes;

  struct Entry {
    std::vector<char> code;
    double compile_us = 0;  // duration of the compilation that made `code`
  };

  static std::filesystem::path usual_folder() { return device::cache_folder(); }

  explicit KernelCache(std::filesystem::path folder) : folder_(std::move(folder)) {}

  std::filesystem::path path(std::string_view key) const { return folder_.path(name(key)); }

  // "", or one line that names the folder or file that does not belong to the user alone, so that
  // `find` and `keep` ignore it.
  std::string untrusted(std::string_view key) const {
    const std::string found = folder_.untrusted(name(key));
    if (found.empty()) return "";
    return found + "; kernels are compiled again, name a folder of your own with XCORR_CACHE_DIR";
  }

  std::optional<Entry> find(std::string_view key) const {
    const std::string all = folder_.read(name(key)).value_or("");
    Head head;
    if (all.size() < sizeof head) return std::nullopt;
    std::memcpy(&head, all.data(), sizeof head);
    const std::string_view rest = std::string_view(all).substr(sizeof head);
    if (std::memcmp(head.magic, kMagic, sizeof kMagic) != 0 || head.key_bytes != key.size() ||
        head.key_bytes > rest.size() || head.code_bytes != rest.size() - head.key_bytes ||
        head.checksum != checksum(head, rest) || rest.substr(0, key.size()) != key) {
      return std::nullopt;
    }
    const std::string_view code = rest.substr(key.size());
    return Entry{{code.begin(), code.end()}, head.compile_us};
  }

  // Returns false if it could not be stored.
  bool keep(std::string_view key, const Entry& entry) const {
    Head head;
    std::memcpy(head.magic, kMagic, sizeof kMagic);
    head.key_bytes = key.size();
    head.code_bytes = entry.code.size();
    head.compile_us = entry.compile_us;
    const std::string rest = std::string(key) + std::string(entry.code.begin(), entry.code.end());
    head.checksum = checksum(head, rest);
    return folder_.write(
        name(key), std::string(reinterpret_cast<const char*>(&head), sizeof head).append(rest));
  }

 private:
  static constexpr char kMagic[8] = {'x', 'c', 'o', 'r', 'r', 'k', '0', '1'};
  struct Head {
    char magic[8];
    std::uint64_t key_bytes, code_bytes;
    double compile_us;
    std::uint64_t checksum;
  };
  static std::uint64_t checksum(const Head& head, std::string_view rest) {
    char numbers[3 * 8];
    std::memcpy(numbers, &head.key_bytes, 8);
    std::memcpy(numbers + 8, &head.code_bytes, 8);
    std::memcpy(numbers + 16, &head.compile_us, 8);
    return fnv1a(std::string(numbers, sizeof numbers) + std::string(rest));
  }

  static std::string name(std::string_view key) { return device::hex(fnv1a(key)) + ".kernel"; }

  device::KeptFolder folder_;
};

// Tells the user, once per process, what is not trusted; nothing if it is "".
inline void say_once(const std::string& untrusted) {
  static std::once_flag said;
  if (untrusted.empty()) return;
  std::call_once(said, [&] { std::fprintf(stderr, "warning: %s\n", untrusted.c_str()); });
}

}  // namespace xcorr::template_matching
