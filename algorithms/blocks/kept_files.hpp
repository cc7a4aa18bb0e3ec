// Files that a process keeps for later processes, in the user's cache folder: machine code, FFTW's
// wisdom. A file is written under a unique name and then renamed, so that concurrent processes find
// complete files or none. Only files and folders that belong to the user and that nobody else may
// write are used, since a checksum does not prove who wrote a file.
#pragma once

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace xcorr::device {

// FNV-1a (Fowler, Noll, Vo), 64 bits.
inline std::uint64_t fnv1a(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3u;
  }
  return hash;
}

inline std::string hex(std::uint64_t number) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (int i = 0; i < 16; ++i, number <<= 4) text += kDigits[number >> 60];
  return text;
}

// XCORR_CACHE_DIR, else the user's cache folder; empty if neither exists. With /dev/null nothing is
// kept.
inline std::filesystem::path cache_folder() {
  if (const char* own = std::getenv("XCORR_CACHE_DIR"); own && *own) return own;
  if (const char* user = std::getenv("XDG_CACHE_HOME"); user && *user) {
    return std::filesystem::path(user) / "xcorr-bench";
  }
  if (const char* home = std::getenv("HOME"); home && *home) {
    return std::filesystem::path(home) / ".cache" / "xcorr-bench";
  }
  return {};
}

// An open file or folder; the destructor closes it.
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
  // The status of the open file or folder, if there is one. It stays the same file if its name
  // changes.
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
  // Reads the first `size` bytes, or fewer if the file is shorter.
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

// Whether the file or folder belongs to the user, and nobody else may write it.
inline bool is_only_the_users(const struct stat& status) {
  return status.st_uid == geteuid() && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

class KeptFolder {
 public:
  static constexpr std::size_t kMostBytes = std::size_t{64} << 20;

  explicit KeptFolder(std::filesystem::path path) : path_(std::move(path)) {}

  std::filesystem::path path(const std::string& name) const { return path_ / name; }

  // Says why the folder or the file is not used: others may write it. "" if it is used.
  std::string untrusted(const std::string& name) const {
    const Descriptor folder = opened();
    const auto of_folder = folder.status();
    if (!of_folder) return "";
    if (!is_only_the_users(*of_folder)) return complaint(path_, *of_folder);
    const auto of_file = opened(folder, name).status();
    return of_file && !is_only_the_users(*of_file) ? complaint(path(name), *of_file) : "";
  }

  // The content of the file; nothing if it is missing or others may write it.
  std::optional<std::string> read(const std::string& name) const {
    const Descriptor folder = opened();
    const auto of_folder = folder.status();
    if (!of_folder || !is_only_the_users(*of_folder)) return std::nullopt;
    const Descriptor file = opened(folder, name);
    const auto of_file = file.status();
    if (!of_file || !is_only_the_users(*of_file) || !S_ISREG(of_file->st_mode) ||
        static_cast<std::size_t>(of_file->st_size) > kMostBytes) {
      return std::nullopt;
    }
    return file.read_all(static_cast<std::size_t>(of_file->st_size));
  }

  // Returns false if writing failed; then the file is unchanged.
  bool write(const std::string& name, std::string_view all) const {
    if (!make()) return false;
    const Descriptor folder = opened();
    const auto of_folder = folder.status();
    if (!of_folder || !is_only_the_users(*of_folder)) return false;
    static std::atomic<unsigned> number{0};
    std::string own = name;
    own.append(".").append(std::to_string(getpid()));
    own.append(".").append(std::to_string(number++));
    const Descriptor file(openat(folder.number(), own.c_str(),
                                 O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                                 S_IRUSR | S_IWUSR));
    if (!file.is_open()) return false;
    if (file.write_all(all) &&
        renameat(folder.number(), own.c_str(), folder.number(), name.c_str()) == 0) {
      return true;
    }
    unlinkat(folder.number(), own.c_str(), 0);
    return false;
  }

  // Locks a name for one process at a time, while it reads a file, adds to it and writes it. The
  // lock ends with the returned object. If the lock fails, only an addition of another process can
  // be lost.
  Descriptor lock(const std::string& name) const {
    make();
    const Descriptor folder = opened();
    const auto of_folder = folder.status();
    const bool own = of_folder && is_only_the_users(*of_folder);  // others could hold it for ever
    const int number =
        own ? openat(folder.number(), name.c_str(),
                     O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, S_IRUSR | S_IWUSR)
            : -1;
    if (number >= 0) {
      while (flock(number, LOCK_EX) != 0 && errno == EINTR) {
      }
    }
    return Descriptor(number);
  }

 private:
  // Creates the folder. Returns false only if there is no path.
  bool make() const {
    if (path_.empty()) return false;
    std::error_code error;
    // The last name of a path that ends with a slash is empty.
    const std::filesystem::path plain = path_.has_filename() ? path_ : path_.parent_path();
    if (plain.has_parent_path()) std::filesystem::create_directories(plain.parent_path(), error);
    if (!error) mkdir(plain.c_str(), S_IRWXU);
    return true;
  }
  Descriptor opened() const {
    return Descriptor(path_.empty() ? -1 : open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  // O_NOFOLLOW: a link by others may lead to a file of the user. O_NONBLOCK: no wait for the other
  // end of a pipe.
  static Descriptor opened(const Descriptor& folder, const std::string& name) {
    return Descriptor(
        openat(folder.number(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  }
  static std::string complaint(const std::filesystem::path& path, const struct stat& status) {
    char mode[8];
    std::snprintf(mode, sizeof mode, "%o", static_cast<unsigned>(status.st_mode & 07777));
    return path.string() + ": belongs to user " + std::to_string(status.st_uid) + " with mode " +
           mode + ", so others may write it";
  }

  std::filesystem::path path_;
};

}  // namespace xcorr::device
