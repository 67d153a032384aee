//===- Report.h - what a compiled module says of its making ---------------===//
//
// Attributes of the module that decide nothing: `tandem inspect` shows them.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_IR_REPORT_H
#define TANDEM_IR_REPORT_H

#include "llvm/ADT/StringRef.h"

namespace tandem {

/// What the partition chose, set by tandem-report-partition:
///   {saved = [{name, op, path, where, seconds}],
///    repeated = [{op, path, where, reason, seconds, bytes}],
///    seconds, chain = [{peak, seconds, flops, saved}]}
/// A saved value with the op that makes it, and the time of making it again
/// with all that it follows from and the backward has not; an op that the
/// backward runs again, why, how long it takes there and the bytes of its
/// results; the time of a step; the plans from which a memory budget chose.
/// Seconds and flops are f64, the rest i64 or text. The path (ir/Where.h) may
/// be empty; `seconds` and `chain` may be missing.
inline constexpr llvm::StringLiteral kPartitionReportAttr = "tandem.partition";

/// The bytes of a training step (passes/plan/StepMemory.h), set by
/// tandem-report-plan: {parameters, states, constants, inputs, outputs,
/// gradients, saved, staged, arena}, all i64; and, where they are not 0, host,
/// prepared and scratch.
inline constexpr llvm::StringLiteral kStepMemoryAttr = "tandem.step_memory";

/// A digest of the captured graph (compiler/capture/GraphDigest.h), a text, set
/// by the driver. An artifact carries it, so that a checkpoint is known to be
/// of the same model; what is edited in the dump of a later phase does not
/// change it.
inline constexpr llvm::StringLiteral kGraphDigestAttr = "tandem.graph";

} // namespace tandem

#endif
