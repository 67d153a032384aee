//===- RunProcess.h - a program that is run beside, with limits -----------===//
//
// What may crash, hang or print too much is run in a process of its own, which
// is ended when its time is over, and when this one is asked to end
// (tools/commands/Interrupt.h), with all that it started.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_TANDEM_RUNPROCESS_H
#define TANDEM_TOOLS_TANDEM_RUNPROCESS_H

#include "runtime/artifact/Status.h"

#include <functional>
#include <string>
#include <vector>

namespace tandem::commands {

struct ProcessEnd {
  int code = 0;           ///< the exit code, where it ended by itself
  int signal = 0;         ///< the signal that ended it, or 0
  bool isTooLate = false; ///< it was ended, since its time was over
  bool isStopped = false; ///< it was ended, since this process was asked to end
  bool isZero() const {
    return code == 0 && signal == 0 && !isTooLate && !isStopped;
  }
};

/// Runs the program in `path` with the command line `words` (`words[0]` is what
/// it is called) and no standard input; what it prints goes to the file
/// `output`, or nowhere if that is empty. Fails with Usage if it cannot be run.
Result<ProcessEnd> runProcess(const std::string &path,
                              const std::vector<std::string> &words,
                              const std::string &output, int64_t seconds);

/// Runs `function` in a copy of this process, which ends with the exit code
/// that it returns.
Result<ProcessEnd> runCopy(const std::function<int()> &function,
                           int64_t seconds);

} // namespace tandem::commands

#endif
