//===- Loss.cpp - a loss for a module that has none -----------------------===//
//
// `--loss=KIND:OUTPUT,LABELS`: OUTPUT is a result, LABELS an argument that is
// made here or is there already. Classes are the last dimension, as JAX has
// them.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/Expressions.h"
#include "compiler/import/Losses.h"
#include "compiler/import/stablehlo/ModuleTranslator.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::stablehlo;

Value ModuleTranslator::addLoss(ArrayRef<Value> made) {
  std::string where = "--loss=" + options.loss;
  auto wrong = [&](const Twine &text) {
    misuse(where + ": " + text);
    return Value();
  };
  auto spec = parseLoss(options.loss);
  if (!spec) {
    misuse(spec.status().message());
    return {};
  }
  auto at = llvm::find(results, spec->output);
  if (at == results.end())
    return wrong("the module has no result '" + spec->output +
                 "'; its results are " + listed(results));
  Location loc = placeOfName("loss");
  Expr x(builder, loc, made[at - results.begin()]);
  auto operands = lossOperands(*spec, x);
  if (!operands)
    return wrong(operands.status().message());
  // Classes are where they are in JAX, not in dimension 1.
  RankedTensorType type = x.type();
  int64_t classes = operands->classes ? x.shape().back() : 0;
  if (classes)
    type = RankedTensorType::get(x.shape().drop_back(), builder.getI64Type());
  Value labels;
  for (auto [i, argument] : llvm::enumerate(arguments))
    if (argument.name == spec->labels)
      labels = func.getArgument(i);
  if (labels) {
    Expr given(builder, loc, labels);
    if (given.shape() != type.getShape() ||
        isa<IntegerType>(given.type().getElementType()) != (classes != 0))
      return wrong("expected the argument '" + spec->labels +
                   "' to be of the loss's type");
    labels = given.cast(type.getElementType());
  } else {
    auto role =
        RoleAttr::get(builder.getContext(), RoleKind::Input, spec->labels);
    if (classes)
      role = role.with(RoleAttr::kHigh, builder.getI64IntegerAttr(classes));
    labels = addInput(type, role, placeOfName(spec->labels));
  }
  auto loss = buildLoss(builder, loc, *spec, x, labels);
  if (succeeded(loss))
    return *loss;
  ++problems;
  return {};
}
