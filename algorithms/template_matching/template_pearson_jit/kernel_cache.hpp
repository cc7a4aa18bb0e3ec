// Machine code that was compiled at run time, on disk. The key is everything that the code depends on: source,
// sizes, architecture and compiler. A file holds the whole key, so that two keys of one hash are told apart, and
// checksums of all that it holds: what was cut short or damaged counts as not there. A file is written
// under a name of its own and then renamed, so that processes at the same time find whole files or none.
// Where nothing can be written, nothing is kept.
#pragma once

#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace xcorr::template_matching {

// FNV-1a (Fowler, Noll, Vo), 64 bits.
inline std::uint64_t fnv1a(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3u;
  }
  return hash;
}

// Of a program's machine code. The program has the sizes of the problem; `capability` is 90 for 9.0.
inline std::string kernel_key(const std::string& compiler, int capability,
                              const std::string& program) {
  return compiler + " sm_" + std::to_string(capability) + "\n" + program;
}

class KernelCache {
 public:
  struct Entry {
    std::vector<char> code;
    double compile_us = 0;  // what compiling took, when it was compiled
  };

  // XCORR_CACHE_DIR, else the user's cache folder; empty where there is neither.
  static std::filesystem::path usual_folder() {
    if (const char* own = std::getenv("XCORR_CACHE_DIR"); own && *own) return own;
    if (const char* user = std::getenv("XDG_CACHE_HOME"); user && *user) {
      return std::filesystem::path(user) / "xcorr-bench";
    }
    if (const char* home = std::getenv("HOME"); home && *home) {
      return std::filesystem::path(home) / ".cache" / "xcorr-bench";
    }
    return {};
  }

  explicit KernelCache(std::filesystem::path folder) : folder_(std::move(folder)) {}

  std::filesystem::path path(std::string_view key) const {
    constexpr char kDigits[] = "0123456789abcdef";
    std::string name;
    for (std::uint64_t hash = fnv1a(key), i = 0; i < 16; ++i, hash <<= 4) {
      name += kDigits[hash >> 60];
    }
    return folder_ / (name + ".kernel");
  }

  std::optional<Entry> find(std::string_view key) const {
    if (folder_.empty()) return std::nullopt;
    std::ifstream file(path(key), std::ios::binary);
    if (!file) return std::nullopt;
    const std::string all((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
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

  // False where it could not be kept.
  bool keep(std::string_view key, const Entry& entry) const {
    if (folder_.empty()) return false;
    std::error_code error;
    std::filesystem::create_directories(folder_, error);
    if (error) return false;
    static std::atomic<unsigned> number{0};
    std::filesystem::path own = path(key);
    own += "." + std::to_string(getpid()) + "." + std::to_string(number++);
    Head head;
    std::memcpy(head.magic, kMagic, sizeof kMagic);
    head.key_bytes = key.size();
    head.code_bytes = entry.code.size();
    head.compile_us = entry.compile_us;
    const std::string rest = std::string(key) + std::string(entry.code.begin(), entry.code.end());
    head.checksum = checksum(head, rest);
    {
      std::ofstream file(own, std::ios::binary);
      file.write(reinterpret_cast<const char*>(&head), sizeof head);
      file.write(rest.data(), static_cast<std::streamsize>(rest.size()));
      file.flush();
      if (!file) {
        file.close();
        std::filesystem::remove(own, error);
        return false;
      }
    }
    std::filesystem::rename(own, path(key), error);
    if (!error) return true;
    std::filesystem::remove(own, error);
    return false;
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

  std::filesystem::path folder_;
};

}  // namespace xcorr::template_matching
