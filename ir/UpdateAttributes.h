//===- UpdateAttributes.h - what a module says of its update --------------===//
//
// Beside `tandem.optimizer`, which they need. Strings are read by
// passes/partition (ClipSpec.h, NoiseSpec.h, LossScaleSpec.h, GroupSpec.h,
// AverageSpec.h, optimizers/Schedules.h).
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_IR_UPDATEATTRIBUTES_H
#define TANDEM_IR_UPDATEATTRIBUTES_H

#include "llvm/ADT/StringRef.h"

namespace tandem {

/// How gradients are clipped before they are used: `norm:1.0`.
inline constexpr llvm::StringLiteral kClipAttr = "tandem.clip";
/// The noise that is added to gradients: `0.01,gamma=0.55`.
inline constexpr llvm::StringLiteral kGradientNoiseAttr =
    "tandem.gradient_noise";
/// A unit: gradients are centralized before they are used.
inline constexpr llvm::StringLiteral kCentralizeAttr = "tandem.centralize";
/// What the loss is multiplied by before it is differentiated: `dynamic`.
inline constexpr llvm::StringLiteral kLossScaleAttr = "tandem.loss_scale";
/// Which weights get low-rank adapters, which alone are trained then:
/// `.*attn.*:rank=8` (passes/adapters/LoraSpec.h). It needs no optimizer.
inline constexpr llvm::StringLiteral kLoraAttr = "tandem.lora";
/// A unit: gradients of several batches can be added up before an update.
inline constexpr llvm::StringLiteral kAccumulateAttr = "tandem.accumulate";
/// An array of what differs for some of the params:
/// `.*bias:weight_decay=0`.
inline constexpr llvm::StringLiteral kGroupsAttr = "tandem.groups";
/// The rate as a function of the number of updates: `cosine:total=1000`.
inline constexpr llvm::StringLiteral kLrScheduleAttr = "tandem.lr_schedule";
/// Averages of params over updates: a decay, and `start=100,every=10`.
inline constexpr llvm::StringLiteral kEmaAttr = "tandem.ema";
inline constexpr llvm::StringLiteral kSwaAttr = "tandem.swa";

} // namespace tandem

#endif
