//===- WindowAxis.h - where results of a convolution look, per direction --===//
//
// One direction of a convolution whose results are pixels: of y (conv2d), or of
// x (conv2d_input_grad). A padded image has all the positions that results see,
// inside of the image or not; results of one phase see the same taps at the
// same distances. With strides, pixels of x have as many phases as the stride
// is long, and each phase its own taps.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_LOWER_CPU_CONVOLUTION_WINDOWAXIS_H
#define TANDEM_PASSES_LOWER_CPU_CONVOLUTION_WINDOWAXIS_H

#include "ir/ops/Window.h"

namespace tandem::lower::cpu {

struct WindowAxis {
  struct Tap {
    int64_t number; ///< of the kernel
    int64_t offset; ///< of padded positions, at least 0
  };
  int64_t results; ///< pixels
  int64_t seen;    ///< the size of the image that is looked at
  int64_t phases;  ///< result = neighbour * phases + phase
  int64_t step;    ///< padded positions between neighbours
  int64_t every;   ///< positions of the image between padded ones
  int64_t first;   ///< position of the image at padded position 0
  /// Of each phase; numbers and offsets are evenly apart.
  llvm::SmallVector<llvm::SmallVector<Tap>> taps;

  /// The pixels of y, which look at x; and those of x, which look at y.
  static WindowAxis ofOutput(const Window2d &window, int d);
  static WindowAxis ofInput(const Window2d &window, int d);

  /// Neighbours of all phases together, and of one.
  int64_t neighbours() const { return (results + phases - 1) / phases; }
  int64_t neighbours(int64_t phase) const {
    return (results - phase + phases - 1) / phases;
  }
  /// The lanes of vectors of neighbours: `most`, or fewer, down to four, where
  /// those of a line would fill no more than half of them.
  int64_t lanes(int64_t most) const;
  /// How many padded positions `count` neighbours see.
  int64_t padded(int64_t count) const;
};

} // namespace tandem::lower::cpu

#endif
