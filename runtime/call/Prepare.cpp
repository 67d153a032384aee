//===- Prepare.cpp - what is computed when parameters change --------------===//
//
// What the program "prepare" gives stays in the memory that it keeps for its
// results. Each write of a parameter or state gives it another version, so a
// comparison of numbers tells whether the results still follow from them. Like
// all programs of a model it runs under the model's mutex, on a device in the
// order of the current stream.
//
//===----------------------------------------------------------------------===//
#include "runtime/call/Call.h"
#include "runtime/model/ModelCore.h"

namespace tandem::runtime {

bool ModelCore::isCurrent(const Program &program) const {
  const Workspace &prepared = workspace(program);
  if (!prepared.isPrepared)
    return false;
  for (size_t a = 0; a < program.arguments.size(); ++a)
    if (variables[program.arguments[a].variable].tensor.version() !=
        prepared.preparedFor[a])
      return false;
  return true;
}

Status ModelCore::prepare(const Program &program) {
  if (isCurrent(program))
    return Status::success();
  Workspace &prepared = workspace(program);
  // A failure leaves results of which nobody knows what they follow from.
  prepared.isPrepared = false;
  // What is written from here on may or may not be seen: it is compared with
  // the versions before.
  for (size_t a = 0; a < program.arguments.size(); ++a)
    prepared.preparedFor[a] =
        variables[program.arguments[a].variable].tensor.version();
  Status status = runCall(*this, program, {}, {}).status;
  prepared.isPrepared = status.ok();
  return status;
}

} // namespace tandem::runtime
