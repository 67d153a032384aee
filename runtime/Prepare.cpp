//===- Prepare.cpp - what is computed when parameters change --------------===//
//
// What the program "prepare" gives stays in the memory that it keeps for its
// results. Each write of a parameter or state gives it another version, so a
// comparison of numbers tells whether the results still follow from them. Like
// all programs of a model it runs under the model's mutex, on a device in the
// order of the current stream.
//
//===----------------------------------------------------------------------===//
#include "runtime/Call.h"

namespace tandem::runtime {

bool ModelCore::isCurrent(const BoundProgram &program) const {
  if (!program.isPrepared)
    return false;
  for (size_t a = 0; a < program.arguments.size(); ++a)
    if (variables[program.arguments[a].variable].tensor.version() !=
        program.preparedFor[a])
      return false;
  return true;
}

Status ModelCore::prepare(BoundProgram &program) {
  if (isCurrent(program))
    return Status::success();
  // A failure leaves results of which nobody knows what they follow from.
  program.isPrepared = false;
  // What is written from here on may or may not be seen: it is compared with
  // the versions before.
  for (size_t a = 0; a < program.arguments.size(); ++a)
    program.preparedFor[a] =
        variables[program.arguments[a].variable].tensor.version();
  Status status = Call(*this, program).run({}, {});
  program.isPrepared = status.ok();
  return status;
}

} // namespace tandem::runtime
