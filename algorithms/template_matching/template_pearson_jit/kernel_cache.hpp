// Machine code that was compiled at run time, on disk. The key is everything that the code depends on: source,
// sizes, architecture and compiler. A file holds the whole key, so that two keys of one hash are told apart, and
// checksums of all that it holds: what was cut short or damaged counts as not there. A file is written
// under a name of its own and then renamed, so that processes at the same time find whole files or none.
// A checksum is no proof of who wrote a file. So code is taken from files only that belong to the user and that nobody
// else may write, in such a folder; in any other folder nothing is found and nothing is kept. Where nothing can be
// written, nothing is kept.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>
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

// An open file or folder; closed at the end of its life.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  bool is_open() const { return number_ >= 0; }
  int number() const { return number_; }
  // What is open, none where nothing is. It stays the same file, whatever its name comes to mean.
  std::optional<struct stat> status() const {
    struct stat found;
    if (number_ < 0 || fstat(number_, &found) != 0) return std::nullopt;
    return found;
  }
  bool write_all(std::string_view text) const {
    while (!text.empty()) {
      const ssize_t written = write(number_, text.data(), text.size());
      if (written <= 0) return false;
      text.remove_prefix(static_cast<std::size_t>(written));
    }
    return true;
  }
  // The first `size` bytes, fewer where there are no more.
  std::string read_all(std::size_t size) const {
    std::string text(size, '\0');
    std::size_t have = 0;
    while (have < size) {
      const ssize_t got = read(number_, text.data() + have, size - have);
      if (got <= 0) break;
      have += static_cast<std::size_t>(got);
    }
    text.resize(have);
    return text;
  }

 private:
  int number_;
};

// Whether what is open belongs to the user, and nobody else may write it.
inline bool is_only_the_users(const struct stat& status) {
  return status.st_uid == geteuid() && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

class KernelCache {
 public:
  static constexpr std::size_t kMostBytes = std::size_t{64} << 20;

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

  // "", or one line that says which folder or file is not only the user's, so that `find` and `keep` leave it alone.
  std::string untrusted(std::string_view key) const {
    const Descriptor folder = opened();
    const auto of_folder = folder.status();
    if (!of_folder) return "";
    if (!is_only_the_users(*of_folder)) return complaint(folder_, *of_folder);
    const auto of_file = opened(folder, key).status();
    return of_file && !is_only_the_users(*of_file) ? complaint(path(key), *of_file) : "";
  }

  std::optional<Entry> find(std::string_view key) const {
    const Descriptor folder = opened();
    const auto of_folder = folder.status();
    if (!of_folder || !is_only_the_users(*of_folder)) return std::nullopt;
    const Descriptor file = opened(folder, key);
    const auto of_file = file.status();
    if (!of_file || !is_only_the_users(*of_file) || !S_ISREG(of_file->st_mode) ||
        static_cast<std::size_t>(of_file->st_size) > kMostBytes) {
      return std::nullopt;
    }
    const std::string all = file.read_all(static_cast<std::size_t>(of_file->st_size));
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
    // Of a path that ends with a slash the last name is empty.
    const std::filesystem::path plain = folder_.has_filename() ? folder_ : folder_.parent_path();
    if (plain.has_parent_path()) std::filesystem::create_directories(plain.parent_path(), error);
    if (!error) mkdir(plain.c_str(), S_IRWXU);
    const Descriptor folder = opened();
    const auto of_folder = folder.status();
    if (!of_folder || !is_only_the_users(*of_folder)) return false;
    static std::atomic<unsigned> number{0};
    const std::string name = path(key).filename();
    const std::string own = name + "." + std::to_string(getpid()) + "." + std::to_string(number++);
    Head head;
    std::memcpy(head.magic, kMagic, sizeof kMagic);
    head.key_bytes = key.size();
    head.code_bytes = entry.code.size();
    head.compile_us = entry.compile_us;
    const std::string rest = std::string(key) + std::string(entry.code.begin(), entry.code.end());
    head.checksum = checksum(head, rest);
    const Descriptor file(openat(folder.number(), own.c_str(),
                                 O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                                 S_IRUSR | S_IWUSR));
    if (!file.is_open()) return false;
    if (file.write_all({reinterpret_cast<const char*>(&head), sizeof head}) &&
        file.write_all(rest) &&
        renameat(folder.number(), own.c_str(), folder.number(), name.c_str()) == 0) {
      return true;
    }
    unlinkat(folder.number(), own.c_str(), 0);
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

  Descriptor opened() const {
    return Descriptor(folder_.empty() ? -1
                                      : open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  // No link, since anyone's may lead to a file of the user; no wait for the other end of a pipe.
  Descriptor opened(const Descriptor& folder, std::string_view key) const {
    return Descriptor(openat(folder.number(), path(key).filename().c_str(),
                             O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  }
  static std::string complaint(const std::filesystem::path& path, const struct stat& status) {
    char mode[8];
    std::snprintf(mode, sizeof mode, "%o", static_cast<unsigned>(status.st_mode & 07777));
    return path.string() + ": belongs to user " + std::to_string(status.st_uid) + " with mode " +
           mode +
           ", so others may write it; kernels are compiled again, name a folder of your own " +
           "with XCORR_CACHE_DIR";
  }

  std::filesystem::path folder_;
};

// Tells the user once a process what is not trusted; nothing where it is "".
inline void say_once(const std::string& untrusted) {
  static std::once_flag said;
  if (untrusted.empty()) return;
  std::call_once(said, [&] { std::fprintf(stderr, "warning: %s\n", untrusted.c_str()); });
}

}  // namespace xcorr::template_matching
