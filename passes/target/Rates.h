//===- Rates.h - what a target does in a second ---------------------------===//
//
// One model of time for all passes: the rates of a typical machine of the
// target's kind, not of the machine that compiles, so that the same module has
// the same costs everywhere. A rate decides what is saved, joined, copied or
// cut. It must not decide bits: how long partial sums are is written by the
// pass that cuts them (docs/rationale/same-bits-in-every-plan.md).
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_TARGET_RATES_H
#define TANDEM_PASSES_TARGET_RATES_H

#include "ir/Ops.h"
#include "passes/target/Machines.h"

namespace tandem {

/// What a target does in a second.
struct Rates {
  double bytes;     ///< moved to or from memory
  double products;  ///< flops of contractions in f32
  double narrow;    ///< flops of contractions in tf32, f16 and bf16
  double elements;  ///< arithmetic operations of pointwise ops
  double functions; ///< exp, tanh, ...
  double launches;  ///< kernels that start
  double host;      ///< bytes copied to the host's memory, or from it
  double links;     ///< bytes that a rank sends to others
  double messages;  ///< that a rank sends, one after the other

  /// Those of the target of the module around `op` (`tandem.target`); without
  /// one, of a CPU with vectors of 256 bits.
  static Rates of(mlir::Operation *op);
  /// Those of a row of the table of devices; `vectorBits` of a processor.
  static Rates of(const DeviceRow &row, int64_t vectorBits);

  /// Moving `count` bytes.
  double moving(double count) const { return count / bytes; }
  /// A kernel: its start, and the longer of computing for `computing` seconds
  /// and of moving `moved` bytes.
  double seconds(double computing, double moved) const {
    return 1 / launches + std::max(computing, moving(moved));
  }
  /// Computing what an op computes, operands and results at hand.
  double arithmetic(mlir::Operation *op) const;
  /// The ops of a kernel's region, what it reads and what it writes.
  double seconds(KernelOp kernel) const;
  /// An op in a kernel of its own.
  double secondsAlone(mlir::Operation *op) const;
};

/// True if one element of the op costs much more than loading it again: its
/// scalar code has functions (exp, log, ...) in it.
bool isExpensive(PointwiseOpInterface op);

/// The bytes that small sums of several ranks wait for before they go in one
/// exchange: what the module around `op` says, else so many that the exchange's
/// begin takes a small part of its time.
int64_t bucketBytes(mlir::Operation *op);

} // namespace tandem

#endif
