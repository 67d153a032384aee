//===- Keys.h - the keys of dictionaries and of op attributes -------------===//
//
// The properties of a role are `RoleAttr::kInit` and its like, attributes of
// the dialect `kPhaseAttr` and its like. These are the keys of what lies
// deeper, and of attributes that ops of several kinds have. No other folder
// writes a key as text (tools/lint/facts), so that every reader and writer of
// one is found by its name here.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_IR_KEYS_H
#define TANDEM_IR_KEYS_H

#include "llvm/ADT/StringRef.h"

namespace tandem::key {

// An alias, as struct Alias (ir/Dialect.h) has it, and an entry of
// `tandem.aliases`, which has a name, a type and `part_of` too.
inline constexpr llvm::StringLiteral kOf = "of";
inline constexpr llvm::StringLiteral kOutput = "output";
inline constexpr llvm::StringLiteral kViews = "views";
inline constexpr llvm::StringLiteral kType = "type";
inline constexpr llvm::StringLiteral kName = "name";
inline constexpr llvm::StringLiteral kPartOf = "part_of";

// A step of `views`: the attributes of the op, and these. A bitcast says
// `type`.
inline constexpr llvm::StringLiteral kOp = "op";
inline constexpr llvm::StringLiteral kOffset = "offset";
inline constexpr llvm::StringLiteral kPermutation = "permutation";

// The property `init` (ir/Init.h).
inline constexpr llvm::StringLiteral kKind = "kind";
inline constexpr llvm::StringLiteral kValue = "value";
inline constexpr llvm::StringLiteral kLow = "low";
inline constexpr llvm::StringLiteral kHigh = "high";
inline constexpr llvm::StringLiteral kMean = "mean";
inline constexpr llvm::StringLiteral kStd = "std";
inline constexpr llvm::StringLiteral kStream = "stream";
inline constexpr llvm::StringLiteral kScale = "scale";

// An entry of a launch's `choices`: under which condition, and which input is
// copied instead of a computation.
inline constexpr llvm::StringLiteral kWhen = "when";
inline constexpr llvm::StringLiteral kCopy = "copy";

// An entry of a custom_vjp's `states` (`name` or `input`), and of `rejected`.
inline constexpr llvm::StringLiteral kInput = "input";
inline constexpr llvm::StringLiteral kWritten = "written";
inline constexpr llvm::StringLiteral kMessage = "message";
inline constexpr llvm::StringLiteral kLoc = "loc";

// `tandem.partition` (ir/Report.h).
inline constexpr llvm::StringLiteral kSaved = "saved";
inline constexpr llvm::StringLiteral kRepeated = "repeated";
inline constexpr llvm::StringLiteral kChain = "chain";
inline constexpr llvm::StringLiteral kPath = "path";
inline constexpr llvm::StringLiteral kWhere = "where";
inline constexpr llvm::StringLiteral kReason = "reason";
inline constexpr llvm::StringLiteral kSeconds = "seconds";
inline constexpr llvm::StringLiteral kFlops = "flops";
inline constexpr llvm::StringLiteral kBytes = "bytes";
inline constexpr llvm::StringLiteral kPeak = "peak";

// `tandem.step_memory` (ir/Report.h); `saved` is above.
inline constexpr llvm::StringLiteral kParameters = "parameters";
inline constexpr llvm::StringLiteral kStates = "states";
inline constexpr llvm::StringLiteral kConstants = "constants";
inline constexpr llvm::StringLiteral kInputs = "inputs";
inline constexpr llvm::StringLiteral kOutputs = "outputs";
inline constexpr llvm::StringLiteral kGradients = "gradients";
inline constexpr llvm::StringLiteral kStaged = "staged";
inline constexpr llvm::StringLiteral kArena = "arena";
inline constexpr llvm::StringLiteral kHost = "host";
inline constexpr llvm::StringLiteral kPrepared = "prepared";
inline constexpr llvm::StringLiteral kScratch = "scratch";

// `tandem.within` (compiler/PassSteps.h).
inline constexpr llvm::StringLiteral kAfter = "after";
inline constexpr llvm::StringLiteral kNumber = "number";
inline constexpr llvm::StringLiteral kPhase = "phase";
inline constexpr llvm::StringLiteral kRest = "rest";

// Attributes of ops that are read through Operation.
inline constexpr llvm::StringLiteral kBuffer = "buffer";
inline constexpr llvm::StringLiteral kNeeds = "needs";
inline constexpr llvm::StringLiteral kPrecision = "precision";
inline constexpr llvm::StringLiteral kCausal = "causal";
inline constexpr llvm::StringLiteral kTraining = "training";

} // namespace tandem::key

#endif
