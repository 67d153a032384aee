//===- ChooseMethods.cpp - how each kernel will be computed ---------------===//
//
// A pass of `plan` whose code is here, since the tables of methods are: what
// they say of a kernel is part of the plan
// (docs/rationale/methods-in-the-plan.md).
//
//===----------------------------------------------------------------------===//
#include "passes/lower/common/ChooseMethods.h"
#include "passes/Passes.h"
#include "passes/lower/cpu/ChooseMethod.h"
#include "passes/lower/cuda/ChooseMethod.h"
#include "passes/plan/InPlace.h"
#include "passes/target/Target.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Index/IR/IndexDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace tandem {
#define GEN_PASS_DEF_CHOOSEMETHODS
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;
using namespace tandem::lower;

namespace {
struct ChooseMethods : tandem::impl::ChooseMethodsBase<ChooseMethods> {
  void runOnOperation() final {
    func::FuncOp func = getOperation();
    auto choose = isForCuda(func) ? lower::cuda::chooseMethodOf
                                  : lower::cpu::chooseMethodOf;
    FailureOr<int64_t> count = chooseMethods(func, choose);
    if (failed(count))
      return signalPassFailure();
    chosen += *count;
    markAnalysesPreserved<InPlacePairs>();
  }
};
} // namespace
