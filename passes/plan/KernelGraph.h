//===- KernelGraph.h - what orders the kernels of a program ---------------===//
#ifndef TANDEM_PASSES_PLAN_KERNELGRAPH_H
#define TANDEM_PASSES_PLAN_KERNELGRAPH_H

#include "passes/plan/InPlace.h"
#include "passes/plan/StepOrder.h"
#include "passes/plan/Storage.h"

namespace tandem {

/// The kernels of a function, which must run before which, and what lies in the
/// arena between them. An update runs after all that reads the old value,
/// kernels with effects keep their order.
class KernelGraph {
public:
  KernelGraph(mlir::func::FuncOp func, InPlacePairs &pairs);

  llvm::SmallVector<KernelOp> kernels; ///< in the order of the program
  StepGraph steps;                     ///< one for each kernel
  /// Sources (arguments, constants, kernel results): the kernels that read
  /// them, rising.
  llvm::DenseMap<mlir::Value, llvm::SmallVector<unsigned, 4>> readers;

private:
  void findReaders();
  void addValues();
  void addReuses();
  void addEdges();

  mlir::func::FuncOp func;
  InPlacePairs &pairs;
  ArgumentStorage storage;
  llvm::DenseMap<mlir::Operation *, unsigned> numbers;
  llvm::DenseMap<mlir::Value, unsigned> valueOf;
};

} // namespace tandem

#endif
