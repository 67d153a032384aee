//===- BuildOp.cpp - makes ops from names and attributes ------------------===//
#include "ir/BuildOp.h"
#include "ir/EmptyTensors.h"
#include "ir/KnownAttributes.h"
#include "ir/Ops.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"

#include <memory>

using namespace mlir;
using namespace tandem;

namespace {

/// An op's attributes as properties, the form that inference wants.
class Properties {
public:
  /// Fails, with a diagnostic, if an attribute is not of its kind.
  static FailureOr<std::unique_ptr<Properties>>
  of(RegisteredOperationName name, DictionaryAttr attributes, Location loc) {
    std::unique_ptr<Properties> properties(new Properties(name));
    auto error = [&] { return emitError(loc) << "'" << name << "' op "; };
    if (properties->memory && failed(name.setOpPropertiesFromAttribute(
                                  name, properties->get(), attributes, error)))
      return failure();
    return properties;
  }
  ~Properties() {
    if (memory)
      name.destroyOpProperties(get());
  }
  OpaqueProperties get() { return OpaqueProperties(memory.get()); }

private:
  explicit Properties(RegisteredOperationName name) : name(name) {
    constexpr size_t unit = sizeof(std::max_align_t);
    if (int bytes = name.getOpPropertyByteSize()) {
      memory = std::make_unique<std::max_align_t[]>((bytes + unit - 1) / unit);
      name.initOpProperties(get(), OpaqueProperties(nullptr));
    }
  }
  RegisteredOperationName name;
  std::unique_ptr<std::max_align_t[]> memory;
};

} // namespace

/// The fewest and most operands that an op of this name can have.
template <unsigned... N>
static std::pair<unsigned, unsigned>
operandCounts(RegisteredOperationName name,
              std::integer_sequence<unsigned, N...>) {
  constexpr unsigned any = ~0u;
  std::pair<unsigned, unsigned> counts{0, any};
  if (name.hasTrait<OpTrait::ZeroOperands>())
    counts = {0, 0};
  else if (name.hasTrait<OpTrait::OneOperand>())
    counts = {1, 1};
  ((name.hasTrait<OpTrait::NOperands<N + 2>::template Impl>()
        ? (void)(counts = {N + 2, N + 2})
        : void()),
   ...);
  ((name.hasTrait<OpTrait::AtLeastNOperands<N + 1>::template Impl>()
        ? (void)(counts = {N + 1, any})
        : void()),
   ...);
  return counts;
}

/// Checks what inference takes for granted: that operands and attributes are
/// there and are of their kinds. MLIR checks that of whole ops only, so an op
/// with stand-ins for results is made, verified and erased; what is then said
/// of the results is not meant.
static LogicalResult checkParts(OpBuilder &builder, Location loc,
                                RegisteredOperationName name,
                                ValueRange operands,
                                ArrayRef<NamedAttribute> attributes) {
  auto [fewest, most] =
      operandCounts(name, std::make_integer_sequence<unsigned, 8>());
  unsigned given = operands.size();
  if (given < fewest || given > most) {
    auto error = emitError(loc) << "'" << name << "' op expected ";
    if (fewest != most)
      error << "at least ";
    return error << fewest << " operands, but got " << given;
  }
  unsigned results = name.hasTrait<OpTrait::NResults<2>::Impl>()   ? 2
                     : name.hasTrait<OpTrait::NResults<3>::Impl>() ? 3
                                                                   : 1;
  Type standIn = RankedTensorType::get({}, builder.getF32Type());
  OperationState state(loc, name.getStringRef(), operands,
                       SmallVector<Type>(results, standIn), attributes);
  std::string problem;
  {
    ScopedDiagnosticHandler handler(builder.getContext(),
                                    [&](Diagnostic &diagnostic) {
                                      if (problem.empty())
                                        problem = diagnostic.str();
                                      return success();
                                    });
    Operation *op = builder.create(state);
    (void)verify(op, /*verifyRecursively=*/false);
    op->erase();
  }
  bool ofParts = StringRef(problem).contains("attribute '") ||
                 StringRef(problem).contains("operand #");
  if (!ofParts)
    return success();
  return emitError(loc) << problem;
}

/// Infers the result types of an op.
static LogicalResult inferTypes(RegisteredOperationName name, Location loc,
                                ValueRange operands, DictionaryAttr attributes,
                                Properties &properties,
                                SmallVectorImpl<Type> &types) {
  auto *infer = name.getInterface<InferTypeOpInterface>();
  if (!infer)
    return emitError(loc) << "'" << name
                          << "' op needs its result type to be given";
  return infer->inferReturnTypes(name.getContext(), loc, operands, attributes,
                                 properties.get(), {}, types);
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
    auto error = [&] { return emitError(loc); };
    if (!attributeName.starts_with("tandem.") &&
        failed(verifyAttributeName(error, *info, attributeName)))
      return failure();
  }
  auto dictionary = builder.getDictionaryAttr(attributes);
  auto properties = Properties::of(*info, dictionary, loc);
  if (failed(properties))
    return failure();
  SmallVector<Type> resultTypes(types.begin(), types.end());
  if (types.empty() && !info->hasTrait<OpTrait::ZeroResults>() &&
      (failed(checkParts(builder, loc, *info, operands, attributes)) ||
       failed(inferTypes(*info, loc, operands, dictionary, **properties,
                         resultTypes))))
    return failure();
  OperationState state(loc, fullName, operands, resultTypes, attributes);
  Operation *op = builder.create(state);
  if (failed(verify(op, /*verifyRecursively=*/false))) {
    op->erase();
    return failure();
  }
  return op;
}

LogicalResult tandem::expectElements(Operation *op) {
  if (!isa<ReduceMaxOp, ReduceMinOp>(op) ||
      !isEmptyTensor(op->getOperand(0).getType()) ||
      isEmptyTensor(op->getResult(0).getType()))
    return success();
  auto error = op->emitOpError() << "expected at least one element over [";
  llvm::interleaveComma(cast<ReductionOpInterface>(op).getReducedDims(), error);
  return error << "], but got " << op->getOperand(0).getType();
}
