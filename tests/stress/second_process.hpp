// This program once more, with other words on its command line.
#pragma once

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace xcorr::stress {

class SecondProcess {
 public:
  SecondProcess() = default;
  SecondProcess(const SecondProcess&) = delete;
  // It does not outlive this one.
  ~SecondProcess() { kill(); }
  void start(std::vector<std::string> words) {
    std::string name = "stress";
    std::vector<char*> arguments = {name.data()};
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    if (posix_spawn(&id_, "/proc/self/exe", nullptr, nullptr, arguments.data(), environ) != 0) {
      throw std::runtime_error("second process: cannot be started; use --no-child");
    }
  }
  bool started() const { return id_ > 0; }
  // Waits for its end.
  bool succeeds() {
    int status = 0;
    const bool ended = waitpid(id_, &status, 0) == id_;
    id_ = 0;
    return ended && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  void kill() const {
    if (started()) ::kill(id_, SIGKILL);
  }

 private:
  pid_t id_ = 0;
};

}  // namespace xcorr::stress
