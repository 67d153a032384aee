//===- CudaKernel.h - one kernel, compiled for CUDA and emulated ----------===//
//
// Compiles the only tandem.kernel of a function as the compiler does for a CUDA
// target and runs it in the kernel emulator, which checks bounds, alignment and
// races. Elements go in and out as doubles; in between they have the kernel's
// types. Outputs and scratch memory are poisoned before a run, but for the
// counters, which have to be left zero.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TESTS_LOWER_CUDA_CUDAKERNEL_H
#define TANDEM_TESTS_LOWER_CUDA_CUDAKERNEL_H

#include "ir/reference/Array.h"
#include "tests/lower/CudaCode.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

#include <optional>
#include <string>
#include <vector>

namespace tandem::test {

/// What a kernel is compiled for.
struct CudaOptions {
  std::string arch = "sm_90";
  std::string matmulPrecision = "f32";
  bool emulate = true;       ///< false: the PTX alone is wanted
  std::string products = ""; ///< CudaTarget::products
};

class CudaKernel {
public:
  /// Parses a module with a function whose kernel this is.
  explicit CudaKernel(const std::string &text, const CudaOptions &options = {});
  ~CudaKernel();

  /// False if it could not be compiled; `error` says why.
  bool ok() const { return error.empty() && launch; }
  /// What went wrong so far, also in runs.
  std::string error;

  const std::string &ptx() const { return code->ptx; }
  int64_t blocks = 0, scratchBytes = 0;
  std::vector<mlir::RankedTensorType> inputTypes, outputTypes;

  /// The outputs' bytes for these inputs.
  std::vector<std::vector<uint8_t>>
  outputs(const std::vector<reference::Array> &inputs, emulator::Order order);
  /// The reference's results.
  std::vector<reference::Array>
  expected(const std::vector<reference::Array> &inputs);

private:
  void compile(const CudaOptions &options);

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> original, lowered;
  std::optional<CudaCode> code;
  LaunchOp launch;
};

} // namespace tandem::test

#endif
