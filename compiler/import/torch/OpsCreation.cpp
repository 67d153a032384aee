//===- OpsCreation.cpp - ATen: tensors of nothing -------------------------===//
//
// The archive says the type of what is made, so that default types need no
// knowledge here.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/torch/Node.h"
#include "ir/Ops.h"

#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::torch;
using List = Node::List;

/// What storage holds is known before anything is written to it.
static LogicalResult filled(Node &node) {
  RankedTensorType type = node.resultType(0);
  if (!type)
    return node.unsupported("a tensor of a size that is not known");
  StringRef op = node.op();
  StringRef argument = op == "scalar_tensor" ? "s" : "fill_value";
  if (op.contains("full") || op == "scalar_tensor") {
    Expr one = node.scalar(argument, type.getElementType());
    return node.result(node.stretch(one, type.getShape()));
  }
  return node.result(node.full(type.getElementType(), type.getShape(),
                               op.contains("ones") ? 1 : 0));
}

static LogicalResult arange(Node &node) {
  RankedTensorType type = node.resultType(0);
  if (!type)
    return node.unsupported("a tensor of a size that is not known");
  Type element = type.getElementType();
  // Rounded once, at the end.
  Type compute = isa<FloatType>(element) ? Type(node.builder().getF64Type())
                                         : Type(node.builder().getI64Type());
  Expr places = node.make("iota", {}, node.attr("dim", int64_t(0)),
                          RankedTensorType::get(type.getShape(), compute));
  if (!places)
    return failure();
  if (type.getNumElements() == 0)
    return node.result(node.cast(places, element));
  Expr start = node.has("start") ? node.scalar("start", compute) : Expr();
  Expr step = node.has("step") ? node.scalar("step", compute) : Expr();
  if (step)
    places = node.make("multiply", {places, step});
  if (start)
    places = node.make("add_scaled", {places, start});
  return node.result(places ? node.cast(places, element) : places);
}

static LogicalResult linspace(Node &node) {
  RankedTensorType type = node.resultType(0);
  if (!type || !isa<FloatType>(type.getElementType()))
    return node.unsupported("a linspace of integers");
  // A text: what else `?:` gives would be taken for a bool.
  StringRef dtype = type.getElementType().isF64() ? "f64" : "f32";
  Expr made = node.make("linspace", {},
                        {node.attr("start", node.number("start", 0)),
                         node.attr("end", node.number("end", 1)),
                         node.attr("steps", node.integer("steps", 1)),
                         node.attr("dtype", dtype)});
  return node.result(made ? node.cast(made, type.getElementType()) : made);
}

static LogicalResult eye(Node &node) {
  RankedTensorType type = node.resultType(0);
  if (!type || type.getRank() != 2)
    return node.unsupported("a tensor of a size that is not known");
  Type i64 = node.builder().getI64Type();
  auto indices = RankedTensorType::get(type.getShape(), i64);
  Expr row = node.make("iota", {}, node.attr("dim", int64_t(0)), indices);
  Expr column = node.make("iota", {}, node.attr("dim", int64_t(1)), indices);
  if (!row || !column)
    return failure();
  return node.result(node.cast(compare(ComparePredicate::eq, row, column),
                               type.getElementType()));
}

/// Rows and columns of a triangle, in row-major order: they are known here.
static LogicalResult triangle(Node &node) {
  RankedTensorType type = node.resultType(0);
  int64_t rows = node.integer("row", 0), columns = node.integer("col", 0);
  int64_t offset = node.integer("offset", 0);
  if (!type || node.failed())
    return failure();
  bool isLower = node.op() == "tril_indices";
  List first, second;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c)
      if (isLower ? c - r <= offset : c - r >= offset) {
        first.push_back(r);
        second.push_back(c);
      }
  if (first.empty())
    return node.result(node.full(type.getElementType(), type.getShape(), 0));
  llvm::append_range(first, second);
  auto wide =
      RankedTensorType::get(type.getShape(), node.builder().getI64Type());
  if (wide.getNumElements() != static_cast<int64_t>(first.size()))
    return node.error("expected as many places as the archive says");
  Expr made = node.wrap(
      ConstantOp::create(node.builder(), node.loc(),
                         DenseElementsAttr::get(wide, ArrayRef(first))));
  return node.result(node.cast(made, type.getElementType()));
}

/// What is written into a tensor: a number, another tensor, zeros.
static LogicalResult fill(Node &node) {
  Value self = node.ref("self");
  if (!self)
    return failure();
  auto type = cast<RefType>(self.getType());
  Expr made;
  if (node.op() == "zero")
    made = node.full(type.getElementType(), {}, 0);
  else if (node.op() == "copy")
    made = node.value("src");
  else
    made = node.isTensor("value") ? node.value("value")
                                  : node.scalar("value", type.getElementType());
  if (!made)
    return failure();
  if (type.getElementType().isInteger(1) &&
      !made.type().getElementType().isInteger(1))
    made = compare(ComparePredicate::ne, made, made.like(0));
  return node.result(
      node.stretch(node.cast(made, type.getElementType()), type.getShape()));
}

void torch::addCreationOps(OpTable &table) {
  table.add("zeros ones full empty zeros_like ones_like full_like empty_like "
            "new_zeros new_ones new_full new_empty empty_permuted "
            "empty_strided new_empty_strided scalar_tensor",
            filled);
  table.add("arange", arange);
  table.add("linspace", linspace);
  table.add("eye", eye);
  table.add("tril_indices triu_indices", triangle);
  table.add("fill zero copy", fill);
}
