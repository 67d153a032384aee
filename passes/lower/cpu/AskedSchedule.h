//===- AskedSchedule.h - a kernel's schedule, said and not modelled -------===//
//
// A kernel around a product or a convolution may say how it is cut, in the
// attribute `schedule`, a dictionary. What it does not say, the models of
// GemmSchedule.cpp, WinogradSchedule.cpp and so on choose. Rows, vectors, block
// and packs change how long a kernel takes, and no bit of its results.
//
//   method    of a convolution: "winograd", "direct", or "windows" (vectors of
//             pixels); a method that the op or the target rules out is not used
//   rows, vectors   of a product's tile, in registers
//   block     rows of a product's item
//   packs     whether a panel of the right factor is packed
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_LOWER_CPU_ASKEDSCHEDULE_H
#define TANDEM_PASSES_LOWER_CPU_ASKEDSCHEDULE_H

#include "passes/lower/common/AnchorCode.h"

#include "ir/Ops.h"

#include <optional>

namespace tandem::cpu {

inline constexpr llvm::StringLiteral kScheduleAttr = "schedule";

struct AskedSchedule {
  int64_t rows = 0, vectors = 0, block = 0; ///< 0: not said
  std::optional<bool> packs;
  llvm::StringRef method; ///< empty: not said

  /// What the kernel asks for. Fails, with an error at it, if that is no
  /// schedule.
  static mlir::FailureOr<AskedSchedule> of(KernelOp kernel);
  /// The same of a kernel whose attribute has been checked.
  static AskedSchedule checked(KernelOp kernel);

  mlir::DictionaryAttr attribute(mlir::MLIRContext *context) const;
  /// True unless another method is asked for.
  bool allows(llvm::StringRef wanted) const {
    return method.empty() || method == wanted;
  }
};

/// Schedules worth trying for a kernel, besides its model's: none if it has no
/// choice. They may come to the same code.
llvm::SmallVector<AskedSchedule>
scheduleCandidates(KernelOp kernel, const lower::VectorTarget &target);
/// Those that are worth trying where `best` is the best of them.
llvm::SmallVector<AskedSchedule> scheduleNeighbours(KernelOp kernel,
                                                    const AskedSchedule &best);

} // namespace tandem::cpu

#endif
