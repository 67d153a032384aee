//===- Node.cpp - what the translation of an ATen operator sees -----------===//
#include "compiler/import/torch/Node.h"
#include "compiler/functions/Function.h"
#include "compiler/import/torch/ElementTypes.h"
#include "compiler/import/torch/GraphTranslator.h"
#include "ir/BuildOp.h"
#include "ir/Ops.h"
#include "ir/ops/Inference.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::torch;
using Form = Argument::Form;

OpBuilder &Node::builder() const { return translator_.builder; }

/// Whether an op in place changes the shape of a tensor, or takes it out of the
/// gradient, and not what it holds: what follows has the name of its result.
static bool showsOtherwise(StringRef op) {
  static constexpr StringRef ops[] = {"squeeze",   "unsqueeze", "t",
                                      "transpose", "swapaxes",  "swapdims",
                                      "detach"};
  return llvm::is_contained(ops, op);
}

void Node::writeTo(StringRef operand) {
  Value self = isTensor(operand) ? ref(operand) : Value();
  Value made = results[0];
  if (!self || !made || made == self)
    return;
  auto makes = made.getDefiningOp<MakeRefOp>();
  if (!makes != (operand != "out" && showsOtherwise(op()))) {
    (void)unsupported("changes which storage a tensor shows");
    return;
  }
  if (!makes)
    return;
  auto type = mlir::cast<RefType>(self.getType());
  Expr value = cast(wrap(makes.getOperand()), type.getElementType());
  makes.erase();
  if (value.shape() != type.getShape())
    value = stretch(value, type.getShape());
  write(value, self);
  results[0] = self;
}

LogicalResult Node::error(const Twine &message) {
  failed_ = true;
  translator_.problem(place, message.str());
  return failure();
}

LogicalResult Node::unsupported(const Twine &message) {
  failed_ = true;
  translator_.problem(place, ("unsupported: " + message).str(), true);
  return failure();
}

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

const Argument *Node::argument(StringRef name) const {
  for (const NamedArgument &input : data_.inputs)
    if (input.name == name)
      return input.argument.form == Form::None ? nullptr : &input.argument;
  return nullptr;
}

bool Node::has(StringRef name) const { return argument(name) != nullptr; }

bool Node::isTensor(StringRef name) const {
  const Argument *found = argument(name);
  return found && found->form == Form::Tensor;
}

Value Node::ref(StringRef name) {
  const Argument *found = argument(name);
  if (!found)
    return {};
  if (found->form != Form::Tensor) {
    (void)error("expected '" + name + "' to be a tensor");
    return {};
  }
  const auto &refs = translator_.scope->refs;
  auto it = refs.find(found->names[0]);
  if (it == refs.end())
    (void)error("'" + found->names[0] + "' is not made before it is used");
  else if (!it->second)
    failed_ = true; // what is wrong was said where it is made
  return it == refs.end() ? Value() : it->second;
}

Expr Node::value(StringRef name) {
  Value storage = ref(name);
  if (!storage)
    return {};
  return autocast(wrap(ReadOp::create(builder(), loc(), storage)));
}

Expr Node::autocast(const Expr &x) {
  // Statistics of a normalization stay as they are.
  if (!translator_.mode.isAutocast || op_.find("batch_norm") != op_.npos)
    return x;
  RankedTensorType type = resultType(0);
  auto isMixed = [](Type element) {
    return isa<FloatType>(element) && element.getIntOrFloatBitWidth() <= 32;
  };
  bool casts = type && isMixed(type.getElementType()) &&
               isMixed(x.type().getElementType());
  return casts ? cast(x, type.getElementType()) : x;
}

SmallVector<Value> Node::refs(StringRef name) {
  SmallVector<Value> list;
  const Argument *found = argument(name);
  if (!found)
    return list;
  if (found->form != Form::Tensors && found->form != Form::Tensor) {
    (void)error("expected '" + name + "' to be a list of tensors");
    return list;
  }
  return refsOf(*found);
}

SmallVector<Value> Node::refsOf(const Argument &argument) {
  SmallVector<Value> list;
  const auto &known = translator_.scope->refs;
  for (const std::string &one : argument.names) {
    auto it = known.find(one);
    if (!one.empty() && it == known.end())
      (void)error("'" + one + "' is not made before it is used");
    failed_ |= !one.empty() && it != known.end() && !it->second;
    list.push_back(one.empty() || it == known.end() ? Value() : it->second);
  }
  return list;
}

SmallVector<Value> Node::values(StringRef name) {
  SmallVector<Value> list = refs(name);
  for (Value &one : list)
    if (one)
      one = autocast(wrap(ReadOp::create(builder(), loc(), one)));
  return list;
}

std::optional<int64_t> Node::integerOf(const Number &number) {
  if (number.name.empty())
    return number.integer;
  auto it = graph_.integers.find(number.name);
  if (it == graph_.integers.end()) {
    (void)error("'" + number.name + "' is not made before it is used");
    return std::nullopt;
  }
  auto value = evaluate(it->second, translator_.symbols);
  if (!value)
    (void)unsupported("the number '" + number.name + "' (" +
                      it->second.expression +
                      ") is not known when compiling: it follows from data");
  return value;
}

std::optional<double> Node::numberOf(const Number &number) {
  if (number.name.empty())
    return number.number;
  auto integer = integerOf(number);
  return integer ? std::optional<double>(static_cast<double>(*integer))
                 : std::nullopt;
}

int64_t Node::integer(StringRef name, int64_t otherwise) {
  const Argument *found = argument(name);
  if (!found)
    return otherwise;
  if ((found->form != Form::Int && found->form != Form::Bool) ||
      found->numbers.empty()) {
    (void)error("expected '" + name + "' to be an integer");
    return otherwise;
  }
  return integerOf(found->numbers[0]).value_or(otherwise);
}

double Node::number(StringRef name, double otherwise) {
  const Argument *found = argument(name);
  if (!found)
    return otherwise;
  bool isNumber = found->form == Form::Int || found->form == Form::Bool ||
                  found->form == Form::Float;
  if (!isNumber || found->numbers.empty()) {
    (void)error("expected '" + name + "' to be a number");
    return otherwise;
  }
  return numberOf(found->numbers[0]).value_or(otherwise);
}

bool Node::flag(StringRef name, bool otherwise) {
  return integer(name, otherwise) != 0;
}

std::string Node::text(StringRef name, StringRef otherwise) {
  const Argument *found = argument(name);
  if (!found)
    return otherwise.str();
  if (found->form != Form::Text) {
    (void)error("expected '" + name + "' to be a text");
    return otherwise.str();
  }
  return found->texts[0];
}

Node::List Node::integers(StringRef name, ArrayRef<int64_t> otherwise) {
  const Argument *found = argument(name);
  if (!found)
    return List(otherwise);
  List list;
  if (found->form != Form::Ints && found->form != Form::Int &&
      found->form != Form::Bools && !found->numbers.empty()) {
    (void)error("expected '" + name + "' to be a list of integers");
    return List(otherwise);
  }
  for (const Number &one : found->numbers)
    list.push_back(integerOf(one).value_or(0));
  return list;
}

SmallVector<double> Node::numbers(StringRef name) {
  SmallVector<double> list;
  if (const Argument *found = argument(name))
    for (const Number &one : found->numbers)
      list.push_back(numberOf(one).value_or(0));
  return list;
}

Node::List Node::integersFor(StringRef name, int64_t count, int64_t otherwise) {
  List list = integers(name);
  if (list.empty())
    list.push_back(otherwise);
  if (list.size() == 1)
    list.assign(count, list[0]);
  if (static_cast<int64_t>(list.size()) != count) {
    (void)error("expected '" + name + "' to have " + Twine(count) +
                " numbers, but got " + Twine(list.size()));
    list.assign(count, otherwise);
  }
  return list;
}

int64_t Node::dim(StringRef name, int64_t otherwise, int64_t rank) {
  int64_t given = integer(name, otherwise), range = std::max<int64_t>(rank, 1);
  if (given < -range || given >= range) {
    (void)error("expected '" + name + "' to be a dimension of " + Twine(rank) +
                ", but got " + Twine(given));
    return 0;
  }
  return given < 0 ? given + range : given;
}

Node::List Node::dims(StringRef name, int64_t rank) {
  List list = integers(name);
  if (list.empty()) {
    list.resize(rank);
    std::iota(list.begin(), list.end(), 0);
    return list;
  }
  if (rank == 0)
    return {};
  for (int64_t &one : list) {
    if (one < -rank || one >= rank) {
      (void)error("expected '" + name + "' to be dimensions of " + Twine(rank) +
                  ", but got " + Twine(one));
      return {};
    }
    one = one < 0 ? one + rank : one;
  }
  llvm::sort(list);
  return list;
}

Type Node::elementType(StringRef name) {
  const Argument *found = argument(name);
  if (!found)
    return {};
  int64_t dtype = found->numbers.empty() ? 0 : found->numbers[0].integer;
  if (found->form != Form::DType) {
    (void)error("expected '" + name + "' to be an element type");
    return {};
  }
  Type type = elementTypeOf(dtype, context());
  if (!type)
    (void)unsupported("elements of type " + spellingOf(dtype));
  return type;
}

//===----------------------------------------------------------------------===//
// What the archive says of tensors
//===----------------------------------------------------------------------===//

std::vector<std::string> Node::resultNames() const {
  std::vector<std::string> names;
  for (const Argument &output : data_.outputs) {
    if (output.form == Form::Tensor || output.form == Form::Tensors)
      names.insert(names.end(), output.names.begin(), output.names.end());
    else
      names.push_back("");
  }
  return names;
}

size_t Node::resultCount() const { return names_.size(); }

bool Node::wants(size_t i) const {
  if (i >= names_.size() || names_[i].empty())
    return false;
  auto has = [&](const Argument &argument) {
    return llvm::is_contained(argument.names, names_[i]);
  };
  return llvm::any_of(graph_.outputs, has) ||
         llvm::any_of(graph_.nodes, [&](const NodeData &node) {
           return llvm::any_of(node.inputs, [&](const NamedArgument &input) {
             return has(input.argument);
           });
         });
}

RankedTensorType Node::resultType(size_t i) {
  if (i >= names_.size() || names_[i].empty())
    return {};
  auto it = graph_.tensors.find(names_[i]);
  if (it == graph_.tensors.end())
    return {};
  Type element = elementTypeOf(it->second.dtype, context());
  List shape;
  for (const Size &size : it->second.sizes) {
    auto value = evaluate(size, translator_.symbols);
    if (!value || *value < 0)
      return {};
    shape.push_back(*value);
  }
  return element && isTensorShape(shape) ? RankedTensorType::get(shape, element)
                                         : RankedTensorType();
}

std::optional<Node::List> Node::strides(StringRef name) {
  const Argument *found = argument(name);
  if (!found || found->form != Form::Tensor)
    return std::nullopt;
  auto it = graph_.tensors.find(found->names[0]);
  if (it == graph_.tensors.end())
    return std::nullopt;
  List list;
  for (const Size &size : it->second.strides) {
    auto value = evaluate(size, translator_.symbols);
    if (!value)
      return std::nullopt;
    list.push_back(*value);
  }
  return list;
}

bool Node::isWhole(StringRef name) {
  auto found = strides(name);
  Value storage = ref(name);
  if (!found || !storage)
    return false;
  const TensorMeta &meta = graph_.tensors.at(argument(name)->names[0]);
  auto offset = evaluate(meta.offset, translator_.symbols);
  ArrayRef<int64_t> shape = cast<RefType>(storage.getType()).getShape();
  int64_t expected = 1;
  for (size_t i = found->size(); i-- > 0;) {
    if (shape[i] != 1 && (*found)[i] != expected)
      return false;
    expected *= shape[i];
  }
  return offset.value_or(0) == 0;
}

//===----------------------------------------------------------------------===//
// Making values
//===----------------------------------------------------------------------===//

SmallVector<Value> Node::call(StringRef function, ArrayRef<Value> operands,
                              ArrayRef<NamedAttribute> attributes) {
  if (failed_)
    return {};
  auto made = callFunction(builder(), loc(), function, operands, attributes);
  failed_ |= mlir::failed(made);
  return mlir::failed(made) ? SmallVector<Value>() : *made;
}

SmallVector<Value> Node::makeAll(StringRef name, ValueRange operands,
                                 ArrayRef<NamedAttribute> attributes,
                                 TypeRange types) {
  for (Value operand : operands)
    failed_ |= !operand;
  if (failed_)
    return {};
  if (!RegisteredOperationName::lookup(("tandem." + name).str(), context()))
    return call(name, SmallVector<Value>(operands), attributes);
  auto made = buildOp(builder(), loc(), name, operands, attributes, types);
  failed_ |= mlir::failed(made);
  return mlir::failed(made) ? SmallVector<Value>()
                            : SmallVector<Value>((*made)->getResults());
}

Expr Node::make(StringRef name, ValueRange operands,
                ArrayRef<NamedAttribute> attributes, Type type) {
  auto made =
      makeAll(name, operands, attributes, type ? TypeRange(type) : TypeRange());
  return made.empty() ? Expr() : wrap(made[0]);
}

Expr Node::full(Type element, ArrayRef<int64_t> shape, double number) {
  if (!isTensorShape(shape)) {
    (void)error("the tensor is too large");
    return {};
  }
  auto type = RankedTensorType::get(shape, element);
  return wrap(
      ConstantOp::splat(builder(), loc(), type, rounded(number, element)));
}

Expr Node::scalar(StringRef name, Type element) {
  const Argument *found = argument(name);
  bool isInteger = found && found->form != Form::Float;
  auto type = RankedTensorType::get({}, element);
  if (!isInteger || isa<FloatType>(element))
    return full(element, {}, number(name, 0));
  // Integers beyond 2^53 are no doubles.
  int64_t value = integer(name, 0);
  if (element.isInteger(1))
    value = value != 0;
  APInt bits(element.getIntOrFloatBitWidth(), static_cast<uint64_t>(value),
             /*isSigned=*/true, /*implicitTrunc=*/true);
  return wrap(ConstantOp::create(
      builder(), loc(),
      DenseElementsAttr::get(type, IntegerAttr::get(element, bits))));
}

Expr Node::cast(const Expr &x, Type element) {
  if (!x || !element)
    return {};
  return x.type().getElementType() == element ? x : x.cast(element);
}

Expr Node::reshape(const Expr &x, ArrayRef<int64_t> shape) {
  if (!x || x.shape() == shape)
    return x;
  return make("reshape", x.value, attr("shape", shape));
}

Expr Node::stretch(const Expr &x, ArrayRef<int64_t> shape) {
  if (!x || x.shape() == shape)
    return x;
  List dims;
  int64_t first = static_cast<int64_t>(shape.size()) - x.rank();
  if (first < 0) {
    (void)error("cannot stretch " + infer::text(x.shape()) + " to " +
                infer::text(shape));
    return {};
  }
  for (int64_t i = 0; i < x.rank(); ++i)
    dims.push_back(first + i);
  return make("broadcast", x.value, {attr("shape", shape), attr("dims", dims)});
}

NamedAttribute Node::attr(StringRef name, int64_t value) {
  return builder().getNamedAttr(name, builder().getI64IntegerAttr(value));
}
NamedAttribute Node::attr(StringRef name, double value) {
  return builder().getNamedAttr(name, builder().getF64FloatAttr(value));
}
NamedAttribute Node::attr(StringRef name, bool value) {
  return builder().getNamedAttr(name, builder().getBoolAttr(value));
}
NamedAttribute Node::attr(StringRef name, StringRef text) {
  return builder().getNamedAttr(name, builder().getStringAttr(text));
}
NamedAttribute Node::attr(StringRef name, ArrayRef<int64_t> list) {
  return builder().getNamedAttr(name, builder().getDenseI64ArrayAttr(list));
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

Value Node::randomState() { return translator_.randomState(); }
int64_t Node::nextDraw() { return translator_.draws++; }
bool Node::trains(Inactive what, bool training) {
  ++(training ? translator_.active : translator_.inactive)[what];
  return training && !translator_.options.keepEval;
}

LogicalResult Node::result(size_t i, Value value) {
  if (!value || failed_) {
    failed_ = true;
    return failure();
  }
  if (i < results.size())
    results[i] = MakeRefOp::create(builder(), loc(), value);
  return success();
}

LogicalResult Node::view(size_t i, Value ref) {
  if (!ref || failed_) {
    failed_ = true;
    return failure();
  }
  if (i < results.size())
    results[i] = ref;
  return success();
}

Value Node::viewOf(Value ref, StringRef op, ArrayRef<NamedAttribute> attributes,
                   Type type) {
  if (!ref || failed_)
    return {};
  auto made = buildOp(builder(), loc(), op, ref, attributes,
                      type ? TypeRange(type) : TypeRange());
  failed_ |= mlir::failed(made);
  return mlir::failed(made) ? Value() : (*made)->getResult(0);
}

Value Node::reshapeView(Value ref, ArrayRef<int64_t> shape) {
  if (!ref || mlir::cast<RefType>(ref.getType()).getShape() == shape)
    return ref;
  return viewOf(ref, "reshape", attr("shape", shape));
}

void Node::write(Value value, Value ref) {
  if (!value || !ref || failed_)
    return;
  auto made = buildOp(builder(), loc(), "write", {value, ref}, {});
  failed_ |= mlir::failed(made);
}

FailureOr<SmallVector<Value>> Node::inlined(const Graph &graph,
                                            ArrayRef<Value> refs) {
  auto made = translator_.translate(graph, refs);
  failed_ |= mlir::failed(made);
  return made;
}
