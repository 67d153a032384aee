//===- Ops.h - the ops of the tandem dialect ------------------------------===//
#ifndef TANDEM_IR_OPS_H
#define TANDEM_IR_OPS_H

#include "ir/Dialect.h"
#include "ir/ops/Attention.h"
#include "ir/ops/Convolution.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"

namespace tandem {
/// The memory that refs name, for MLIR's side effects.
struct Storage : mlir::SideEffects::Resource::Base<Storage> {
  llvm::StringRef getName() final { return "tandem.storage"; }
};
} // namespace tandem

#define GET_OP_CLASSES
#include "ir/ops/Elementwise.h.inc"
#define GET_OP_CLASSES
#include "ir/ops/Random.h.inc"
#define GET_OP_CLASSES
#include "ir/ops/Shape.h.inc"
#define GET_OP_CLASSES
#include "ir/ops/Reduction.h.inc"
#define GET_OP_CLASSES
#include "ir/ops/Contraction.h.inc"
#define GET_OP_CLASSES
#include "ir/ops/Pooling.h.inc"
#define GET_OP_CLASSES
#include "ir/ops/Indexing.h.inc"
#define GET_OP_CLASSES
#include "ir/ops/Composite.h.inc"
#define GET_OP_CLASSES
#include "ir/ops/Optimizer.h.inc"
#define GET_OP_CLASSES
#include "ir/ops/Ref.h.inc"
#define GET_OP_CLASSES
#include "ir/ops/Custom.h.inc"
#define GET_OP_CLASSES
#include "ir/ops/Flow.h.inc"
#define GET_OP_CLASSES
#include "ir/ops/Program.h.inc"

#endif
