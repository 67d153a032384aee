//===- Target.h - what code is made for -----------------------------------===//
//
// A target as the options name it (`cpu`, `cpu:znver4`, `cpu:x86-64-v3`), with
// the features that LLVM knows for it. On the module it is the dictionary
// `tandem.target = {kind, arch, features, vector_bits}`.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_TARGET_H
#define TANDEM_COMPILER_TARGET_H

#include "runtime/artifact/Status.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/Target/TargetMachine.h"

#include <memory>
#include <string>
#include <vector>

namespace tandem {

struct CpuTarget {
  std::string arch;                  ///< LLVM's name of the processor
  std::vector<std::string> features; ///< those that are on, sorted
  int vectorBits = 128;              ///< of the widest registers
};

/// Returns the target named `text`; the host's processor for plain `cpu`.
Result<CpuTarget> parseTarget(const std::string &text);

mlir::DictionaryAttr targetAttr(const CpuTarget &target,
                                mlir::MLIRContext *context);
Result<CpuTarget> targetFromAttr(mlir::DictionaryAttr attr);

/// Returns LLVM's machine for the target: position-independent code, multiply
/// and add fused.
std::unique_ptr<llvm::TargetMachine> createMachine(const CpuTarget &target);

} // namespace tandem

#endif
