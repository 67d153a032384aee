//===- ChooseMethods.cpp - the methods of a program's kernels -------------===//
#include "passes/lower/common/ChooseMethods.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower;

FailureOr<int64_t> lower::chooseMethods(
    func::FuncOp func,
    llvm::function_ref<FailureOr<ChosenMethod>(KernelOp)> choose) {
  int64_t chosen = 0;
  bool isBroken = false;
  for (auto kernel : func.getOps<KernelOp>()) {
    FailureOr<ChosenMethod> one = choose(kernel);
    isBroken |= failed(one);
    if (failed(one))
      continue;
    if (one->schedule)
      kernel.setScheduleAttr(one->schedule);
    kernel.setScratchBytes(one->scratchBytes);
    chosen += !one->name.empty();
  }
  if (isBroken)
    return failure();
  return chosen;
}
