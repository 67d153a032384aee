//===- JitKernel.h - one kernel, compiled and called ----------------------===//
//
// Compiles the only tandem.kernel of a function as the compiler does (lowering
// to LLVM, optimization for the host) and runs it in this process, over any
// split of its items. Elements go in and out as doubles; in between they have
// the kernel's types. Buffers have guards behind them that a run must not
// touch.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TESTS_SUPPORT_JITKERNEL_H
#define TANDEM_TESTS_SUPPORT_JITKERNEL_H

#include "ir/Ops.h"
#include "ir/reference/Array.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace tandem::test {

struct MachineCode;

/// The bits of the host's widest vectors.
int hostVectorBits();

/// What LLVM is to make of a kernel: what it does without being asked (`tandem
/// compile --effort=2`), or the least (--effort=0), which takes a third of the
/// time.
enum class Optimized { Usual, Least };

/// A buffer of a kernel: 64-byte aligned, with a guard at its end.
class KernelBuffer {
public:
  explicit KernelBuffer(int64_t bytes, uint8_t fill = 0xAB);
  void *data() { return start; }
  const void *data() const { return start; }
  int64_t size() const { return bytes; }
  bool guardIntact() const;

private:
  std::vector<uint8_t> memory;
  uint8_t *start;
  int64_t bytes;
};

class JitKernel {
public:
  using Function = void (*)(void *const *, int64_t, int64_t, void *);

  /// Parses a module with a function whose kernel this is. `vectorBits` of the
  /// code; 0 for the host's widest. What else the module's `tandem.target` says
  /// holds.
  explicit JitKernel(const std::string &text, int vectorBits = 0,
                     Optimized optimized = Optimized::Usual);
  ~JitKernel();

  /// False if it could not be compiled; `error` says why.
  bool ok() const { return function != nullptr; }
  /// What went wrong so far, also in runs.
  std::string error;

  int64_t work = 0, grain = 1, scratchBytes = 0;
  std::vector<mlir::RankedTensorType> inputTypes, outputTypes;

  /// Runs [0, work) at once.
  void runAll(std::vector<void *> &buffers, void *scratch) {
    beginLaunch(scratch);
    function(buffers.data(), 0, work, scratch);
  }
  /// Runs [0, work) in pieces of `piece` items, each with fresh scratch, the
  /// last piece first if `backwards`.
  void run(std::vector<void *> &buffers, int64_t piece, bool backwards = false);
  /// The outputs' bytes for these inputs.
  std::vector<std::vector<uint8_t>>
  outputs(const std::vector<reference::Array> &inputs, int64_t piece,
          bool backwards = false);
  /// The reference's results.
  std::vector<reference::Array>
  expected(const std::vector<reference::Array> &inputs);

private:
  void compile(int vectorBits, Optimized optimized);
  void beginLaunch(void *scratch) const {
    std::memset(scratch, 0, std::min<int64_t>(scratchBytes, 8));
  }

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> original, lowered;
  std::shared_ptr<MachineCode> machineCode;
  Function function = nullptr;
};

} // namespace tandem::test

#endif
