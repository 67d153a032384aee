//===- Passes.h - the passes of the compiler ------------------------------===//
//
// Each phase (docs/ARCHITECTURE.md, section 1) is a folder here; the phase
// table in compiler/ strings the passes together.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_PASSES_H
#define TANDEM_PASSES_PASSES_H

#include "ir/Dialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace tandem {

#define GEN_PASS_DECL
#include "passes/Passes.h.inc"

} // namespace tandem

#endif
