//===- OpsGraph.cpp - ONNX: constants, shapes and casts -------------------===//
#include "compiler/import/onnx/Known.h"
#include "compiler/import/onnx/Narrow.h"
#include "compiler/import/onnx/Translator.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::onnx;

static LogicalResult translateIdentity(Node &node) {
  node.result(0, node.datum(0));
  return success();
}

static LogicalResult translateConstant(Node &node) {
  OpBuilder &b = node.builder();
  TensorPtr data;
  auto list = [&](Type element, auto values) {
    auto type =
        RankedTensorType::get({static_cast<int64_t>(values.size())}, element);
    data = dataOf(DenseElementsAttr::get(type, ArrayRef(values)));
  };
  auto one = [&](mlir::Attribute value) {
    auto type = RankedTensorType::get({}, cast<TypedAttr>(value).getType());
    data = dataOf(DenseElementsAttr::get(type, value));
  };
  if (node.hasAttribute("value")) {
    data = node.tensor("value");
  } else if (node.hasAttribute("value_float")) {
    one(b.getF32FloatAttr(node.number("value_float", 0)));
  } else if (node.hasAttribute("value_int")) {
    one(b.getI64IntegerAttr(node.integer("value_int", 0)));
  } else if (node.hasAttribute("value_floats")) {
    SmallVector<float> values;
    for (double number : node.numbers("value_floats"))
      values.push_back(static_cast<float>(number));
    list(b.getF32Type(), values);
  } else if (node.hasAttribute("value_ints")) {
    list(b.getI64Type(), node.integers("value_ints"));
  } else if (node.hasAttribute("value_string") ||
             node.hasAttribute("value_strings")) {
    auto made = std::make_shared<TensorData>();
    made->kind = ElementKind::String;
    if (node.hasAttribute("value_string")) {
      made->strings = {node.text("value_string", "")};
    } else {
      for (std::string &text : node.texts("value_strings"))
        made->strings.push_back(std::move(text));
      made->shape = {static_cast<int64_t>(made->strings.size())};
    }
    data = made;
  } else if (node.hasAttribute("sparse_value")) {
    return node.unsupported("a sparse tensor");
  } else {
    return node.error("expected an attribute with the value");
  }
  node.result(0, datumOf(data));
  return success();
}

static LogicalResult translateConstantOfShape(Node &node) {
  TensorPtr value = node.tensor("value");
  if (value && value->elements() != 1)
    return node.error("expected 'value' to be one number, but got " +
                      Twine(value->elements()));
  auto shape = node.needInts(0, "the shape");
  if (failed(shape))
    return failure();
  if (llvm::any_of(*shape, [](int64_t size) { return size < 0; }))
    return node.error("expected sizes of at least 0");
  Type element = value ? node.elementTypeOf(static_cast<int64_t>(value->kind))
                       : node.builder().getF32Type();
  if (!element)
    return failure();
  auto type = RankedTensorType::get(*shape, element);
  bool isEmpty = llvm::is_contained(*shape, 0);
  if (!isEmpty && !isTensorShape(*shape))
    return node.error("the tensor is too large");
  DenseElementsAttr filled;
  if (value) {
    TensorData scalar = *value;
    scalar.shape.clear();
    DenseElementsAttr one = attributeOf(scalar, node.context());
    if (auto floats = dyn_cast<FloatType>(element))
      filled = DenseElementsAttr::get(type, *one.value_begin<APFloat>());
    else if (element.isInteger(1))
      filled = DenseElementsAttr::get(type, *one.value_begin<bool>());
    else
      filled = DenseElementsAttr::get(type, *one.value_begin<APInt>());
  } else {
    filled = DenseElementsAttr::get(type, 0.0f);
  }
  node.result(0, filled);
  return success();
}

static LogicalResult translateShape(Node &node) {
  RankedTensorType type = node.type(0);
  if (!type)
    return node.unsupported("the shape of what is no dense tensor");
  int64_t rank = type.getRank();
  auto bound = [&](int64_t i) {
    return std::clamp<int64_t>(i < 0 ? i + rank : i, 0, rank);
  };
  int64_t start = bound(node.integer("start", 0));
  int64_t end = bound(node.integer("end", rank));
  node.result(0, node.ints(type.getShape().slice(
                     start, std::max<int64_t>(end - start, 0))));
  return success();
}

static LogicalResult translateSize(Node &node) {
  RankedTensorType type = node.type(0);
  if (!type)
    return node.unsupported("the size of what is no dense tensor");
  auto scalar = RankedTensorType::get({}, node.builder().getI64Type());
  node.result(0, DenseElementsAttr::get(scalar, type.getNumElements()));
  return success();
}

/// What a type of 8-bit floats holds, for what is larger: infinities too.
static Expr saturated(const Expr &x, Type element) {
  auto floats = dyn_cast<FloatType>(element);
  if (!floats || floats.getWidth() != 8)
    return x;
  double most =
      APFloat::getLargest(floats.getFloatSemantics()).convertToDouble();
  return maximum(minimum(x, x.like(most)), x.like(-most));
}

static LogicalResult castTo(Node &node, Type element) {
  if (!element || !node.has(0))
    return element ? node.error("the operand is missing") : failure();
  if (node.type(0) && node.elementType(0) == element) {
    Datum same = node.datum(0);
    same.kind = ElementKind::Undefined;
    node.result(0, same);
    return success();
  }
  Value x = node.operand(0);
  if (!x)
    return failure();
  auto type = cast<RankedTensorType>(x.getType()).clone(element);
  if (node.integer("saturate", 1) != 0 && isa<FloatType>(node.elementType(0)) &&
      node.elementType(0).getIntOrFloatBitWidth() > 8)
    x = saturated(node.wrap(x), element);
  node.result(0, node.make("cast", x, {}, type));
  return success();
}

/// The same to a type of ONNX's, which may be a narrow one.
static LogicalResult castToKind(Node &node, int64_t number) {
  auto kind = static_cast<ElementKind>(number);
  if (!isNarrow(kind))
    return castTo(node, node.elementTypeOf(number));
  Datum made = node.datum(0);
  if (made.kind != kind)
    made = narrowed(node, node.expr(0), kind, node.integer("saturate", 1) != 0)
               .value;
  if (!made)
    return node.error("the operand is missing");
  made.kind = kind;
  node.result(0, made);
  return success();
}

static LogicalResult translateCast(Node &node) {
  // The second is of float8e8m0 alone, which is refused.
  node.ignore({"saturate", "round_mode"});
  if (node.opset() < 6) {
    // By name: "FLOAT".
    std::string name = StringRef(node.text("to", "")).lower();
    for (int kind = 1; kind <= static_cast<int>(ElementKind::BF16); ++kind)
      if (spelling(static_cast<ElementKind>(kind)) == name)
        return castTo(node, node.elementTypeOf(kind));
    return node.error("unknown type '" + name + "'");
  }
  if (!node.hasAttribute("to"))
    return node.error("expected an attribute 'to'");
  return castToKind(node, node.integer("to", 0));
}

static LogicalResult translateCastLike(Node &node) {
  node.ignore({"saturate", "round_mode"});
  if (!node.type(1))
    return node.unsupported("a cast to the type of what is no dense tensor");
  if (isNarrow(node.datum(1).kind))
    return castToKind(node, static_cast<int64_t>(node.datum(1).kind));
  return castTo(node, node.elementType(1));
}

/// The same bits as another type of the same width.
static LogicalResult translateBitCast(Node &node) {
  if (!node.hasAttribute("to"))
    return node.error("expected an attribute 'to'");
  Type element = node.elementTypeOf(node.integer("to", 0));
  Value x = node.operand(0);
  if (!element || !x)
    return failure();
  // A bool is a byte of 0 or 1.
  if (element.isInteger(1) != node.elementType(0).isInteger(1)) {
    Type other = element.isInteger(1) ? node.elementType(0) : element;
    if (!isa<IntegerType>(other) || other.getIntOrFloatBitWidth() != 8)
      return node.unsupported("bools as anything but integers of 8 bits");
    return castTo(node, element);
  }
  auto type = cast<RankedTensorType>(x.getType()).clone(element);
  node.result(0, x.getType() == type ? x : node.make("bitcast", x, {}, type));
  return success();
}

void onnx::addGraphOps(OpTable &table) {
  table.add("Identity", translateIdentity);
  table.add("Constant", translateConstant);
  table.add("ConstantOfShape", translateConstantOfShape);
  table.add("Shape", translateShape);
  table.add("Size", translateSize);
  table.add("Cast", translateCast);
  table.add("CastLike", translateCastLike);
  table.add("BitCast", translateBitCast, 26);
}
