//===- PhaseVerifier.cpp - the checks that verifiers of phases share ------===//
#include "passes/verify/PhaseVerifier.h"

#include "ir/Collective.h"
#include "ir/Nearest.h"
#include "ir/PartitionMarks.h"
#include "ir/Signature.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace tandem;

InFlightDiagnostic PhaseVerifier::error(Operation *op) {
  failed = true;
  return op->emitError() << "phase '" << phase << "' left ";
}

void PhaseVerifier::functions(ArrayRef<StringRef> required,
                              ArrayRef<StringRef> optional) {
  for (StringRef name : required)
    if (!function(name))
      error(module) << "no function '" << name << "'";
  SmallVector<StringRef> known(required);
  llvm::append_range(known, optional);
  for (auto func : module.getOps<func::FuncOp>()) {
    StringRef name = func.getName();
    if (!llvm::is_contained(known, name))
      error(func) << "an unexpected function '" << name << "'"
                  << didYouMean(name, known);
    (void)hasBody(func);
  }
}

bool PhaseVerifier::hasBody(func::FuncOp func) {
  if (func.isExternal() || !func.getBody().hasOneBlock()) {
    error(func) << "function '" << func.getName()
                << "' without a body of one block";
    return false;
  }
  bool isRight = succeeded(verifySignature(func));
  failed |= !isRight;
  return isRight;
}

void PhaseVerifier::valuesOnly(func::FuncOp func) {
  auto isRef = [](Type type) { return isa<RefType>(type); };
  if (llvm::any_of(func.getArgumentTypes(), isRef) ||
      llvm::any_of(func.getResultTypes(), isRef))
    error(func) << "a ref in the signature of '" << func.getName() << "'";
  for (Operation &op : func.getOps()) {
    if (isa<func::ReturnOp>(op))
      continue;
    if (!isa<TandemDialect>(op.getDialect()))
      error(&op) << "'" << op.getName() << "', an op of another dialect";
    else if (!isMemoryEffectFree(&op) && !isCollective(&op))
      error(&op) << "'" << op.getName() << "', an op with a memory effect";
    else if (llvm::any_of(op.getResultTypes(), isRef))
      error(&op) << "'" << op.getName() << "', an op that makes a ref";
  }
}

void PhaseVerifier::unmarked(func::FuncOp func) {
  auto expectNone = [&](Operation *op, ArrayRef<NamedAttribute> attributes) {
    for (NamedAttribute attribute : attributes)
      if (isPartitionMark(attribute.getName()))
        error(op) << "'" << attribute.getName().getValue() << "' on '"
                  << op->getName() << "', which partition alone chooses";
  };
  func.walk([&](Operation *op) {
    expectNone(op, llvm::to_vector(op->getDiscardableAttrs()));
  });
  for (unsigned i = 0, n = func.getNumArguments(); i < n; ++i)
    expectNone(func, function_interface_impl::getArgAttrs(func, i));
}

void PhaseVerifier::noneOfKind(func::FuncOp func, RoleKind kind) {
  for (unsigned i = 0, n = func.getNumArguments(); i < n; ++i)
    if (RoleAttr role = roleOfArgument(func, i); role && role.getKind() == kind)
      error(func) << "'" << role.str() << "' as an argument of '"
                  << func.getName() << "'";
  for (unsigned i = 0, n = func.getNumResults(); i < n; ++i)
    if (RoleAttr role = roleOfResult(func, i); role && role.getKind() == kind)
      error(func) << "'" << role.str() << "' as a result of '" << func.getName()
                  << "'";
}

void PhaseVerifier::sameArgument(func::FuncOp func, unsigned index,
                                 Type expected, StringRef other) {
  Type type = func.getArgumentTypes()[index];
  if (type != expected)
    error(func) << "'" << roleOfArgument(func, index).str() << "' of type "
                << type << " in '" << func.getName() << "', but of type "
                << expected << " in '" << other << "'";
}
