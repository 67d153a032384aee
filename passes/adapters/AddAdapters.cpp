//===- AddAdapters.cpp - low-rank adapters beside frozen weights ----------===//
//
// y = x w^T becomes y = x w^T + scale * (x a^T) b^T, where a and b are trained
// and no other parameter is, but those that are trained whole (a new head). b
// begins as zeros, so that a model begins as what it was; a as PyTorch's and
// PEFT's linear layers do.
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/adapters/LoraSpec.h"
#include "passes/common/WeightProducts.h"

#include "ir/Expr.h"
#include "ir/Keys.h"
#include "ir/Ops.h"
#include "ir/Signature.h"
#include "ir/UpdateAttributes.h"
#include "runtime/artifact/Adapters.h"

#include "llvm/Support/Regex.h"

#include <cmath>

namespace tandem {
#define GEN_PASS_DEF_ADDADAPTERS
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;

namespace {

class AdapterBuilder {
public:
  AdapterBuilder(func::FuncOp graph, LoraSpec spec)
      : graph(graph), spec(std::move(spec)), builder(graph.getContext()) {}

  LogicalResult run();

private:
  LogicalResult findTargets();
  bool isWhole(RoleAttr role) const {
    return role.getKind() == RoleKind::Param && !spec.whole.empty() &&
           llvm::Regex(spec.whole).match(role.getName().getValue());
  }
  /// Leaves the parameters that are trained whole as the others without a
  /// gradient.
  LogicalResult freezeTheRest();
  /// An argument behind the others.
  Value addParam(const std::string &name, ArrayRef<int64_t> shape, Type element,
                 DictionaryAttr init, bool isTrained, Location loc);
  DictionaryAttr constant(double value);
  LogicalResult adapt(const Weight &target);

  func::FuncOp graph;
  LoraSpec spec;
  OpBuilder builder;
  SmallVector<Weight> targets;
};

} // namespace

LogicalResult AdapterBuilder::findTargets() {
  llvm::Regex expression(spec.weights);
  std::string known;
  bool isWrong = false;
  for (Weight &weight : weightsOfProducts(graph)) {
    if (isWhole(weight.role))
      continue;
    StringRef name = weight.role.getName().getValue();
    known += (known.empty() ? "'" : ", '") + name.str() + "'";
    if (!expression.match(name))
      continue;
    if (Operation *reader = weight.otherReader) {
      isWrong = true;
      mlir::emitError(reader->getLoc())
          << "--lora: '" << name << "' is read by '" << reader->getName()
          << "' besides its products, which an adapter would not change: "
             "expected the expression to leave it out";
      continue;
    }
    targets.push_back(std::move(weight));
  }
  if (targets.empty() && !isWrong)
    return graph.emitError()
           << "--lora: '" << spec.weights
           << "' matches no weight that is the right factor of a product; "
           << (known.empty() ? "there is none" : "there are " + known);
  return failure(isWrong);
}

DictionaryAttr AdapterBuilder::constant(double value) {
  return builder.getDictionaryAttr(
      {builder.getNamedAttr(key::kKind, builder.getStringAttr("constant")),
       builder.getNamedAttr(key::kValue, builder.getF64FloatAttr(value))});
}

Value AdapterBuilder::addParam(const std::string &name, ArrayRef<int64_t> shape,
                               Type element, DictionaryAttr init,
                               bool isTrained, Location loc) {
  auto role = RoleAttr::get(builder.getContext(), RoleKind::Param, name);
  role = role.with(RoleAttr::kInit, init);
  if (isTrained)
    role = role.withUnit(RoleAttr::kRequiresGrad);
  unsigned index = graph.getNumArguments();
  (void)graph.insertArgument(index, RankedTensorType::get(shape, element), {},
                             loc);
  setRoleOfArgument(graph, index, role);
  return graph.getArgument(index);
}

LogicalResult AdapterBuilder::adapt(const Weight &target) {
  auto type = cast<RankedTensorType>(target.argument.getType());
  Type element = type.getElementType();
  Location loc = target.argument.getLoc();
  bool isTransposed = target.products.front().isTransposed;
  for (const WeightProduct &product : target.products)
    if (product.isTransposed != isTransposed)
      return product.op->emitError()
             << "'" << target.role.getName().getValue()
             << "' is the right factor of one product as it lies and of "
                "another one transposed, which has no adapter";
  int64_t in = type.getDimSize(isTransposed ? 0 : 1),
          out = type.getDimSize(isTransposed ? 1 : 0);
  auto names =
      artifact::adapterNames(target.role.getName().getValue(), isTransposed);
  for (const std::string &name : {names.a, names.b, names.scale})
    if (findValue(graph, name))
      return mlir::emitError(loc) << "the model has a value '" << name
                                  << "', which --lora would make";
  double bound = 1 / std::sqrt(double(std::max<int64_t>(in, 1)));
  auto uniform = builder.getDictionaryAttr(
      {builder.getNamedAttr(key::kKind, builder.getStringAttr("uniform")),
       builder.getNamedAttr(key::kLow, builder.getF64FloatAttr(-bound)),
       builder.getNamedAttr(key::kHigh, builder.getF64FloatAttr(bound))});
  Value a = addParam(names.a, {spec.rank, in}, element, uniform, true, loc),
        b = addParam(names.b, {out, spec.rank}, element, constant(0), true,
                     loc),
        scale = addParam(names.scale, {}, element,
                         constant(spec.alpha / double(spec.rank)), false, loc);
  for (const WeightProduct &product : target.products) {
    Operation *op = product.op;
    builder.setInsertionPointAfter(op);
    Operation *first = LinearOp::create(
        builder, op->getLoc(), op->getOperand(0), a, Value(), StringAttr());
    Operation *second = LinearOp::create(
        builder, op->getLoc(), first->getResult(0), b, Value(), StringAttr());
    Expr y(builder, op->getLoc(), op->getResult(0));
    Expr more =
        y.wrap(second->getResult(0)) * y.wrap(scale).broadcastTo(y.shape(), {});
    Expr sum = y + more;
    // As the product: tags, and what it is computed in.
    for (Operation *made = op->getNextNode(); made;
         made = made->getNextNode()) {
      for (NamedAttribute attribute : op->getDiscardableAttrs())
        made->setDiscardableAttr(attribute.getName(), attribute.getValue());
      if (made == sum.value.getDefiningOp())
        break;
    }
    op->getResult(0).replaceAllUsesExcept(sum, sum.value.getDefiningOp());
  }
  return success();
}

LogicalResult AdapterBuilder::freezeTheRest() {
  bool isFound = spec.whole.empty();
  std::string known;
  for (BlockArgument argument : graph.getArguments()) {
    unsigned index = argument.getArgNumber();
    RoleAttr role = roleOfArgument(graph, index);
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    if (role.getKind() != RoleKind::Param)
      continue;
    bool isFloat = type && isa<FloatType>(type.getElementType());
    if (isFloat && isWhole(role)) {
      isFound = true;
      setRoleOfArgument(graph, index, role.withUnit(RoleAttr::kRequiresGrad));
      continue;
    }
    if (isFloat)
      known +=
          (known.empty() ? "'" : ", '") + role.getName().getValue().str() + "'";
    setRoleOfArgument(
        graph, index,
        role.without(RoleAttr::kRequiresGrad).without(RoleAttr::kGradType));
  }
  if (isFound)
    return success();
  return graph.emitError() << "--lora: modules_to_save '" << spec.whole
                           << "' matches no parameter of floats; there are "
                           << known;
}

LogicalResult AdapterBuilder::run() {
  if (failed(findTargets()) || failed(freezeTheRest()))
    return failure();
  for (const Weight &target : targets)
    if (failed(adapt(target)))
      return failure();
  return success();
}

namespace {

struct AddAdapters : tandem::impl::AddAdaptersBase<AddAdapters> {
  void runOnOperation() final {
    ModuleOp module = getOperation();
    auto text = module->getAttrOfType<StringAttr>(kLoraAttr);
    auto graph = module.lookupSymbol<func::FuncOp>("graph");
    if (!text || !graph)
      return markAllAnalysesPreserved();
    module->removeAttr(kLoraAttr);
    std::string error;
    auto spec = parseLoraSpec(text.getValue(), error);
    if (!spec) {
      module.emitError() << "'" << kLoraAttr << "': " << error;
      return signalPassFailure();
    }
    if (failed(AdapterBuilder(graph, *spec).run()))
      signalPassFailure();
  }
};

} // namespace
