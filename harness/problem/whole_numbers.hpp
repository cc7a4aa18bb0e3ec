// Whole numbers on the command lines of programs: what 64 bits do not hold is refused.
#pragma once

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdlib>
#include <string>

namespace xcorr {

// Call it when all options of `app` are added. CLI11 2.1 reads a number beyond 64 bits as the largest that they hold.
inline void refuse_beyond_64_bits(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    const std::string type = option->get_type_name();
    const bool is_signed = type.rfind("INT", 0) == 0;
    if (!is_signed && type.rfind("UINT", 0) != 0) continue;
    option->check(CLI::Validator(
        [is_signed](std::string& text) {
          errno = 0;
          if (is_signed) {
            (void)std::strtoll(text.c_str(), nullptr, 0);
          } else {
            (void)std::strtoull(text.c_str(), nullptr, 0);
          }
          return errno == ERANGE ? text + " is beyond 64 bits, give a smaller number"
                                 : std::string();
        },
        ""));
  }
}

}  // namespace xcorr
