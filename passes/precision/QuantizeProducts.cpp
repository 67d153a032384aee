//===- QuantizeProducts.cpp - products of f8 values -----------------------===//
//
// y = x op(w) becomes a custom_vjp that multiplies what is left of x and w in
// f8E4M3FN, and whose backward multiplies that by what is left of the gradient
// in f8E5M2. Each of the three is scaled before it is rounded:
//
//   scale = largest of the type / max(history) / 2^margin,   1 if that max is 0
//   q = f8(clip(x * scale)),   y = (q_x op(q_w)) / scale_x / scale_w
//
// where the history has the largest magnitudes of the calls before, the newest
// first ("delayed scaling": Micikevicius and others, "FP8 Formats for Deep
// Learning", 2022, and NVIDIA's Transformer Engine). Histories are states;
// those of x and w are written by the forward, that of the gradient by the
// backward. What is infinite or NaN stays that, so that who scales the loss
// sees it, and leaves no trace in the history.
//
//===----------------------------------------------------------------------===//
#include "passes/precision/QuantizeProducts.h"
#include "passes/Passes.h"
#include "passes/common/WeightProducts.h"
#include "passes/precision/Fp8Spec.h"
#include "passes/target/ByteProducts.h"

#include "ir/Autocast.h"
#include "ir/Expr.h"
#include "ir/Keys.h"
#include "ir/Ops.h"
#include "ir/Signature.h"
#include "ir/Where.h"

#include "llvm/Support/Regex.h"

#include <cmath>

namespace tandem {
#define GEN_PASS_DEF_QUANTIZEPRODUCTS
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;

namespace {

/// A storage type, and its largest number.
struct Format {
  FloatType type;
  double largest;
};

/// A tensor in f8, and the number that divides it to what it was.
struct Quantized {
  Expr bytes, scale;
};

/// The formulas, of values of f32.
struct Formulas {
  Format factor, gradient;
  int64_t margin;

  explicit Formulas(OpBuilder &b, int64_t margin)
      : factor{Float8E4M3FNType::get(b.getContext()), 448},
        gradient{Float8E5M2Type::get(b.getContext()), 57344}, margin(margin) {}

  Expr scaleOf(const Expr &history, const Format &format) const;
  Quantized quantized(const Expr &x, const Expr &history,
                      const Format &format) const;
  /// `history` with the largest magnitude of `x` in front.
  static Expr recorded(const Expr &history, const Expr &x);
  static Expr product(const Quantized &a, const Quantized &b, bool transposesA,
                      bool transposesB);
};

} // namespace

static Expr isFinite(const Expr &x) {
  return compare(ComparePredicate::lt, abs(x), x.like(INFINITY));
}

// A scale has a reciprocal that is neither infinite nor subnormal.
Expr Formulas::scaleOf(const Expr &history, const Format &format) const {
  Expr amax = history.reduceMax({0});
  Expr scale = amax.like(format.largest) / amax * std::ldexp(1.0, -margin);
  scale = minimum(maximum(scale, scale.like(0x1p-126)), scale.like(0x1p126));
  return select(compare(ComparePredicate::gt, amax, amax.like(0)), scale,
                scale.like(1));
}

Quantized Formulas::quantized(const Expr &x, const Expr &history,
                              const Format &format) const {
  Expr scale = scaleOf(history, format);
  Expr clipped =
      maximum(x * scale.broadcastTo(x.shape(), {}), x.like(-format.largest));
  clipped = minimum(clipped, x.like(format.largest));
  return {select(isFinite(x), clipped, x).cast(format.type), scale};
}

Expr Formulas::recorded(const Expr &history, const Expr &x) {
  OpBuilder &b = *history.builder;
  SmallVector<int64_t> all = llvm::to_vector(llvm::seq<int64_t>(x.rank()));
  auto scalar = RankedTensorType::get({}, history.type().getElementType());
  Expr amax = history.wrap(ConstantOp::splat(b, history.loc, scalar, 0));
  if (x.type().getNumElements() != 0)
    amax = abs(x).reduceMax(all);
  Expr moved = amax.reshape({1});
  if (int64_t length = history.dim(0); length > 1) {
    Value older = SliceOp::create(b, history.loc, history, {0}, {length - 1},
                                  ArrayRef<int64_t>{1});
    moved = history.wrap(
        ConcatOp::create(b, history.loc, ValueRange{moved, older}, 0));
  }
  return select(isFinite(amax).broadcastTo(history.shape(), {}), moved,
                history);
}

// Factors of f8 have fewer digits than tf32 keeps: their products are exact in
// f32 on tensor cores, too, which multiply the bytes themselves where they can
// (passes/target/ByteProducts.h).
Expr Formulas::product(const Quantized &a, const Quantized &b, bool transposesA,
                       bool transposesB) {
  OpBuilder &builder = *a.bytes.builder;
  Type f32 = builder.getF32Type();
  Expr y = a.bytes.wrap(MatmulOp::create(
      builder, a.bytes.loc, a.bytes.cast(f32), b.bytes.cast(f32), transposesA,
      transposesB, builder.getStringAttr("tf32")));
  // By the lesser first: what is between is no larger than sums and result.
  Expr first = 1.0 / a.scale, second = 1.0 / b.scale;
  return y * minimum(first, second).broadcastTo(y.shape(), {}) *
         maximum(first, second).broadcastTo(y.shape(), {});
}

/// What the target multiplies f8 values in.
static std::string multiplierText(func::FuncOp graph) {
  TargetAttr target = TargetAttr::of(graph);
  if (hasFloat8Products(graph))
    return "the target '" + target.getArch().str() +
           "' multiplies f8 values by tensor cores";
  std::string which =
      target ? (" '" + stringifyTargetKind(target.getKind()) + "'").str() : "";
  return "the target" + which +
         " multiplies f8 values in f32: exact, but slower than without --fp8";
}

namespace {

class ProductQuantizer {
public:
  ProductQuantizer(func::FuncOp graph, const Fp8Spec &spec,
                   ProductObserver observer)
      : graph(graph), spec(spec), observer(observer),
        builder(graph.getContext()), formulas(builder, spec.margin),
        where(multiplierText(graph)) {}

  LogicalResult run();

private:
  LogicalResult findTargets();
  LogicalResult check(const Weight &weight);
  /// The history of one tensor of a product of `weight`, as an argument of the
  /// graph; null, with an error, if the model has a value of its name.
  BlockArgument addHistory(const Weight &weight, StringRef of, size_t number);
  LogicalResult replace(const Weight &weight, const WeightProduct &product,
                        size_t number);
  /// Makes the op's regions; `history` is the state of the gradient.
  CustomVjpOp makeOp(Operation *op, Value x, Value w, BlockArgument ofX,
                     BlockArgument ofW, BlockArgument ofGradient);
  void addUpdate(BlockArgument history, Value value, Operation *by);

  func::FuncOp graph;
  const Fp8Spec &spec;
  ProductObserver observer;
  OpBuilder builder;
  Formulas formulas;
  std::string where; ///< what f8 values are multiplied in
  SmallVector<Weight> targets;
};

} // namespace

LogicalResult ProductQuantizer::check(const Weight &weight) {
  StringRef name = weight.role.getName().getValue();
  for (const WeightProduct &product : weight.products) {
    Operation *op = product.op;
    auto refuse = [&](const Twine &what) {
      return mlir::emitError(op->getLoc())
             << "--fp8: a product of '" << name << "' " << what
             << ": expected the expression to leave it out";
    };
    if (op->getBlock() != &graph.getBody().front())
      return refuse("stands in a branch or a loop, where no history is "
                    "written");
    if (op->hasAttr(kComputeTypeAttr))
      return refuse("has a type by --precision");
    if (!isMixable(getElementTypeOrSelf(op->getOperand(0))))
      return refuse("is of f64");
  }
  return success();
}

LogicalResult ProductQuantizer::findTargets() {
  llvm::Regex expression(spec.weights);
  std::string known;
  bool isWrong = false;
  for (Weight &weight : weightsOfProducts(graph)) {
    StringRef name = weight.role.getName().getValue();
    known += (known.empty() ? "'" : ", '") + name.str() + "'";
    if (!expression.match(name))
      continue;
    isWrong |= failed(check(weight));
    targets.push_back(std::move(weight));
  }
  if (targets.empty())
    return graph.emitError()
           << "--fp8: '" << spec.weights
           << "' matches no weight that is the right factor of a product; "
           << (known.empty() ? "there is none" : "there are " + known);
  return failure(isWrong);
}

BlockArgument ProductQuantizer::addHistory(const Weight &weight, StringRef of,
                                           size_t number) {
  std::string name = ("fp8." + of).str();
  if (number > 0)
    name += "." + std::to_string(number);
  name += ":" + weight.role.getName().str();
  Location loc = weight.argument.getLoc();
  if (findValue(graph, name)) {
    mlir::emitError(loc) << "the model has a value '" << name
                         << "', which --fp8 would make";
    return {};
  }
  auto zeros = builder.getDictionaryAttr(
      {builder.getNamedAttr(key::kKind, builder.getStringAttr("constant")),
       builder.getNamedAttr(key::kValue, builder.getF64FloatAttr(0))});
  unsigned index = graph.getNumArguments();
  (void)graph.insertArgument(
      index, RankedTensorType::get({spec.historyLength}, builder.getF32Type()),
      {}, loc);
  setRoleOfArgument(graph, index,
                    RoleAttr::get(builder.getContext(), RoleKind::State, name)
                        .with(RoleAttr::kInit, zeros));
  return graph.getArgument(index);
}

void ProductQuantizer::addUpdate(BlockArgument history, Value value,
                                 Operation *by) {
  Operation *terminator = graph.getBody().front().getTerminator();
  terminator->insertOperands(terminator->getNumOperands(), value);
  unsigned index = graph.getNumResults();
  (void)graph.insertResult(index, value.getType(), {});
  RoleAttr state = roleOfArgument(graph, history.getArgNumber());
  setRoleOfResult(
      graph, index,
      RoleAttr::get(builder.getContext(), RoleKind::Update, state.getName())
          .with(RoleAttr::kWhere, builder.getStringAttr(whereIs(by))));
}

CustomVjpOp ProductQuantizer::makeOp(Operation *op, Value x, Value w,
                                     BlockArgument ofX, BlockArgument ofW,
                                     BlockArgument ofGradient) {
  auto matmul = dyn_cast<MatmulOp>(op);
  bool transposesW = !matmul || matmul.getTransposeRhs();
  Type f32 = builder.getF32Type();
  Location loc = op->getLoc();
  OpBuilder::InsertionGuard guard(builder);
  Region forward, backward;
  Block *block = builder.createBlock(&forward);
  auto argument = [&](Type type) {
    return Expr(builder, loc, block->addArgument(type, loc));
  };
  Expr xIn = argument(x.getType()), wIn = argument(w.getType());
  Expr xHistory = argument(ofX.getType()), wHistory = argument(ofW.getType());
  Expr xFull = xIn.cast(f32), wFull = wIn.cast(f32);
  Quantized xq = formulas.quantized(xFull, xHistory, formulas.factor);
  Quantized wq = formulas.quantized(wFull, wHistory, formulas.factor);
  Expr y = Formulas::product(xq, wq, false, transposesW)
               .cast(xIn.type().getElementType());
  SmallVector<Value> yielded{y,
                             Formulas::recorded(xHistory, xFull),
                             Formulas::recorded(wHistory, wFull),
                             xq.bytes,
                             xq.scale,
                             wq.bytes,
                             wq.scale};
  YieldOp::create(builder, loc, yielded);
  SmallVector<Type> results(ValueRange(yielded).getTypes());

  block = builder.createBlock(&backward);
  Quantized xSaved{argument(results[3]), argument(results[4])};
  Quantized wSaved{argument(results[5]), argument(results[6])};
  Expr dy = argument(results[0]).cast(f32);
  Expr history = argument(ofGradient.getType());
  Quantized dq = formulas.quantized(dy, history, formulas.gradient);
  Expr dx = Formulas::product(dq, wSaved, false, !transposesW);
  Expr dw = transposesW ? Formulas::product(dq, xSaved, true, false)
                        : Formulas::product(xSaved, dq, true, false);
  YieldOp::create(builder, loc,
                  ValueRange{dx.cast(xIn.type().getElementType()),
                             dw.cast(wIn.type().getElementType()),
                             Formulas::recorded(history, dy)});

  builder.setInsertionPoint(op);
  OperationState state(loc, CustomVjpOp::getOperationName());
  auto &properties = state.getOrAddProperties<CustomVjpOp::Properties>();
  properties.operandSegmentSizes = {4, 0};
  properties.setName(builder.getStringAttr("fp8"));
  properties.setFirstOrder(builder.getUnitAttr());
  properties.setOutputs(builder.getI64IntegerAttr(1));
  properties.setSaved(builder.getI64IntegerAttr(4));
  properties.setDifferentiable(builder.getI64IntegerAttr(2));
  StringAttr name = roleOfArgument(graph, ofGradient.getArgNumber()).getName();
  properties.setStates(builder.getArrayAttr(builder.getDictionaryAttr(
      {builder.getNamedAttr(key::kName, name),
       builder.getNamedAttr(key::kWritten, builder.getUnitAttr())})));
  for (NamedAttribute attribute : op->getDiscardableAttrs())
    if (attribute.getName() != kAutocastAttr)
      state.addAttribute(attribute.getName(), attribute.getValue());
  state.addOperands({x, w, ofX, ofW});
  state.addTypes(results);
  state.addRegion()->takeBody(forward);
  state.addRegion()->takeBody(backward);
  return cast<CustomVjpOp>(builder.create(state));
}

LogicalResult ProductQuantizer::replace(const Weight &weight,
                                        const WeightProduct &product,
                                        size_t number) {
  Operation *op = product.op;
  BlockArgument ofX = addHistory(weight, "x", number),
                ofW = addHistory(weight, "w", number),
                ofGradient = addHistory(weight, "grad", number);
  if (!ofX || !ofW || !ofGradient)
    return failure();
  builder.setInsertionPoint(op);
  Expr x(builder, op->getLoc(), op->getOperand(0)),
      result(builder, op->getLoc(), op->getResult(0));
  int64_t columns = x.dim(x.rank() - 1), rows = 1;
  for (int64_t size : x.shape().drop_back())
    rows *= size;
  CustomVjpOp made = makeOp(op, x.reshape({rows, columns}), product.factor, ofX,
                            ofW, ofGradient);
  builder.setInsertionPointAfter(made);
  Expr y = x.wrap(made.getResult(0));
  if (auto linear = dyn_cast<LinearOp>(op); linear && linear.getBias())
    y = y + x.wrap(linear.getBias()).broadcastTo(y.shape(), {1});
  y = y.reshape(result.shape());
  addUpdate(ofX, made.getResult(1), made);
  addUpdate(ofW, made.getResult(2), made);
  if (observer)
    observer(op, made, where);
  for (Operation *other = made->getNextNode(); other != op;
       other = other->getNextNode())
    for (NamedAttribute attribute : op->getDiscardableAttrs())
      other->setDiscardableAttr(attribute.getName(), attribute.getValue());
  op->getResult(0).replaceAllUsesWith(y);
  op->erase();
  return success();
}

LogicalResult ProductQuantizer::run() {
  if (failed(findTargets()))
    return failure();
  size_t products = 0;
  for (Weight &weight : targets) {
    llvm::sort(weight.products,
               [](const WeightProduct &a, const WeightProduct &b) {
                 return a.op->isBeforeInBlock(b.op);
               });
    for (auto [number, product] : llvm::enumerate(weight.products))
      if (failed(replace(weight, product, number)))
        return failure();
    products += weight.products.size();
  }
  graph.emitRemark() << "--fp8: " << products
                     << (products == 1 ? " product has" : " products have")
                     << " factors of f8E4M3FN and gradients of f8E5M2; "
                     << where;
  return success();
}

LogicalResult tandem::quantizeProducts(ModuleOp module,
                                       ProductObserver observer) {
  auto text = module->getAttrOfType<StringAttr>(kFp8Attr);
  auto graph = module.lookupSymbol<func::FuncOp>("graph");
  if (!text || !graph)
    return success();
  module->removeAttr(kFp8Attr);
  std::string error;
  auto spec = parseFp8Spec(text.getValue(), error);
  if (!spec)
    return module.emitError() << "'" << kFp8Attr << "': " << error;
  return ProductQuantizer(graph, *spec, observer).run();
}

namespace {

struct QuantizeProducts : tandem::impl::QuantizeProductsBase<QuantizeProducts> {
  void runOnOperation() final {
    if (failed(quantizeProducts(getOperation())))
      signalPassFailure();
  }
};

} // namespace
