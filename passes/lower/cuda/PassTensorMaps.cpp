//===- PassTensorMaps.cpp - tensor maps are parameters by value -----------===//
#include "passes/Passes.h"
#include "passes/lower/common/CodeDialects.h"

#include "ir/Dialect.h"

namespace tandem {
#define GEN_PASS_DEF_PASSTENSORMAPS
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;

/// Of a CUtensorMap.
static constexpr unsigned kBytes = 128;

namespace {
struct PassTensorMaps : tandem::impl::PassTensorMapsBase<PassTensorMaps> {
  void runOnOperation() final {
    Builder b(&getContext());
    auto bytes = TypeAttr::get(LLVM::LLVMArrayType::get(b.getI8Type(), kBytes));
    for (auto func : getOperation().getOps<LLVM::LLVMFuncOp>()) {
      KernelFactsAttr facts = KernelFactsAttr::of(func);
      if (!facts || !facts.getTensorMaps() || func.isExternal())
        continue;
      // Behind the buffers, before what is private to the launch.
      auto type = cast<FunctionType>(facts.getType());
      unsigned first = type.getNumInputs() + type.getNumResults();
      for (unsigned i = 0; i < facts.getTensorMaps().size(); ++i) {
        func.setArgAttr(first + i, LLVM::LLVMDialect::getByValAttrName(),
                        bytes);
        func.setArgAttr(first + i, NVVM::NVVMDialect::getGridConstantAttrName(),
                        b.getUnitAttr());
        ++passed;
      }
    }
  }
};
} // namespace
