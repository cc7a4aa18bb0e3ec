#pragma once

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdlib>
#include <string>

namespace xcorr {

// Refuses numbers beyond 64 bits on a command line: CLI11 2.1 reads them as the largest number.
// Comes after all options of `app` are added.
inline void refuse_beyond_64_bits(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    const std::string type = option->get_type_name();
    const bool is_signed = type.rfind("INT", 0) == 0;
    if (!is_signed && type.rfind("UINT", 0) != 0) continue;
    option->check(CLI::Validator(
        [is_signed](std::string& text) {
          errno = 0;
          (void)(is_signed ? std::strtoll(text.c_str(), nullptr, 0)
                           : static_cast<long long>(std::strtoull(text.c_str(), nullptr, 0)));
          return errno == ERANGE ? text + " is beyond 64 bits, give a smaller number"
                                 : std::string();
        },
        ""));
  }
}

}  // namespace xcorr
