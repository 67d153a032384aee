//===- LaunchErrors.h - the errors of a launch ----------------------------===//
//
// Collects what is found wrong. The same error at the same place in the code
// is listed once, with the block and thread that showed it first and a count.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_CUDA_EMULATOR_KERNEL_LAUNCHERRORS_H
#define TANDEM_CUDA_EMULATOR_KERNEL_LAUNCHERRORS_H

#include "runtime/artifact/Emulation.h"
#include "runtime/artifact/Status.h"

#include <map>
#include <string>
#include <vector>

namespace tandem::emulator::kernel {

class LaunchErrors {
public:
  explicit LaunchErrors(std::string kernel) : kernel(std::move(kernel)) {}

  /// `what` is wrong; `kind` is the same for errors to be counted together.
  /// `thread` may be null: then the error is the block's.
  void error(const uint32_t ctaid[3], const artifact::EmulatedThread *thread,
             const std::string &kind, const std::string &detail,
             const char *site);

  bool any() const { return !lines.empty(); }
  Status status() const;

private:
  struct Line {
    std::string text;
    uint64_t count = 1;
  };
  static constexpr size_t kMostLines = 24;
  std::string kernel;
  std::vector<Line> lines;
  std::map<std::pair<std::string, const char *>, size_t> known;
  uint64_t dropped = 0;
};

} // namespace tandem::emulator::kernel

#endif
