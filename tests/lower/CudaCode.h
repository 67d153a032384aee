//===- CudaCode.h - kernels lowered for CUDA, run by the emulator ---------===//
#ifndef TANDEM_TESTS_LOWER_CUDACODE_H
#define TANDEM_TESTS_LOWER_CUDACODE_H

#include "compiler/Target.h"
#include "cuda/emulator/KernelEmulator.h"
#include "ir/Ops.h"

#include "mlir/IR/BuiltinOps.h"

#include <map>
#include <string>
#include <vector>

namespace tandem::test {

/// The memory of a run: where it begins, and how many bytes it has.
using Allocations = std::map<const char *, size_t>;

class CudaCode {
public:
  /// Compiles the kernels of `gpu.module @cuda`; `error` says what went wrong.
  /// They cannot be launched unless `emulate`.
  CudaCode(mlir::ModuleOp lowered, const CudaTarget &target, std::string &error,
           bool emulate = true);

  std::string ptx;

  /// Runs a launch. What the emulator finds wrong is added to `error`.
  void launch(LaunchOp op, llvm::ArrayRef<char *> buffers,
              const Allocations &memory, emulator::Order order,
              std::string &error);

private:
  mlir::ModuleOp lowered;
  std::optional<emulator::Image> image;
};

} // namespace tandem::test

#endif
