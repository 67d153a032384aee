//===- RunScript.h - a user's script, with a limit of time ----------------===//
#ifndef TANDEM_TOOLS_TANDEM_RUNSCRIPT_H
#define TANDEM_TOOLS_TANDEM_RUNSCRIPT_H

#include "runtime/artifact/Status.h"

#include <string>

namespace tandem::commands {

struct ScriptEnd {
  bool isZero = false;    ///< it ended with exit code 0
  bool isTooLate = false; ///< it was ended, with all that it had started
};

/// Runs `script` with one argument and without standard streams. Fails with
/// Usage if it cannot be run. What it started and left in its process group is
/// ended with it.
Result<ScriptEnd> runScript(const std::string &script,
                            const std::string &argument, int64_t seconds);

} // namespace tandem::commands

#endif
