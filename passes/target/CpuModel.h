//===- CpuModel.h - processors as passes reckon with them -----------------===//
#ifndef TANDEM_PASSES_TARGET_CPUMODEL_H
#define TANDEM_PASSES_TARGET_CPUMODEL_H

#include "ir/ops/Window.h"

#include "mlir/IR/Operation.h"

namespace tandem {

/// The processor that code is made for.
struct CpuModel {
  int64_t bits = 256; ///< of a vector register
  int64_t registers = 16;
  /// Registers of tiles for elements of the factor that is not read by vectors:
  /// where an operation takes it from memory there are few.
  int64_t elements = 2;
  int64_t processors = 8; ///< that items of work are to keep busy

  /// What one thread does in a second beside others, at least: for how many
  /// items it takes at a time.
  static constexpr double threadFlops = 20e9, threadBytes = 10e9;

  /// That of the module around `op`: its attribute `tandem.target`. What that
  /// does not say is as above, whatever machine compiles.
  static CpuModel of(mlir::Operation *op);
  /// The most rows of a tile of sums that is `vectors` wide, beside a row of
  /// vectors and elements; below 1: it is too wide.
  int64_t tileRows(int64_t vectors) const {
    return (registers - elements - vectors) / vectors;
  }
  /// Elements of `type` in a register, at least 2.
  int64_t lanes(mlir::Type type) const;
};

/// Whether windows of one pixel see every second one of lines that are a vector
/// of `lanes` such pixels, or several, or an even part of one, with none left
/// over: vectors of them need no gathering.
bool readsEverySecondPixel(const Window2d &window, int64_t lanes);

} // namespace tandem

#endif
