//===- PlaceConstants.cpp - where constants lie ---------------------------===//
#include "ir/EmptyTensors.h"
#include "ir/Ops.h"
#include "passes/Passes.h"
#include "passes/plan/PlanMemory.h"

#include "llvm/Support/MathExtras.h"

namespace tandem {
#define GEN_PASS_DEF_PLACECONSTANTS
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;

namespace {
struct PlaceConstants : tandem::impl::PlaceConstantsBase<PlaceConstants> {
  void runOnOperation() final {
    DenseMap<Attribute, int64_t> offsets;
    int64_t bytes = 0;
    for (auto func : getOperation().getOps<func::FuncOp>())
      for (auto constant : func.getOps<ConstantOp>()) {
        if (isEmptyTensor(constant.getType()))
          continue;
        auto [known, isNew] = offsets.try_emplace(constant.getValue(), bytes);
        if (isNew)
          bytes +=
              llvm::alignTo(byteSize(constant.getType()), kBufferAlignment);
        constant->setAttr(kBufferAttr,
                          BufferAttr::get(&getContext(), BufferPlace::Constant,
                                          known->second));
      }
  }
};
} // namespace
