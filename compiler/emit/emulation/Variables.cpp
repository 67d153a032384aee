//===- Variables.cpp - where variables of kernels stand -------------------===//
//
// Shared variables become offsets into the block's shared memory, per kernel:
// static ones first, then, at a multiple of 1024, the one whose size the launch
// says. Other module-scope variables must be constants.
//
//===----------------------------------------------------------------------===//
#include "compiler/emit/emulation/KernelChunk.h"

#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/ReplaceConstant.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/NVPTXAddrSpace.h"

#include <cstddef>

using namespace llvm;
using namespace tandem::emulation;
namespace am = tandem::artifact;

static constexpr uint64_t kDynamicAlignment = 1024;

void KernelChunk::placeVariables() {
  const DataLayout &layout = module.getDataLayout();
  auto bytesOf = [&](GlobalVariable *variable) -> uint64_t {
    return layout.getTypeAllocSize(variable->getValueType());
  };
  SmallVector<GlobalVariable *> shared, dynamic;
  for (GlobalVariable &variable : module.globals()) {
    if (&variable == functionTable || variable.getName().starts_with("llvm."))
      continue;
    if (variable.getAddressSpace() == NVPTXAS::ADDRESS_SPACE_SHARED) {
      (bytesOf(&variable) ? shared : dynamic).push_back(&variable);
      continue;
    }
    if (!variable.isConstant() || !variable.hasInitializer()) {
      if (!variable.use_empty())
        errors.push_back("variable '" + variable.getName().str() +
                         "' at module scope is no constant");
      continue;
    }
    variable.setLinkage(GlobalValue::InternalLinkage);
    variable.setVisibility(GlobalValue::DefaultVisibility);
    if (!variable.getAlign())
      variable.setAlignment(layout.getPreferredAlign(&variable));
    constants.push_back(&variable);
  }
  // Dynamic ones, of size 0, come last.
  llvm::append_range(shared, dynamic);
  SmallVector<Constant *> all(shared.begin(), shared.end());
  convertUsersOfConstantsToInstructions(all);

  for (GlobalVariable *variable : shared) {
    uint64_t bytes = bytesOf(variable);
    uint64_t alignment =
        std::max<uint64_t>(variable->getAlign().valueOrOne().value(),
                           bytes ? 16 : kDynamicAlignment);
    DenseMap<Function *, Value *> addresses;
    for (Use &use : make_early_inc_range(variable->uses())) {
      auto *user = dyn_cast<Instruction>(use.getUser());
      if (!user) {
        errors.push_back("variable '" + variable->getName().str() +
                         "' in shared memory is used by a constant");
        break;
      }
      Function *function = user->getFunction();
      Value *&address = addresses[function];
      if (!address) {
        KernelRecord &kernel = kernels[kernelIndex.lookup(function)];
        uint64_t offset = alignTo(kernel.sharedBytes, alignment);
        kernel.sharedBytes = offset + bytes;
        BasicBlock &entry = function->getEntryBlock();
        Builder b(&entry, entry.begin());
        Value *base =
            threadField(b, offsetof(am::EmulatedThread, shared), b.getPtrTy());
        address = b.CreateAddrSpaceCast(
            b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), base, offset),
            variable->getType());
      }
      use.set(address);
    }
    if (variable->use_empty())
      variable->eraseFromParent();
  }

  // Memory that nobody wrote is NaN in every floating point type.
  for (KernelRecord &kernel : kernels)
    for (Instruction &instruction :
         make_early_inc_range(instructions(kernel.function)))
      if (auto *local = dyn_cast<AllocaInst>(&instruction)) {
        auto bytes = local->getAllocationSize(layout);
        if (!bytes || !local->isStaticAlloca()) {
          error(*local, "a local variable without a fixed size");
          continue;
        }
        kernel.localBytes += alignTo(*bytes, 16) + local->getAlign().value();
        Builder b(local->getNextNode());
        own(b.CreateMemSet(local, b.getInt8(0xff), *bytes, local->getAlign()));
      }
}
