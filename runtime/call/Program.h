//===- Program.h - a program of a loaded model ----------------------------===//
//
// Internal to the runtime. What never changes of a program once its model is
// loaded: its links to the model's variables, to its own results, and to the
// program whose contexts it takes; what shares memory with what; and what runs
// where cotangents are undefined. It knows no kernel: a device's code
// (Backend.h) has those by the program's index. Threads may share it.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_CALL_PROGRAM_H
#define TANDEM_RUNTIME_CALL_PROGRAM_H

#include "runtime/artifact/Manifest.h"
#include "runtime/device/Action.h"

#include <functional>
#include <string_view>
#include <utility>
#include <vector>

namespace tandem::runtime {

/// Groups of arguments: of each, at least one must be defined.
using BoundCondition = std::vector<std::vector<int>>;

/// When a launch runs, and what it does instead of its kernel.
struct BoundCase {
  BoundCondition needs;
  std::vector<std::pair<BoundCondition, Action>> choices;
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

struct Program {
  const artifact::Program *plan = nullptr; ///< of the manifest
  size_t index = 0; ///< there; of several sizes, in the whole manifest
  size_t size = 0;  ///< which of the artifact's sizes it is for
  const Program *source = nullptr; ///< a backward: its forward
  /// The program that computes the prepared arguments.
  const Program *prepares = nullptr;
  /// For each argument of `prepares`, whether this program updates it, and what
  /// is prepared of it too. Empty: it takes what it finds. None: what it
  /// updates has to be prepared again.
  std::vector<char> renews;
  std::vector<BoundArgument> arguments;
  std::vector<BoundResult> results;
  std::vector<BoundAlias> aliases;
  std::vector<BoundKept> kept;
  std::vector<BoundGroup> groups;
  std::vector<BoundCase> cases;   ///< one for each launch, or none
  std::vector<Action> allDefined; ///< what each launch does then
  bool updatesCallers = false;    ///< some argument of the caller is updated
  bool changesHandles = false;    ///< metadata, storage or resize
  bool hasDonated = false;        ///< some argument is donated
  bool usesHost = false;          ///< copies go to the host's memory, or come
  bool hasCollectives = false;    ///< ranks run it together
};

/// Resolves `plan`, number `index` of the manifest's programs, but not its
/// links to other programs. `variableOf` gives the index in the store, or -1.
Program bindProgram(const artifact::Manifest &manifest, size_t index,
                    const std::function<int(std::string_view)> &variableOf);

/// Links `second` to the program whose contexts it takes.
void bindContext(Program &first, Program &second);

/// Links `second` to the program that prepares arguments of it.
void bindPrepared(const Program &first, Program &second);

} // namespace tandem::runtime

#endif
