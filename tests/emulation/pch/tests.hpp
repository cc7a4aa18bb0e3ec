// What most tests of this program include, compiled once.
#include "tests/emulation/families.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/emulation/conformance.hpp"
#include "tests/emulation/support.hpp"
