//===- Prepare.cpp - what is computed when parameters change --------------===//
//
// What the program "prepare" gives stays in the memory that it keeps for its
// results. Each write of a parameter or state gives it another version, so a
// comparison of numbers tells whether the results still follow from them. Like
// all programs of a model it runs under the model's mutex, on a device in the
// order of the current stream.
//
// A step gives anew what is prepared of the parameters that it updates. There
// it must hold whoever writes: where the caller has a parameter's address, or
// replays a capture that updates it, versions say nothing, and "prepare" runs
// before each step.
//
//===----------------------------------------------------------------------===//
#include "runtime/call/Call.h"
#include "runtime/model/ModelCore.h"

#include <algorithm>

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

/// True where a version may stay although somebody writes.
bool ModelCore::canBeWrittenUnseen(const Program &program) const {
  return wasCaptured ||
         std::any_of(program.arguments.begin(), program.arguments.end(),
                     [&](const BoundArgument &argument) {
                       return variables[argument.variable]
                           .tensor.storage()
                           ->isExposed();
                     });
}

Status ModelCore::prepare(const Program &taker) {
  const Program &program = *taker.prepares;
  bool isDoubted = !taker.renews.empty() && canBeWrittenUnseen(program);
  if (!isDoubted && isCurrent(program))
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

void ModelCore::beginRenewal(const Program &taker) {
  if (!taker.renews.empty())
    workspace(*taker.prepares).isPrepared = false;
}

void ModelCore::endRenewal(const Program &taker) {
  if (taker.renews.empty())
    return;
  // It has written once to what it updates. Who wrote besides, while it ran,
  // leaves another version behind.
  Workspace &prepared = workspace(*taker.prepares);
  for (size_t a = 0; a < taker.renews.size(); ++a)
    prepared.preparedFor[a] += static_cast<uint64_t>(taker.renews[a]);
  prepared.isPrepared = true;
  prepared.isPrepared = isCurrent(*taker.prepares);
}

} // namespace tandem::runtime
