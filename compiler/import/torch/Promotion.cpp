//===- Promotion.cpp - types that operands have together ------------------===//
//
// The promotion of PyTorch (`torch.result_type`): categories count first, and
// tensors of no dimensions and numbers less than others of the same category.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/torch/GraphTranslator.h"
#include "ir/Ops.h"

#include <cmath>

using namespace mlir;
using namespace tandem;
using namespace tandem::torch;
using Form = Argument::Form;

/// 0: bool, 1: integer, 2: float.
static int categoryOf(Type type) {
  return isa<FloatType>(type) ? 2 : type.isInteger(1) ? 0 : 1;
}

/// The type of what has these two, dimensions or not.
static Type promote(Type a, Type b) {
  if (!a || !b || a == b)
    return a ? a : b;
  int ca = categoryOf(a), cb = categoryOf(b);
  if (ca != cb)
    return ca > cb ? a : b;
  Builder builder(a.getContext());
  unsigned wa = a.getIntOrFloatBitWidth(), wb = b.getIntOrFloatBitWidth();
  if (ca == 2) {
    if (wa == wb)
      return builder.getF32Type(); // f16 and bf16
    return wa > wb ? a : b;
  }
  bool ua = a.isUnsignedInteger(), ub = b.isUnsignedInteger();
  if (ua == ub)
    return wa > wb ? a : b;
  // u8 and a signed type: one that holds both.
  unsigned wu = ua ? wa : wb, ws = ua ? wb : wa;
  return builder.getIntegerType(std::min(64u, ws > wu ? ws : 2 * wu));
}

Type Node::promoted(ArrayRef<StringRef> names) {
  Type whole, single, number;
  for (StringRef name : names) {
    const Argument *found = argument(name);
    if (!found)
      continue;
    if (found->form == Form::Tensor) {
      Value storage = ref(name);
      if (!storage)
        return {};
      auto type = mlir::cast<RefType>(storage.getType());
      Type &to = type.getShape().empty() ? single : whole;
      Type element = type.getElementType();
      // What is read is cast there.
      if (RankedTensorType made = resultType(0);
          translator_.mode.isAutocast && made &&
          isa<FloatType>(made.getElementType()) && isa<FloatType>(element) &&
          !element.isF64())
        element = made.getElementType();
      to = promote(to, element);
    } else {
      Builder b(context());
      number =
          promote(number, found->form == Form::Float  ? Type(b.getF32Type())
                          : found->form == Form::Bool ? Type(b.getI1Type())
                                                      : Type(b.getI64Type()));
    }
  }
  auto combine = [](Type higher, Type lower) {
    if (!higher || !lower)
      return higher ? higher : lower;
    return categoryOf(higher) >= categoryOf(lower) ? higher
                                                   : promote(higher, lower);
  };
  return combine(whole, combine(single, number));
}

/// Floats of at most 16 bits.
static bool isNarrow(Type type) {
  return isa<FloatType>(type) && type.getIntOrFloatBitWidth() <= 16;
}

double Node::rounded(double number, Type element) {
  if (!isNarrow(element))
    return number;
  // From a double there are two roundings, as in PyTorch.
  APFloat value(static_cast<float>(number));
  bool loses = false;
  value.convert(mlir::cast<FloatType>(element).getFloatSemantics(),
                APFloat::rmNearestTiesToEven, &loses);
  return value.convertToDouble();
}

bool Node::losesBits(StringRef name, Type narrow) {
  if (!isTensor(name)) {
    double given = number(name, 0);
    return !std::isnan(given) && rounded(given, narrow) != given;
  }
  Value storage = ref(name);
  if (!storage)
    return false;
  auto type = mlir::cast<RefType>(storage.getType());
  auto element = dyn_cast<FloatType>(type.getElementType());
  return type.getShape().empty() && element && element.getWidth() > 16;
}

SmallVector<Expr> Node::together(ArrayRef<StringRef> names, Type &narrow,
                                 bool isExact) {
  if (!narrow)
    narrow = promoted(names);
  if (!narrow)
    return {};
  Type type = narrow;
  if (isExact && isNarrow(narrow))
    for (StringRef name : names)
      if (has(name) && losesBits(name, narrow))
        type = builder().getF32Type();
  SmallVector<Expr> list;
  for (StringRef name : names) {
    if (!has(name))
      list.emplace_back();
    else
      list.push_back(isTensor(name) ? cast(value(name), type)
                                    : scalar(name, type));
    if (has(name) && !list.back())
      failed_ = true;
  }
  return failed_ ? SmallVector<Expr>() : list;
}
