// What the build contains and what machine this is, as JSON: the output of --list and --machine.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "harness/device/device.hpp"

namespace xcorr {

nlohmann::json catalogue();                          // --list=json
std::string catalogue_table();                       // --list
nlohmann::json machine_facts(const Device& device);  // --machine

}  // namespace xcorr
