//===- PackedNumber.h - what a thread has packed in its scratch -----------===//
//
// Items of a launch that follow each other on a thread may share what they
// pack. The word with which scratch begins tells the number of what lies there,
// plus one: it is 0 when a thread runs the first items of a launch.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_LOWER_CPU_PRODUCTS_PACKEDNUMBER_H
#define TANDEM_PASSES_LOWER_CPU_PRODUCTS_PACKEDNUMBER_H

#include "passes/lower/common/AnchorCode.h"

namespace tandem::lower::cpu {

class PackedNumber {
public:
  /// Of an emission that has no such word: `isThere` is false.
  PackedNumber() = default;
  /// Takes the word from `scratch`, of which nothing is taken yet.
  static PackedNumber take(lower::Code &code, lower::Scratch &scratch);

  bool isThere() const { return isTaken; }
  /// Runs `pack` and notes `number`, unless that is what is there.
  void packUnlessThere(lower::Code &code, mlir::Value number,
                       llvm::function_ref<void()> pack) const;
  /// From here on `number` is what is there.
  void note(lower::Code &code, mlir::Value number) const;

private:
  bool isTaken = false;
  mlir::Value word; ///< memref<1xi64>; null where scratch is only counted
};

} // namespace tandem::lower::cpu

#endif
