// What every emulated unit includes, compiled once.
#include "tests/emulation/families.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "harness/problem/problem.hpp"
#include "tests/emulation/vocabulary.hpp"
