//===- Call.h - one run of a program --------------------------------------===//
//
// Internal to the runtime. Checks all arguments of a call against the program's
// roles (CheckCall, CheckSharing), finds a place for every argument and result
// (PlaceCall), runs the launches in order, and writes updates, destinations and
// handles (FinishCall). A failed check changes nothing; every allocation is
// made before the first launch; only hooks can fail after that, and devices
// (DeviceCall). No step allocates once the program's tables and memory have
// their sizes, but messages do. The caller holds the model's mutex.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_CALL_H
#define TANDEM_RUNTIME_CALL_H

#include "runtime/ModelCore.h"

namespace tandem::runtime {

/// What a call of a forward or backward does beside running.
struct CallMode {
  /// Receives what a forward saves; null: nothing is kept, grad mode is off.
  SavedValues *gives = nullptr;
  /// What a backward reads; null for other programs.
  const std::shared_ptr<SavedValues> *takes = nullptr;
  bool retain = false;      ///< `takes` serves another call
  bool createGraph = false; ///< gradients are enabled during a backward
  std::vector<double> *seconds = nullptr; ///< gets the time of each launch
  bool onlyWanted = false; ///< what no wanted output needs does not run
};

class Call {
public:
  Call(ModelCore &core, BoundProgram &bound, const CallMode &mode = {})
      : core(core), place(core.place), bound(bound), program(*bound.program),
        mode(mode), gives(mode.gives),
        takes(mode.takes ? mode.takes->get() : nullptr) {}
  ~Call();

  Status run(std::span<const Argument> inputs,
             std::span<const Destination> outputs);

  /// True if the call got so far that what it takes may be used up.
  bool hasStarted() const { return isStarted; }
  /// True if no cotangent (gradient, for an update) was defined, so that
  /// nothing ran.
  bool isNothing() const { return isIdle; }

private:
  // Call.cpp
  void matchArguments(std::span<const Argument> inputs);
  void matchDestinations(std::span<const Destination> outputs);
  bool matchUndefined(const Argument &input);
  bool matchAbsent(const Destination &output);
  void findDefined();
  void findSlice();
  Status perform();
  void resolveBuffers();
  const Action *chooseActions();
  void launch(const Action *actions);
  Action actionOf(size_t launch) const;
  bool holds(const BoundCondition &condition) const;

  // DeviceCall.cpp
  Status performOnDevice();
  void checkCapture();
  Status startStreams();
  Status launchOnDevice(const Action *actions);
  void write(size_t result, Tensor &target, const Tensor &source);
  Status fetch();
  void noteUsers();
  void note(Status status) {
    if (failure)
      failure = std::move(status);
  }

  // CheckCall.cpp
  void checkContext();
  void checkArgument(size_t index);
  void checkFreed(size_t index);
  void checkGradMode();
  void checkDestinations();
  void checkDestination(int entry, artifact::DType dtype,
                        const std::vector<int64_t> &shape);

  // CheckSharing.cpp
  void checkVariables();
  void checkGroups();
  void checkOverlaps();
  void addRange(const Tensor &tensor, int entry);
  void checkPair(int first, int second);
  void findViews();
  void findHandles();

  // PlaceCall.cpp
  Status resizeStorages();
  Status placeArguments();
  Status placeArgument(size_t index);
  Status copyArguments();
  void freeResized();
  Status placeResults();
  Status placeResult(size_t index);
  Status placeDownload(size_t index);
  bool isDirect(const Tensor &wanted) const;
  void noteLayouts();
  const Extents *gradientLayout(size_t result) const;
  Status placeLaidOut(size_t index, const Extents &strides);
  Status unpack(size_t index, const PackedValue &value);
  Status unpackAll();
  Status unpackOnHost(size_t index);

  // FinishCall.cpp
  void writeUpdates();
  void writeDestinations();
  void writeHandles();
  void keep();
  void keepSaved();
  bool wasOverwritten(const Tensor &tensor) const;
  Status pack();
  void clearDestinations();

  const Tensor *tensorOf(size_t argument) const;
  const Tensor &taken(size_t argument) const;
  void problem(const std::string &text);
  std::string name(const artifact::Slot &slot, size_t index) const;
  std::string argumentName(size_t index) const;
  std::string writerOf(const std::string &name) const;
  std::string entryName(int entry) const;
  Tensor *entryTensor(int entry) const;
  bool isGradMode() const { return gives != nullptr; }

  ModelCore &core;
  const Place &place;
  BoundProgram &bound;
  const artifact::Program &program;
  CallMode mode;
  SavedValues *gives;
  const SavedValues *takes;
  std::string problems;
  bool allDefined = true; ///< every cotangent (gradient, for an update)
  bool isIdle = false;
  bool isStarted = false;

  // Of a call on a device.
  Stream stream = nullptr; ///< that the program runs on
  Stream caller = nullptr; ///< that was current when the call was made
  bool hasEntered = false; ///< `caller` has to wait for `stream` at the end
  Status failure;          ///< the first of what was queued after the launches
};

} // namespace tandem::runtime

#endif
