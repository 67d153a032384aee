//===- DeclareSharedMemory.cpp - shared memory that launches give ---------===//
#include "passes/Passes.h"
#include "passes/lower/common/CodeDialects.h"

namespace tandem {
#define GEN_PASS_DEF_DECLARESHAREDMEMORY
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;

/// Of what the hardware calls shared memory.
static constexpr unsigned kShared = 3;
/// The most that bulk copies with a swizzle ask for.
static constexpr int64_t kAlignment = 1024;

namespace {
struct DeclareSharedMemory
    : tandem::impl::DeclareSharedMemoryBase<DeclareSharedMemory> {
  void runOnOperation() final {
    for (auto global : getOperation().getOps<LLVM::GlobalOp>()) {
      auto type = dyn_cast<LLVM::LLVMArrayType>(global.getGlobalType());
      if (global.getAddrSpace() != kShared || !type ||
          type.getNumElements() != 0)
        continue;
      global.setLinkage(LLVM::Linkage::External);
      global.setAlignment(kAlignment);
      ++declared;
    }
  }
};
} // namespace
