// What compiling at run time took and made. A plan that compiles is also a CompiledAtRunTime, and
// its rows have the columns compile_us, load_us and registers.
#pragma once

namespace xcorr {

struct Compilation {
  double compile_us = 0;  // by the compiler, in this plan or in an earlier one
  double load_us = 0;     // by this plan, from a file of code to kernels that can be launched
  int registers = 0;      // of a thread of the kernel that does most of the work
};

class CompiledAtRunTime {
 public:
  virtual ~CompiledAtRunTime() = default;
  virtual Compilation compilation() const = 0;
};

}  // namespace xcorr
