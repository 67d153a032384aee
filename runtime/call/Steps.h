//===- Steps.h - the steps of a call --------------------------------------===//
//
// Internal to the runtime. In order: match, check, checkValues, checkSharing,
// agree, place, launch, finish. Each is a function of what the call is of
// (Invocation) and of the tables that earlier steps filled (CallFrame.h); it
// fills its own, and touches no other. Call.cpp puts them in order.
//
// The checks change nothing and note every problem. `place` makes all
// allocations; what fails after it is a device or a hook.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_CALL_STEPS_H
#define TANDEM_RUNTIME_CALL_STEPS_H

#include "runtime/call/Call.h"
#include "runtime/call/CallFrame.h"
#include "runtime/call/SavedValues.h"
#include "runtime/call/Workspace.h"

namespace tandem::runtime {

struct Variable;

/// What a call is of; the same for all its steps.
struct Invocation {
  Invocation(const ModelCore &core, const Program &program,
             const CallMode &mode);

  const ModelCore &core;
  const Program &program;
  const artifact::Program &plan;
  const CallMode &mode;
  const DeviceMemory &place; ///< where the model lives
  SavedValues *gives;        ///< what a forward saves, or null
  const SavedValues *takes;  ///< what a backward reads, or null
  Stream caller;             ///< that was current when the call was made
  Stream stream; ///< that the program runs on: a backward, on its forward's

  bool isGradMode() const { return gives != nullptr; }
};

/// Finds the argument or result of each name. `wanted` has what was wanted
/// last; it is found anew where that differs (CallMode::onlyWanted).
void match(const Invocation &call, std::span<const Argument> inputs,
           std::span<const Destination> outputs, WantedSlice &wanted,
           MatchedCall &matched, Problems &problems);

/// Types, devices, versions and grad mode.
void check(const Invocation &call, const MatchedCall &matched,
           Problems &problems);

/// Labels and indices that are on the host, of the types that `check` let pass:
/// each is in the range that the artifact says of its input.
void checkValues(const Invocation &call, const MatchedCall &matched,
                 Problems &problems);

/// Of a call whose stream is captured: nothing runs, so that the host has
/// nothing to give and nothing to wait for. Where it would have, the capture
/// ends, because it would lack this call. `isPrepared`: what the program finds
/// prepared is current.
void checkCapture(const Invocation &call, const MatchedCall &matched,
                  bool isPrepared, Problems &problems);

/// What may share memory, and what the call hands out: views and handles.
/// Looks at strides and addresses, so only at what `check` let pass.
void checkSharing(const Invocation &call, const MatchedCall &matched,
                  SharedViews &shared, Problems &problems);

/// Of a backward that several ranks run: a cotangent that one of them defines
/// is defined on all, and zeros where it was not. Then all take part in the
/// same collectives. All ranks call it.
Status agree(const Invocation &call, MatchedCall &matched);

/// Allocates all that the call needs: gives results and arguments their places
/// and lists the copies that are to be made. Storages that the program resizes
/// get their memory; after a failure they are as they were. `prepared`: the
/// results of the program that prepares.
Status place(const Invocation &call, const MatchedCall &matched,
             std::span<const Tensor> prepared, Workspace &workspace,
             PlacedCall &placed);
/// Queues the copies of arguments that the program cannot, or must not, see as
/// they are.
Status copyArguments(const Invocation &call, const PlacedCall &placed,
                     std::span<Upload> uploads);
/// Frees what `place` gave to storages that the program resizes.
void freeResized(const Invocation &call, const MatchedCall &matched);
/// Lets the hooks give back what they packed, and places that. An error of a
/// hook is handed on as it is.
Status unpack(const Invocation &call, std::span<Tensor> staged,
              PlacedCall &placed);

/// Hands the launches to the device's code. `wanted`: what runs where only some
/// outputs are wanted.
Status launch(const Invocation &call, const MatchedCall &matched,
              const PlacedCall &placed, const artifact::Slice &wanted,
              LaunchTables &tables);

/// Where `finish` writes beside the tensors of the call.
struct FinishTargets {
  std::span<Variable> variables;
  std::span<const Tensor> staged; ///< updated copies of arguments
  std::span<Download> downloads;
  Fence &fetched; ///< when results are on the host
};
/// Writes updates, destinations, and what handles show, and notes versions in
/// the context. Fails as the device did, before handles change.
Status finish(const Invocation &call, const MatchedCall &matched,
              PlacedCall &placed, SharedViews &shared,
              const FinishTargets &targets);
/// Lets the hooks have each saved value; the context holds what they made.
/// Memory that they hold on to is not used again. An error of a hook is handed
/// on as it is.
Status pack(const Invocation &call, const PlacedCall &placed,
            Workspace &workspace);

/// Allocates `tensor` with the type of `slot`, where the model lives or in its
/// memory of the host, unless it is there.
Status ensure(Tensor &tensor, const artifact::Slot &slot,
              const ModelCore &core);

} // namespace tandem::runtime

#endif
