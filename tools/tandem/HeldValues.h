//===- HeldValues.h - what differences must not see move ------------------===//
#ifndef TANDEM_TOOLS_TANDEM_HELDVALUES_H
#define TANDEM_TOOLS_TANDEM_HELDVALUES_H

#include "ir/Ops.h"
#include "ir/reference/Array.h"

#include "llvm/ADT/DenseMap.h"

#include <vector>

namespace tandem {

/// What passes no gradient is a constant where gradients are asked for, so that
/// differences must not see it move: what such ops give is what they gave at
/// the point itself, in every run around it.
class HeldValues {
public:
  /// In a first run, which is at the point, values are kept.
  void keep() { state = State::Keep; }
  /// In the runs that follow they are given again.
  void giveAgain() {
    state = State::GiveAgain;
    runs.clear();
  }
  /// An op of a loop runs many times.
  void operator()(mlir::Operation *op,
                  llvm::MutableArrayRef<reference::Array> results) {
    if (!llvm::isa<DetachOp>(op) && !op->hasAttr(kNoGradAttr))
      return;
    auto &values = held[op];
    if (state == State::Keep)
      return void(values.emplace_back(results.begin(), results.end()));
    size_t run = runs[op]++;
    if (run < values.size())
      llvm::copy(values[run], results.begin());
  }

private:
  enum class State { Keep, GiveAgain } state = State::Keep;
  llvm::DenseMap<mlir::Operation *, std::vector<std::vector<reference::Array>>>
      held;
  llvm::DenseMap<mlir::Operation *, size_t> runs;
};

} // namespace tandem

#endif
