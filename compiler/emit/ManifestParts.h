//===- ManifestParts.h - attributes in the manifest's terms ---------------===//
//
// Types, roles, conditions, views and aliases of the IR as the manifest's
// structs. Copies: nothing is decided here. A lowered module may have been
// edited: what an attribute cannot say is a failure.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_EMIT_MANIFESTPARTS_H
#define TANDEM_COMPILER_EMIT_MANIFESTPARTS_H

#include "ir/Dialect.h"
#include "runtime/artifact/Manifest.h"

namespace tandem {

artifact::DType dtypeOf(mlir::Type element);
artifact::TensorType typeOf(mlir::RankedTensorType type);
artifact::Role roleOf(RoleKind kind);

/// A value from its role, which is of an input, param, state or output.
artifact::Value valueOf(RoleAttr role, mlir::RankedTensorType type);

/// An argument or result. Fails at a view that no manifest can say.
Result<artifact::Slot> slotOf(RoleAttr role, mlir::RankedTensorType type);

/// One entry of `tandem.aliases`.
Result<artifact::OutputAlias> outputAliasOf(mlir::Attribute entry);

/// `tandem.step_memory` and `tandem.partition` (ir/Report.h). What is
/// missing or of another type is zero or empty.
artifact::Pipeline pipelineOf(mlir::DictionaryAttr fields);
artifact::StepMemory stepMemoryOf(mlir::DictionaryAttr memory);
artifact::Partition partitionOf(mlir::DictionaryAttr report);

/// A list of lists of names; empty if null.
Result<artifact::Condition> conditionOf(mlir::Attribute condition);
/// The entries of a launch's `choices`; empty if null.
Result<std::vector<artifact::Choice>> choicesOf(mlir::ArrayAttr choices);

/// A kernel's `tensor_maps`; empty if null.
std::vector<artifact::TensorMap> tensorMapsOf(mlir::ArrayAttr maps);

/// What a collective of a lowered program does, over dimension 0.
artifact::Collective collectiveOf(CollectiveOpInterface op);

/// A launch's call of a library. Its workspace is `workspaceBytes` of the arena
/// from `workspace` on, if that is not 0.
struct PlannedLibraryCall {
  artifact::LibraryCall call;
  int64_t workspace = 0, workspaceBytes = 0;
};
PlannedLibraryCall libraryCallOf(LibraryCallAttr call);

} // namespace tandem

#endif
