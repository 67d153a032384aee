//===- CheckStorage.cpp - what may change, and what may not ---------------===//
#include "compiler/capture/DemoteRefs.h"
#include "compiler/import/torch/GraphTranslator.h"
#include "ir/Ops.h"
#include "ir/Signature.h"

#include "llvm/ADT/DenseMap.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::torch;

/// Whether a view of storage, or it itself, is written.
static bool isWritten(Value ref) {
  return llvm::any_of(ref.getUsers(), [&](Operation *user) {
    if (llvm::is_contained(changedRefs(user), ref))
      return true;
    return llvm::any_of(user->getResults(), [](Value result) {
      return isa<RefType>(result.getType()) && isWritten(result);
    });
  });
}

/// What begins anew in each step keeps nothing that is written to it.
void GraphTranslator::checkConstants() {
  for (const auto &[where, ref] : constants)
    if (isWritten(ref))
      problem(where,
              "unsupported: the program writes to what is no part of the "
              "state_dict; register it as a persistent buffer",
              true);
}

/// Parameters and buffers that show one storage are several tensors here, which
/// may not change.
void GraphTranslator::checkStorage() {
  auto changes = [&](BlockArgument argument) {
    return isWritten(argument) || roleOfArgument(func, argument.getArgNumber())
                                      .has(RoleAttr::kRequiresGrad);
  };
  std::map<std::string, std::pair<std::string, BlockArgument>> owners;
  for (const auto &[name, argument] : kept) {
    auto stored = program.storage.find(name);
    if (stored == program.storage.end())
      continue;
    auto [owner, isNew] =
        owners.emplace(stored->second, std::pair(name, argument));
    const auto &[other, first] = owner->second;
    if (!isNew && first != argument && (changes(first) || changes(argument)))
      problem("'" + name + "' and '" + other + "'",
              "unsupported: they show one storage, and it changes", true);
  }
  // One parameter under two names is read under one of them: torch.export has
  // one tensor for an object. Two that are read are two objects, which PyTorch
  // trains one after the other, each with a state of its own.
  llvm::DenseMap<Value, std::string> readAs;
  for (const InputSpec &input : program.inputs) {
    auto found = placed.find(input.target);
    if (input.kind != InputSpec::Kind::Parameter || found == placed.end() ||
        input.argument.names.empty() ||
        !isRead(input.argument.names[0], program.graph))
      continue;
    auto [owner, isNew] = readAs.try_emplace(found->second, input.target);
    if (!isNew && owner->second != input.target && changes(found->second))
      problem("'" + input.target + "' and '" + owner->second + "'",
              "unsupported: two parameters that show one storage, and it "
              "changes; make them one (a.weight = b.weight), copy the data, or "
              "freeze them",
              true);
  }
}
