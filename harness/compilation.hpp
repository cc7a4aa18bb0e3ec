// What compiling at run time took and made. A plan that does it also is a CompiledAtRunTime, and its rows have
// the columns compile_us, load_us and registers.
#pragma once

namespace xcorr {

struct Compilation {
  double compile_us =
      0;  // by the compiler, when the code was compiled: by this plan, or one before it
  double load_us = 0;  // by this plan, from the code in a file to kernels that can be launched
  int registers = 0;   // of a thread of the kernel that does most of the work
};

class CompiledAtRunTime {
 public:
  virtual ~CompiledAtRunTime() = default;
  virtual Compilation compilation() const = 0;
};

}  // namespace xcorr
