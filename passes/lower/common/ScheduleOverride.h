//===- ScheduleOverride.h - what a schedule says, as numbers --------------===//
//
// What a kernel's `schedule` says stands above the models of GemmSchedule.cpp,
// DirectSchedule.cpp, WinogradSchedule.cpp and so on. It is what somebody asked
// for, of which the sizes may allow less, or what the pass
// tandem-choose-methods has completed: then it has all numbers of its method,
// and code is made of these or refused (Method.h).
//
//   method    a row of the kernel's table (Methods.cpp), which has to compute
//             it
//
// Of CPUs; these change how long a kernel takes, and no bit of its results:
//
//   rows, vectors   of a tile of sums, in registers: of products, of direct and
//             1x1 convolutions, and of the products of Winograd's method.
//             Vectors are those of own rows in a tile of attention, but for its
//             joined gradients; and those side by side in a pointwise loop
//   block, columns   what an item has
//   packs     whether a panel of the right factor is packed
//   ahead     whether loops ask for what they will read of large inputs
//
//                              block                  columns
//   product, windows           rows                   columns
//   product by matrix tiles    rows                   columns
//   product by dots                                   columns
//   direct conv2d, input_grad  pixels
//   direct filter_grad         planes of x
//   1x1                        planes of the result   pixels, in whole vectors
//   convolution of few planes  pixels
//   Winograd                   tiles of 4x4 pixels    planes of the result
//   its filter_grad            planes of x            planes of y
//   scatter, take_grad         rows of the table
//   pointwise loop             about so many elements
//   loop that keeps columns                           columns
//
// Of CUDA:
//
//   block_m, block_n, block_k   the tile of a block of threads, and the k of a
//             stage; of attention a block's own rows, and the other rows at a
//             time, which decide bits
//   warps_m, warps_n   how warps share the tile
//   stages    tiles of k on their way
//   splits    blocks that share a k, whose sums are added: it decides bits
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_LOWER_COMMON_SCHEDULEOVERRIDE_H
#define TANDEM_PASSES_LOWER_COMMON_SCHEDULEOVERRIDE_H

#include "ir/Ops.h"

#include <array>
#include <optional>

namespace tandem::lower {

/// A value for some keys of a schedule.
class ScheduleOverride {
public:
  ScheduleOverride() = default;
  explicit ScheduleOverride(
      std::initializer_list<std::pair<ScheduleKey, int64_t>> list) {
    for (auto [key, value] : list)
      set(key, value);
  }
  /// What the kernel's `schedule` says.
  static ScheduleOverride of(KernelOp kernel);
  static ScheduleOverride of(ScheduleAttr schedule);

  bool has(ScheduleKey key) const { return at(key).has_value(); }
  bool hasAll(llvm::ArrayRef<ScheduleKey> keys) const {
    return llvm::all_of(keys, [&](ScheduleKey key) { return has(key); });
  }
  /// 0 if nothing is said; of a flag 0 or 1.
  int64_t operator[](ScheduleKey key) const { return at(key).value_or(0); }
  /// `model` if nothing is said.
  int64_t get(ScheduleKey key, int64_t model) const {
    return at(key).value_or(model);
  }
  void set(ScheduleKey key, int64_t value) {
    values[static_cast<unsigned>(key)] = value;
  }
  void drop(ScheduleKey key) {
    values[static_cast<unsigned>(key)] = std::nullopt;
  }

  std::optional<ScheduleMethod> method() const;
  void setMethod(ScheduleMethod method) {
    set(ScheduleKey::Method, static_cast<int64_t>(method));
  }

  /// As an attribute, asked for; null if nothing is said.
  ScheduleAttr attribute(mlir::MLIRContext *context) const;

private:
  const std::optional<int64_t> &at(ScheduleKey key) const {
    return values[static_cast<unsigned>(key)];
  }

  std::array<std::optional<int64_t>, kScheduleKeys> values;
};

} // namespace tandem::lower

#endif
