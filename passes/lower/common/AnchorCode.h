//===- AnchorCode.h - index arithmetic, loops and vectors as formulas -----===//
//
// What the emitters of anchor kernels write their code with: a builder at one
// location whose functions fold constants, so that a static size costs nothing.
// Values are of type `index` unless said otherwise; integers of another type,
// and vectors of them, can be computed with too.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_LOWER_COMMON_ANCHORCODE_H
#define TANDEM_PASSES_LOWER_COMMON_ANCHORCODE_H

#include "passes/target/CpuModel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Builders.h"

namespace tandem::lower {

class Code {
public:
  using Value = mlir::Value;

  Code(mlir::OpBuilder &b, mlir::Location loc) : b(b), loc(loc) {}

  mlir::OpBuilder &b;
  mlir::Location loc;

  Value index(int64_t value) const;
  /// `value` in the type of the integer, index or vector `x`.
  Value like(Value x, int64_t value) const;
  Value add(Value x, Value y) const;
  Value add(Value x, int64_t y) const;
  Value sub(Value x, Value y) const;
  Value mul(Value x, Value y) const;
  Value mul(Value x, int64_t y) const;
  /// Of numbers of at least 0, by positive ones.
  Value div(Value x, int64_t y) const;
  Value rem(Value x, int64_t y) const;
  Value min(Value x, Value y) const;
  Value min(Value x, int64_t y) const;
  Value max(Value x, Value y) const;
  /// i1
  Value less(Value x, Value y) const;
  Value equal(Value x, Value y) const;
  /// 0 <= x < y
  Value below(Value x, int64_t y) const;
  Value both(Value x, Value y) const;
  Value either(Value x, Value y) const;
  Value select(Value condition, Value x, Value y) const;

  /// for (iv = low; iv < high; iv += step) body(iv)
  void loop(Value low, Value high, int64_t step,
            llvm::function_ref<void(Value iv)> body) const;
  /// The same with values carried from round to round.
  using Values = llvm::SmallVector<Value>;
  Values loop(Value low, Value high, int64_t step, mlir::ValueRange init,
              llvm::function_ref<Values(Value iv, mlir::ValueRange carried)>
                  body) const;
  /// if (condition) then() else otherwise(). A condition that is known leaves
  /// one branch alone.
  void when(Value condition, llvm::function_ref<void()> then,
            llvm::function_ref<void()> otherwise = {}) const;

  /// A number of a floating-point or integer type.
  Value number(mlir::Type type, double value) const;
  /// A vector with every lane `scalar`.
  Value splat(Value scalar, int64_t lanes) const;
  Value zeros(mlir::Type element, int64_t lanes) const;
  /// x * y + z of floating-point scalars or vectors, fused where the target
  /// can.
  Value multiplyAdd(Value x, Value y, Value z) const;
  /// The mask of `lanes` lanes whose first `active` are on.
  Value firstLanes(Value active, int64_t lanes) const;
  /// The mask of these lanes.
  Value lanesOn(llvm::ArrayRef<bool> on) const;
  /// `lanes` elements of a memref from `at` on; with `mask` only those that are
  /// on, the others 0.
  Value load(Value memref, mlir::ValueRange at, int64_t lanes,
             Value mask = {}) const;
  void store(Value vector, Value memref, mlir::ValueRange at,
             Value mask = {}) const;
  /// Asks for the cache line of an element, which will be read.
  void prefetch(Value memref, mlir::ValueRange at) const;
  /// A float or vector of floats in the wider type `element` (no change if it
  /// is of that type).
  Value widen(Value x, mlir::Type element) const;
  /// The transpose of the square of equally long vectors.
  Values transpose(mlir::ValueRange rows) const;
};

/// Hands out parts of a kernel's scratch memory.
class Scratch {
public:
  using Value = mlir::Value;
  explicit Scratch(Value memory) : memory(memory) {}
  /// Of no memory: it counts what is taken and writes no code.
  Scratch() = default;

  /// A memref of `shape`, 64-byte aligned; null where there is no memory.
  Value take(Code &code, llvm::ArrayRef<int64_t> shape, mlir::Type element);
  /// The bytes handed out so far.
  int64_t bytes() const { return used; }

private:
  Value memory;
  int64_t used = 0;
};

} // namespace tandem::lower

#endif
