//===- GemmWgmma.h - products of warpgroups from bulk copies --------------===//
//
// How a block of sm_90a sums over k. One thread of its last warpgroup asks for
// the tiles of both factors, each a bulk copy of a tensor's box (TMA) into a
// stage of shared memory; the two warpgroups before it multiply what has come
// (wgmma), 64 rows of the block's tile each, with their sums in registers. Two
// barriers for each stage say that it is full and that it is empty, so that
// copies are as many tiles ahead as there are stages, and nobody else waits.
//
// Both factors must have a `tensor`. What is outside of it comes as zeros.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_LOWER_CUDA_PRODUCTS_GEMMWGMMA_H
#define TANDEM_PASSES_LOWER_CUDA_PRODUCTS_GEMMWGMMA_H

#include "passes/lower/common/Method.h"
#include "passes/lower/cuda/products/Gemm.h"
#include "passes/lower/cuda/products/WarpgroupCode.h"

namespace tandem::lower::cuda {

/// Whether a product can be made so.
Fit fitOfWgmma(const Gemm &gemm, const CudaTarget &target);

class WgmmaProduct {
public:
  using Value = mlir::Value;
  using Values = ThreadCode::Values;

  /// Adds the tensor maps to the kernel's parameters.
  WgmmaProduct(ThreadCode &code, const Gemm &gemm,
               const GemmSchedule &schedule);

  /// The stages of both factors.
  static int64_t stageBytes(const GemmSchedule &schedule);

  /// The threads of a block: those that multiply, and a warpgroup that copies.
  int64_t threads() const { return schedule.threads() + 128; }

  /// Sums over `count` tiles of k, from `kFirst` on, of the tile at (m, n).
  /// `memory`, the first of the block's shared memory, has the stages.
  /// `finish` gets the sums as a thread holds them, in fours like those of
  /// mma.sync; it runs in the schedule's threads alone, when the stages are no
  /// longer used.
  void emit(Value memory, Value m, Value n, Value kFirst, Value count,
            llvm::function_ref<void(mlir::ValueRange sums)> finish);

private:
  struct Factor {
    GemmFactor *factor;
    int64_t lines; ///< of a tile
    int64_t at;    ///< bytes from the begin of the memory to its first stage
    int64_t bytes; ///< of a stage
    Value map;
    bool alongK() const { return factor->alongK; }
  };
  Factor describe(GemmFactor &factor, int64_t lines, int64_t at);

  void initialize();
  void copy(Value m, Value n, Value kFirst, Value count);
  void copyTile(const Factor &factor, Value line, Value k, Value stage,
                Value full);
  /// The sums as a thread holds them.
  Values multiply(Value count);
  /// The same of f8 values, whose products of each tile begin at zeros.
  Values multiplyApart(Value count);
  /// Begins the products of a stage; without `sums` they are the first.
  Value multiplyTile(Value stage, Value sums);
  /// What wgmma is told of a factor's stage, from the line on.
  Value descriptor(const Factor &factor, Value stage, Value line);

  /// The stage after `stage`, and the parity of its turn.
  std::pair<Value, Value> after(Value stage, Value parity);

  ThreadCode &code;
  WarpgroupCode warpgroup;
  const Gemm &gemm;
  const GemmSchedule &schedule;
  Factor a, b;
  Value base;        ///< the memory's address in shared memory, i64
  Value full, empty; ///< the addresses of the first barriers
  Value group;       ///< the number of the thread's warpgroup
  mlir::Type sumsType;
};

} // namespace tandem::lower::cuda

#endif
