//===- Call.h - one run of a program --------------------------------------===//
//
// Internal to the runtime. Checks all arguments of a call against the program's
// roles, finds a place for every argument and result, runs the launches in
// order, and writes updates and destinations. A failed check changes nothing;
// every allocation is made before the first launch, and nothing fails after it.
// The caller holds the model's mutex.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_CALL_H
#define TANDEM_RUNTIME_CALL_H

#include "runtime/ModelCore.h"

namespace tandem::runtime {

class Call {
public:
  /// `gives` receives what a forward saves (null: nothing is kept); `takes` is
  /// what a backward reads (null for other programs).
  Call(ModelCore &core, BoundProgram &bound, SavedValues *gives,
       const SavedValues *takes)
      : core(core), bound(bound), program(*bound.program), gives(gives),
        takes(takes) {}

  Status run(std::span<const Argument> inputs,
             std::span<const Destination> outputs);

private:
  bool isCallers(const artifact::Slot &slot) const;
  void matchArguments(std::span<const Argument> inputs);
  void matchDestinations(std::span<const Destination> outputs);
  void takeContext();
  void checkArgument(size_t index);
  void checkUpdated(size_t index);
  void checkDestinations();

  Status placeArguments();
  Status placeResults();
  bool isDirect(const Tensor &wanted) const;
  void launch();
  void writeUpdates();
  void writeDestinations();

  void problem(const std::string &text);
  std::string name(const artifact::Slot &slot, size_t index) const;

  ModelCore &core;
  BoundProgram &bound;
  const artifact::Program &program;
  SavedValues *gives;
  const SavedValues *takes;
  std::string problems;
};

} // namespace tandem::runtime

#endif
