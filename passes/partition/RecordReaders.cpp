//===- RecordReaders.cpp - who reads what outlives its program ------------===//
//
// A value that a backward takes may have been overwritten in between, which the
// runtime finds out: its message says which op would have read it. Before
// copies from the host are inserted, which are no ops of the model.
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/verify/PhaseVerifiers.h"

#include "ir/Signature.h"
#include "ir/Where.h"

#include "llvm/ADT/StringMap.h"

namespace tandem {
#define GEN_PASS_DEF_RECORDREADERS
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;

/// The op of the model for which `reader` reads what it reads, and its place.
static std::string readerIs(Operation *reader) {
  std::string text = whereIs(reader);
  StringRef name = Marks(reader->getLoc()).gradientOf;
  if (name.empty())
    return text;
  size_t own = reader->getName().getStringRef().size() + 2;
  return "'tandem." + name.str() + "'" + text.substr(own);
}

/// One attribute dictionary per role. Setting roles one by one takes quadratic
/// time.
static ArrayAttr rolesAttr(MLIRContext *context, ArrayRef<RoleAttr> roles) {
  Builder builder(context);
  SmallVector<Attribute> attributes;
  for (RoleAttr role : roles)
    attributes.push_back(
        builder.getDictionaryAttr(builder.getNamedAttr(kRoleAttr, role)));
  return builder.getArrayAttr(attributes);
}

namespace {

struct RecordReaders : tandem::impl::RecordReadersBase<RecordReaders> {
  void runOnOperation() final {
    ModuleOp module = getOperation();
    if (failed(checkSignatures(module)))
      return signalPassFailure();
    auto program = [&](StringRef name) {
      return module.lookupSymbol<func::FuncOp>(name);
    };
    func::FuncOp forward = program("forward"), backward = program("backward"),
                 gradForward = program("grad_forward"),
                 gradBackward = program("grad_backward");
    for (func::FuncOp func : {backward, gradForward, gradBackward})
      if (func)
        setReaders(func);
    if (forward && backward)
      copyReaders(forward, backward);
    if (gradForward && gradBackward)
      copyReaders(gradForward, gradBackward);
    // What the backward does not read.
    if (forward && gradForward)
      copyReaders(forward, gradForward);
  }

  /// Says at the arguments that come from the program before who reads them
  /// first.
  void setReaders(func::FuncOp func) {
    SmallVector<RoleAttr> roles;
    for (auto [i, argument] : llvm::enumerate(func.getArguments())) {
      RoleAttr &role = roles.emplace_back(roleOfArgument(func, i));
      if (RoleAttr::belongs(role.getKind()) || role.has(RoleAttr::kPass))
        continue;
      Operation *first = nullptr;
      for (Operation *user : argument.getUsers())
        if (user->getBlock() == argument.getOwner() &&
            !user->hasTrait<OpTrait::IsTerminator>() &&
            (!first || user->isBeforeInBlock(first)))
          first = user;
      if (!first)
        continue;
      role = role.with(RoleAttr::kWhere,
                       StringAttr::get(func.getContext(), readerIs(first)));
      ++recorded;
    }
    if (!roles.empty())
      func.setArgAttrsAttr(rolesAttr(func.getContext(), roles));
  }

  /// Says at what `giver` saves what the arguments of `taker` of the same names
  /// say.
  static void copyReaders(func::FuncOp giver, func::FuncOp taker) {
    llvm::StringMap<RoleAttr> readers;
    for (unsigned i = 0, n = taker.getNumArguments(); i < n; ++i)
      if (RoleAttr role = roleOfArgument(taker, i);
          role.getKind() == RoleKind::Saved)
        readers[role.getName()] = role;
    SmallVector<RoleAttr> roles;
    for (unsigned i = 0, n = giver.getNumResults(); i < n; ++i) {
      RoleAttr &role = roles.emplace_back(roleOfResult(giver, i));
      RoleAttr reader = readers.lookup(role.getName());
      if (role.getKind() != RoleKind::Saved || role.has(RoleAttr::kWhere) ||
          !reader)
        continue;
      for (StringRef property : {"where", "unchecked"})
        if (Attribute value = reader.getProperties().get(property))
          role = role.with(property, value);
    }
    if (!roles.empty())
      giver.setResAttrsAttr(rolesAttr(giver.getContext(), roles));
  }
};

} // namespace
