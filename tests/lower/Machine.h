//===- Machine.h - plans, lowers, compiles and runs a function ------------===//
//
// For tests: takes the text of functions at phase `partition`, plans and lowers
// them for this processor, and runs a program's launches with ranges split as
// the caller likes; or for CUDA, and runs them in the kernel emulator, in
// several orders of threads. Numbers go in and come out as doubles.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TESTS_LOWER_MACHINE_H
#define TANDEM_TESTS_LOWER_MACHINE_H

#include "tests/lower/CudaCode.h"

#include "ir/Ops.h"
#include "ir/reference/Array.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

#include <memory>
#include <random>
#include <string>
#include <vector>

namespace tandem::test {

using Arrays = llvm::SmallVector<reference::Array>;

/// The bytes of an array as elements of a type.
std::vector<char> encode(const reference::Array &array, mlir::Type element);

class Machine {
public:
  /// Compiles `text`; `error()` says what went wrong. `target` and `fastMath`
  /// as in the options --target and --fast-math.
  explicit Machine(const std::string &text, const std::string &target = "cpu",
                   bool fastMath = false);
  ~Machine();

  const std::string &error() const { return problem; }

  /// Random arguments of `name` (rounded to their types): floats in [low,
  /// high), integers in [0, 8), booleans.
  Arrays randomArguments(const std::string &name, unsigned seed,
                         double low = -2.0, double high = 2.0);
  /// What the reference says.
  Arrays reference(const std::string &name, const Arrays &arguments);
  /// Rounds results to their types.
  void round(const std::string &name, Arrays &results);
  /// What the kernels compute. Ranges are at most `longest` items (0: all in
  /// one), run in a shuffled order. For CUDA the order of threads is ascending
  /// if `longest` is 0, descending if 1, else random; `error()` says what was
  /// wrong with accesses. Launches and their choices follow which
  /// cotangents are among `defined` (null: all); what is not, is NaN, and so
  /// are results that depend on it.
  Arrays run(const std::string &name, const Arrays &arguments,
             int64_t longest = 0,
             const std::vector<std::string> *defined = nullptr);
  /// The launches of the last run, copies and zeros included.
  unsigned launches() const { return launched; }

  mlir::ModuleOp planned() { return *plannedModule; }
  mlir::ModuleOp lowered() { return *loweredModule; }
  /// The planned kernels of a function.
  llvm::SmallVector<KernelOp> kernels(const std::string &name);

private:
  mlir::func::FuncOp function(mlir::ModuleOp module, const std::string &name);
  void compileCpu(const CpuTarget &target);
  void launch(LaunchOp op, const llvm::SmallVector<char *> &buffers,
              int64_t longest);

  std::unique_ptr<mlir::MLIRContext> context;
  mlir::OwningOpRef<mlir::ModuleOp> original, plannedModule, loweredModule;
  std::string problem, file;
  unsigned launched = 0;
  void *library = nullptr;
  std::unique_ptr<CudaCode> cuda;
  Allocations memory; ///< of the run
  std::mt19937 order{1};
};

} // namespace tandem::test

#endif
