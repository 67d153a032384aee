//===- AskedSchedule.h - a kernel's schedule, said and not modelled -------===//
//
// A kernel may say how it is cut, in the attribute `schedule`, whose verifier
// checks the numbers (ir/KernelAttributes.cpp).
// What it does not say, the models of GemmSchedule.cpp, DirectSchedule.cpp,
// WinogradSchedule.cpp and so on choose. But for the method, what it says
// changes how long a kernel takes and no bit of its results.
//
//   method    a row of the kernel's table (Methods.cpp), which has to compute
//             it
//   rows, vectors   of a tile of sums, in registers: of products, of direct and
//             1x1 convolutions, and of the products of Winograd's method.
//             Vectors are those of own rows in a tile of attention, but for its
//             joined gradients; and those side by side in a pointwise loop
//   block, columns   what an item has, as far as the sizes reach and its memory
//             stays small
//   packs     whether a panel of the right factor is packed
//   ahead     whether loops ask for what they will read of large inputs
//
//                              block                  columns
//   product, windows           rows
//   product by matrix tiles    rows                   columns
//   direct conv2d, input_grad  pixels
//   direct filter_grad         planes of x
//   1x1                        planes of the result   pixels
//   convolution of few planes  pixels
//   Winograd                   tiles of 4x4 pixels    planes of the result
//   its filter_grad            planes of x            planes of y
//   pointwise loop             elements
//   loop that keeps columns                           columns
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_LOWER_CPU_ASKEDSCHEDULE_H
#define TANDEM_PASSES_LOWER_CPU_ASKEDSCHEDULE_H

#include "passes/lower/common/AnchorCode.h"

#include "ir/Ops.h"

#include <optional>

namespace tandem::lower::cpu {

/// The attribute, as numbers to try others of.
struct AskedSchedule {
  int64_t rows = 0, vectors = 0, block = 0, columns = 0; ///< 0: not said
  std::optional<bool> packs, ahead;
  std::optional<ScheduleMethod> method;

  /// What the kernel asks for.
  static AskedSchedule of(KernelOp kernel);

  /// Null if nothing is said.
  ScheduleAttr attribute(mlir::MLIRContext *context) const;
};

} // namespace tandem::lower::cpu

#endif
