//===- BuildOp.cpp - makes ops from names and attributes ------------------===//
#include "compiler/BuildOp.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"

#include <memory>

using namespace mlir;
using namespace tandem;

/// Infers the result types of the op that `state` describes.
static LogicalResult inferTypes(OperationState &state,
                                RegisteredOperationName name) {
  if (name.hasTrait<OpTrait::ZeroResults>())
    return success();
  auto *infer = name.getInterface<InferTypeOpInterface>();
  if (!infer)
    return emitError(state.location)
           << "'" << name << "' op needs its result type to be given";
  auto error = [&] {
    return emitError(state.location) << "'" << name << "' op ";
  };
  // Ops keep their attributes in properties; inference wants them there.
  DictionaryAttr attributes = state.attributes.getDictionary(name.getContext());
  std::unique_ptr<std::max_align_t[]> memory;
  OpaqueProperties properties(nullptr);
  if (int bytes = name.getOpPropertyByteSize()) {
    memory = std::make_unique<std::max_align_t[]>(
        (bytes + sizeof(std::max_align_t) - 1) / sizeof(std::max_align_t));
    properties = OpaqueProperties(memory.get());
    name.initOpProperties(properties, OpaqueProperties(nullptr));
    if (failed(name.setOpPropertiesFromAttribute(name, properties, attributes,
                                                 error))) {
      name.destroyOpProperties(properties);
      return failure();
    }
  }
  LogicalResult result = infer->inferReturnTypes(
      name.getContext(), state.location, state.operands, attributes, properties,
      state.regions, state.types);
  if (properties)
    name.destroyOpProperties(properties);
  return result;
}

FailureOr<Operation *> tandem::buildOp(OpBuilder &builder, Location loc,
                                       StringRef name, ValueRange operands,
                                       ArrayRef<NamedAttribute> attributes,
                                       TypeRange types) {
  std::string fullName = ("tandem." + name).str();
  auto info = RegisteredOperationName::lookup(fullName, builder.getContext());
  if (!info)
    return emitError(loc) << "unknown op '" << name << "'";
  for (NamedAttribute attribute : attributes) {
    StringRef attributeName = attribute.getName();
    if (attributeName.starts_with("tandem."))
      continue;
    if (!llvm::is_contained(info->getAttributeNames(), attributeName))
      return emitError(loc) << "'" << fullName << "' op has no attribute '"
                            << attributeName << "'";
  }
  OperationState state(loc, fullName, operands, types, attributes);
  // The verifiers of operands' types come before inference looks at them.
  if (types.empty() && failed(inferTypes(state, *info)))
    return failure();
  Operation *op = builder.create(state);
  if (failed(verify(op, /*verifyRecursively=*/false))) {
    op->erase();
    return failure();
  }
  return op;
}
