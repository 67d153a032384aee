//===- BoundProgram.h - a program, resolved -------------------------------===//
//
// Internal to the runtime. What does not change between the calls of a program:
// its launches as function pointers, links between its arguments, its results,
// the model's variables and the context of another program, and what runs where
// cotangents are undefined. And the tables and the memory that each call uses
// again, so that a call allocates nothing.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_BOUNDPROGRAM_H
#define TANDEM_RUNTIME_BOUNDPROGRAM_H

#include "runtime/Action.h"
#include "runtime/CodeObject.h"
#include "runtime/Overlap.h"
#include "runtime/Place.h"
#include "runtime/Tensor.h"
#include "runtime/artifact/Manifest.h"
#include "runtime/artifact/Slice.h"

#include <functional>
#include <memory>
#include <vector>

namespace tandem::runtime {

struct KeptValue;
struct SavedValues;

/// Groups of arguments: of each, at least one must be defined.
using BoundCondition = std::vector<std::vector<int>>;

struct BoundLaunch {
  KernelFunction function = nullptr;
  int64_t work = 0, grain = 1;
  size_t firstPointer = 0; ///< in BoundProgram::pointers
  bool isSmall = false;    ///< not worth waking a thread
};

/// When a launch runs, and what it does instead of its kernel.
struct BoundCase {
  BoundCondition needs;
  std::vector<std::pair<BoundCondition, Action>> choices;
  int written = -1;         ///< position that a copy or zeros go to
  int64_t writtenBytes = 0; ///< of that
};

struct BoundArgument {
  const artifact::Value *value = nullptr; ///< inputs, params and states
  int variable = -1; ///< of the store; -1: the caller or a context gives it
  bool isCallers = false; ///< the caller gives it
  bool isUpdated =
      false; ///< an update overwrites it, or its storage is resized
  bool isDonated = false; ///< a saved value that a launch overwrites
  /// Updated in place, and another argument may share its memory: the program
  /// sees a copy.
  bool isCopied = false;
  /// A cotangent that some launch reads whether it is defined or not.
  bool isAlwaysRead = false;
  int group = -1;    ///< arguments of one group may share memory
  int saved = -1;    ///< of a backward: the saved result of its forward
  int found = -1;    ///< of a backward: its place in the `kept` of its forward
  int kept = -1;     ///< of a forward: its place in its own `kept`
  int prepared = -1; ///< the result of `prepares` that it is
};

struct BoundResult {
  int variable = -1; ///< the store's variable that an update overwrites
  int argument = -1; ///< the argument that an update is of
  int home = -1;     ///< saved: the output in whose storage it lies
  /// A backward's gradient: the argument, of its forward or of that one's
  /// forward, in whose layout it leaves; -1: row-major.
  int leaf = -1;
  bool isLeafOfBase = false; ///< of that one's forward
  /// A backward has a cotangent for it.
  bool isDifferentiable = false;
  bool isShared = false; ///< an output that saved values lie in
  const char *partOf = nullptr;
  BoundCondition needs;
};

/// An output that is a view of an argument or of another output.
struct BoundAlias {
  int argument = -1, result = -1;
  bool isDifferentiable = false;
  const char *partOf = nullptr;
};

/// A value that a backward reads where the forward found it.
struct BoundKept {
  int argument = -1; ///< of the forward; -1: a variable
  int variable = -1;
  bool isRead = false;                    ///< as the forward found it
  bool isFound = false;                   ///< as the backward finds it
  const artifact::Slot *reader = nullptr; ///< the backward's argument
};

/// A declared storage that arguments are views of.
struct BoundGroup {
  int base = -1; ///< the argument that is the whole of it; -1: none is
  artifact::TensorType storage; ///< of no argument
  std::vector<int> arguments;
};

/// An argument that the program sees a copy of.
struct ArgumentCopy {
  size_t argument;
  Tensor *to;
  const Tensor *from;         ///< null: zeros
  KeptValue *stamp = nullptr; ///< gets the version of the copy
};

struct BoundProgram {
  const artifact::Program *program = nullptr;
  size_t index = 0;                 ///< of the program in the manifest
  BoundProgram *source = nullptr;   ///< a backward: its forward
  BoundProgram *prepares = nullptr; ///< it computes the prepared arguments
  std::vector<BoundArgument> arguments;
  std::vector<BoundResult> results;
  std::vector<BoundAlias> aliases;
  std::vector<BoundKept> kept;
  std::vector<BoundGroup> groups;
  std::vector<BoundLaunch> launches;
  std::vector<BoundCase> cases;   ///< one for each launch, or none
  std::vector<Action> allDefined; ///< what each launch does then
  std::vector<int> pointerBuffer; ///< for each pointer, the program's buffer
  int64_t scratchBytes = 0;       ///< of one thread, with its gap
  bool updatesCallers = false;    ///< some argument of the caller is updated
  bool changesHandles = false;    ///< metadata, storage or resize
  bool hasDonated = false;        ///< some argument is donated
  bool usesHost = false;          ///< copies go to the host's memory, or come

  // Filled in by each call.
  std::vector<void *> pointers, argumentData, resultData, bufferData;
  std::vector<const Tensor *> given; ///< for each argument, or null
  std::vector<Tensor *> handles;     ///< the same, if it may be changed
  std::vector<char> isDefined;       ///< for each argument
  std::vector<Action> actions;       ///< where not all are defined
  std::vector<Tensor *> wanted;      ///< for each result, or null
  std::vector<Tensor *> homes;       ///< where each result is computed
  std::vector<Tensor> fresh;         ///< new tensors for undefined destinations
  std::vector<Tensor *> wantedAliases;
  std::vector<Tensor> views;      ///< for each alias, what it shows
  std::vector<char> isShown;      ///< its destination shows just that already
  std::vector<Tensor> newHandles; ///< for each argument, if it changes
  std::vector<Tensor> unpacked;   ///< for each argument that hooks packed
  std::vector<std::pair<AddressRange, int>> ranges;
  std::vector<std::pair<Tensor *, std::string_view>> absent;

  /// Arguments that the program sees copies of, in this call.
  std::vector<ArgumentCopy> copies;

  // Memory that the program keeps once it was needed.
  std::vector<Tensor> staged;      ///< dense copies of arguments
  std::vector<Tensor> internal;    ///< results that nobody's tensor receives
  std::vector<Upload> uploads;     ///< of a device: for each argument
  std::vector<Download> downloads; ///< and for each result
  std::vector<std::shared_ptr<SavedValues>> freeSaved; ///< of its contexts
  size_t savedMade = 0;

  /// What the wanted outputs of the last call that ran them alone need, and
  /// which these were.
  artifact::Slice slice;
  std::vector<char> slicedResults, slicedAliases;

  /// Of a program that prepares: whether `internal` has its results, and the
  /// versions of the variables that they were computed from.
  bool isPrepared = false;
  std::vector<uint64_t> preparedFor;
};

/// Resolves `program` of `manifest`, but not its links to other programs.
/// `variableOf` gives the index in the store, or -1.
void bindProgram(BoundProgram &bound, const artifact::Manifest &manifest,
                 const artifact::Program &program,
                 const std::vector<KernelFunction> &functions,
                 const std::function<int(std::string_view)> &variableOf);

/// Links `second` to the program whose contexts it takes.
void bindContext(BoundProgram &first, BoundProgram &second);

/// Links `second` to the program that prepares arguments of it.
void bindPrepared(BoundProgram &first, BoundProgram &second);

} // namespace tandem::runtime

#endif
