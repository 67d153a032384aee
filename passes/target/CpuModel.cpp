//===- CpuModel.cpp - processors as passes reckon with them ---------------===//
#include "passes/target/CpuModel.h"

#include "passes/target/Target.h"

using namespace mlir;
using namespace tandem;

namespace {
/// What processors have whose code may use `feature`.
struct Row {
  StringLiteral feature;
  int64_t bits;      ///< of vectors, at least
  int64_t registers; ///< of them
  int64_t elements;  ///< CpuModel::elements
};
} // namespace

/// The first that fits. With NEON an element takes a register, and LLVM loads
/// some of the next row's before the sums of this one.
static constexpr Row rows[] = {
    {"neon", 0, 32, 6}, {"", 512, 32, 2}, {"", 0, 16, 2}};

CpuModel CpuModel::of(Operation *op) {
  CpuModel model;
  if (TargetAttr target = TargetAttr::of(op)) {
    if (target.getVectorBits())
      model.bits = target.getVectorBits();
    const Row *row = llvm::find_if(rows, [&](const Row &one) {
      return model.bits >= one.bits &&
             (one.feature.empty() || target.hasFeature(one.feature));
    });
    model.registers = row->registers;
    model.elements = row->elements;
    if (target.getProcessors())
      model.processors = std::min<int64_t>(target.getProcessors(), 1024);
  }
  return model;
}

int64_t CpuModel::lanes(Type type) const {
  return std::max<int64_t>(2, bits / type.getIntOrFloatBitWidth());
}

bool tandem::readsEverySecondPixel(const Window2d &w, int64_t lanes) {
  constexpr Window2d::Pair one{1, 1}, two{2, 2}, none{0, 0};
  return w.kernel == one && w.stride == two && w.before == none &&
         w.after == none && w.output[1] > 0 && w.input[1] == 2 * w.output[1] &&
         w.input[0] == 2 * w.output[0] &&
         (w.output[1] % lanes == 0 || lanes % w.output[1] == 0);
}
