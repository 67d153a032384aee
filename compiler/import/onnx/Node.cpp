//===- Node.cpp - what the translation of an ONNX operator sees -----------===//
#include "compiler/functions/Function.h"
#include "compiler/import/onnx/GraphTranslator.h"
#include "ir/BuildOp.h"
#include "ir/Ops.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::onnx;

StringRef Node::name() const { return data.name; }
StringRef Node::op() const { return data.op; }
int64_t Node::opset() const { return version; }
Location Node::loc() const { return where; }
OpBuilder &Node::builder() const { return translator.builder; }
MLIRContext *Node::context() const { return translator.builder.getContext(); }

LogicalResult Node::error(const Twine &message) {
  failed = true;
  translator.problem(place, message.str());
  return failure();
}

LogicalResult Node::unsupported(const Twine &message) {
  failed = true;
  translator.problem(place, ("unsupported: " + message).str(), true);
  return failure();
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

size_t Node::numOperands() const { return operands.size(); }

bool Node::has(size_t i) const {
  return i < operands.size() && bool(operands[i]);
}

const Datum &Node::datum(size_t i) const {
  static const Datum nothing;
  return i < operands.size() ? operands[i] : nothing;
}

Datum Node::named(const std::string &name) const {
  bool isBroken;
  const Datum *found = translator.find(
      name, *static_cast<const GraphTranslator::Scope *>(scope), isBroken);
  return found ? *found : Datum();
}

Value Node::valueOf(const Datum &datum) {
  if (!datum)
    return {};
  std::string why;
  Value value = translator.materialize(datum, loc(), why);
  if (value)
    return value;
  if (StringRef rest = why; rest.consume_front("unsupported: "))
    (void)unsupported(rest);
  else
    (void)error(why);
  return {};
}

Value Node::operand(size_t i) { return valueOf(datum(i)); }

RankedTensorType Node::type(size_t i) const {
  const Datum &d = datum(i);
  if (d.value)
    return dyn_cast<RankedTensorType>(d.value.getType());
  return d.data ? typeOf(*d.data, context()) : RankedTensorType();
}

DenseElementsAttr Node::known(size_t i) {
  TensorPtr data = translator.knownData(datum(i));
  if (!data || !typeOf(*data, context()))
    return {};
  return attributeOf(*data, context());
}

std::optional<SmallVector<int64_t>> Node::knownInts(size_t i) {
  TensorPtr data = translator.knownData(datum(i));
  return data ? std::optional(integersOf(*data)) : std::nullopt;
}

std::optional<SmallVector<int64_t>> Node::knownInts(const Datum &datum) {
  TensorPtr data = translator.knownData(datum);
  return data ? std::optional(integersOf(*data)) : std::nullopt;
}

std::optional<SmallVector<double>> Node::knownNumbers(size_t i) {
  TensorPtr data = translator.knownData(datum(i));
  return data ? std::optional(numbersOf(*data)) : std::nullopt;
}

TensorPtr Node::need(size_t i, StringRef what) {
  if (!has(i)) {
    (void)error(what + " is missing (operand " + Twine(i) + ")");
    return nullptr;
  }
  SmallVector<Value> unknown;
  if (TensorPtr data = translator.knownData(datum(i), &unknown)) {
    if (byteSize(data->kind))
      return data;
    (void)unsupported(what + " of type " + spelling(data->kind));
    return nullptr;
  }
  // A placeholder says nothing about the model.
  failed = true;
  if (llvm::any_of(unknown, [&](Value value) {
        return translator.placeholders.contains(value);
      }))
    return nullptr;
  std::set<std::string> names;
  for (Value value : unknown)
    if (auto loc = dyn_cast<NameLoc>(value.getLoc());
        loc && value.getParentBlock() == &translator.func.getBody().front() &&
        value != translator.random)
      names.insert(loc.getName().str());
  if (names.empty()) {
    (void)unsupported(what + " follows from data that is not known when "
                             "compiling");
    return nullptr;
  }
  std::string flags;
  for (const std::string &name : names) {
    translator.neededValues.insert(name);
    flags += (flags.empty() ? "" : " ") + ("--value=" + name) + "=...";
  }
  (void)unsupported(what +
                    " is not known when compiling: it follows from "
                    "what the model is given; say it with " +
                    flags);
  return nullptr;
}

FailureOr<SmallVector<int64_t>> Node::needInts(size_t i, StringRef what) {
  if (TensorPtr data = need(i, what))
    return integersOf(*data);
  return failure();
}

FailureOr<SmallVector<double>> Node::needNumbers(size_t i, StringRef what) {
  if (TensorPtr data = need(i, what))
    return numbersOf(*data);
  return failure();
}

FailureOr<int64_t> Node::needInt(size_t i, StringRef what) {
  auto list = needInts(i, what);
  if (mlir::failed(list))
    return failure();
  if (list->size() != 1)
    return error("expected " + what + " to be one number, but got " +
                 Twine(list->size()));
  return (*list)[0];
}

FailureOr<double> Node::needNumber(size_t i, StringRef what) {
  auto list = needNumbers(i, what);
  if (mlir::failed(list))
    return failure();
  if (list->size() != 1)
    return error("expected " + what + " to be one number, but got " +
                 Twine(list->size()));
  return (*list)[0];
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

const onnx::Attribute *Node::attribute(StringRef name) {
  asked.insert(name.str());
  for (const onnx::Attribute &attribute : data.attributes)
    if (attribute.name == name)
      return &attribute;
  return nullptr;
}

const onnx::Attribute *Node::find(StringRef name, onnx::Attribute::Form form) {
  const onnx::Attribute *found = attribute(name);
  if (!found || found->form == form)
    return found;
  // An empty list may have been written as a list of anything.
  static const char *const forms[] = {
      "nothing", "a number",        "an integer", "a text", "a tensor",
      "a graph", "numbers",         "integers",   "texts",  "tensors",
      "graphs",  "a sparse tensor", "a type"};
  (void)error("expected the attribute '" + name + "' to be " +
              forms[static_cast<int>(form)] + ", but got " +
              forms[static_cast<int>(found->form)]);
  return nullptr;
}

bool Node::hasAttribute(StringRef name) { return attribute(name) != nullptr; }

int64_t Node::integer(StringRef name, int64_t otherwise) {
  const onnx::Attribute *found = find(name, onnx::Attribute::Form::Int);
  return found ? found->integer : otherwise;
}

double Node::number(StringRef name, double otherwise) {
  const onnx::Attribute *found = find(name, onnx::Attribute::Form::Float);
  return found ? found->number : otherwise;
}

std::string Node::text(StringRef name, StringRef otherwise) {
  const onnx::Attribute *found = find(name, onnx::Attribute::Form::String);
  return found ? found->text : otherwise.str();
}

std::string Node::choice(StringRef name, ArrayRef<StringRef> choices) {
  std::string found = text(name, choices[0]);
  if (!llvm::is_contained(choices, StringRef(found)))
    (void)unsupported("'" + name + "' of '" + found + "'; expected one of " +
                      llvm::join(choices, ", "));
  return found;
}

SmallVector<int64_t> Node::integers(StringRef name,
                                    ArrayRef<int64_t> otherwise) {
  const onnx::Attribute *found = find(name, onnx::Attribute::Form::Ints);
  return found ? SmallVector<int64_t>(ArrayRef(found->integers))
               : SmallVector<int64_t>(otherwise);
}

SmallVector<double> Node::numbers(StringRef name, ArrayRef<double> otherwise) {
  const onnx::Attribute *found = find(name, onnx::Attribute::Form::Floats);
  if (!found)
    return SmallVector<double>(otherwise);
  return SmallVector<double>(found->numbers.begin(), found->numbers.end());
}

SmallVector<std::string> Node::texts(StringRef name) {
  const onnx::Attribute *found = find(name, onnx::Attribute::Form::Strings);
  return found ? SmallVector<std::string>(ArrayRef(found->texts))
               : SmallVector<std::string>();
}

TensorPtr Node::tensor(StringRef name) {
  const onnx::Attribute *found = find(name, onnx::Attribute::Form::Tensor);
  return found ? found->tensors[0] : nullptr;
}

std::shared_ptr<const Graph> Node::graph(StringRef name) {
  const onnx::Attribute *found = find(name, onnx::Attribute::Form::Graph);
  return found ? found->graphs[0] : nullptr;
}

void Node::ignore(std::initializer_list<StringRef> names) {
  for (StringRef name : names)
    asked.insert(name.str());
}

Type Node::elementTypeOf(int64_t kind) {
  Type type = onnx::elementTypeOf(static_cast<ElementKind>(kind), context());
  if (!type)
    (void)unsupported("elements of type " +
                      spelling(static_cast<ElementKind>(kind)));
  return type;
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

size_t Node::numResults() const { return results.size(); }

bool Node::wants(size_t i) const {
  return i < results.size() && !data.outputs[i].empty() &&
         static_cast<const GraphTranslator::Scope *>(scope)->used.count(
             data.outputs[i]);
}

void Node::result(size_t i, Datum datum) {
  if (i < results.size())
    results[i] = std::move(datum);
}

void Node::result(size_t i, Value value) { result(i, Datum(value)); }

void Node::result(size_t i, DenseElementsAttr value) {
  result(i, Datum(dataOf(value)));
}

//===----------------------------------------------------------------------===//
// Building
//===----------------------------------------------------------------------===//

Operation *Node::build(StringRef name, ValueRange operands,
                       ArrayRef<NamedAttribute> attributes, TypeRange types) {
  if (llvm::is_contained(operands, Value())) {
    failed = true;
    return nullptr;
  }
  auto made = buildOp(builder(), loc(), name, operands, attributes, types);
  failed |= mlir::failed(made);
  return mlir::failed(made) ? nullptr : *made;
}

Value Node::make(StringRef name, ValueRange operands,
                 ArrayRef<NamedAttribute> attributes, TypeRange types) {
  Operation *made = build(name, operands, attributes, types);
  return made && made->getNumResults() ? made->getResult(0) : Value();
}

SmallVector<Value> Node::callAll(StringRef function, ValueRange operands,
                                 ArrayRef<NamedAttribute> attributes) {
  if (failed) // an operand that could not be made looks like an absent one
    return {};
  auto made = callFunction(builder(), loc(), function, operands, attributes);
  failed |= mlir::failed(made);
  return mlir::failed(made) ? SmallVector<Value>() : *made;
}

Value Node::call(StringRef function, ValueRange operands,
                 ArrayRef<NamedAttribute> attributes) {
  SmallVector<Value> made = callAll(function, operands, attributes);
  return made.empty() ? Value() : made[0];
}

Value Node::constant(DenseElementsAttr a) {
  return make("constant", {}, {builder().getNamedAttr("value", a)});
}

Value Node::splat(RankedTensorType type, double number) {
  return ConstantOp::splat(builder(), loc(), type, number);
}

DenseElementsAttr Node::ints(ArrayRef<int64_t> values) const {
  auto type = RankedTensorType::get({static_cast<int64_t>(values.size())},
                                    builder().getI64Type());
  return DenseElementsAttr::get(type, values);
}

NamedAttribute Node::attr(StringRef name, int64_t value) const {
  return builder().getNamedAttr(name, builder().getI64IntegerAttr(value));
}
NamedAttribute Node::attr(StringRef name, double value) const {
  return builder().getNamedAttr(name, builder().getF64FloatAttr(value));
}
NamedAttribute Node::attr(StringRef name, ArrayRef<int64_t> list) const {
  return builder().getNamedAttr(name, builder().getDenseI64ArrayAttr(list));
}
NamedAttribute Node::attr(StringRef name, StringRef text) const {
  return builder().getNamedAttr(name, builder().getStringAttr(text));
}
NamedAttribute Node::attr(StringRef name, mlir::Attribute value) const {
  return builder().getNamedAttr(name, value);
}
NamedAttribute Node::flag(StringRef name) const {
  return builder().getNamedAttr(name, builder().getUnitAttr());
}

bool Node::broadcast(MutableArrayRef<Expr> values) {
  SmallVector<int64_t> shape;
  for (const Expr &value : values) {
    if (!value)
      return failed = true, false;
    if (static_cast<int64_t>(shape.size()) < value.rank())
      shape.insert(shape.begin(), value.rank() - shape.size(), 1);
    size_t offset = shape.size() - value.rank();
    for (auto [i, size] : llvm::enumerate(value.shape())) {
      int64_t &to = shape[offset + i];
      if (to != size && to != 1 && size != 1) {
        std::string shapes;
        for (const Expr &one : values)
          shapes += (shapes.empty() ? "[" : ", [") +
                    llvm::join(llvm::map_range(
                                   one.shape(),
                                   [](int64_t n) { return std::to_string(n); }),
                               ", ") +
                    "]";
        return (void)error("expected shapes that broadcast, but got " + shapes),
               false;
      }
      if (to == 1)
        to = size;
    }
  }
  if (!isTensorShape(shape))
    return (void)error("the broadcast tensor is too large"), false;
  for (Expr &value : values) {
    if (value.shape() == ArrayRef<int64_t>(shape))
      continue;
    int64_t offset = static_cast<int64_t>(shape.size()) - value.rank();
    SmallVector<int64_t> dims, sizes;
    for (auto [i, size] : llvm::enumerate(value.shape()))
      if (size == shape[offset + i]) {
        dims.push_back(offset + static_cast<int64_t>(i));
        sizes.push_back(size);
      }
    if (static_cast<int64_t>(sizes.size()) != value.rank())
      value = value.reshape(sizes);
    value = value.broadcastTo(shape, dims);
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Training and graphs inside
//===----------------------------------------------------------------------===//

bool Node::isTraining() const {
  return !translator.options.loss.empty() && !translator.options.keepEval;
}

bool Node::keepsInference() const { return translator.options.keepEval; }

LogicalResult Node::update(size_t i, Value value) {
  Value argument = datum(i).data ? operand(i) : Value();
  if (!argument || !translator.parameters.contains(argument))
    return error("expected operand " + Twine(i) +
                 " to be an initializer, which training can update; "
                 "--keep-eval leaves it as it is");
  if (value.getType() != argument.getType())
    return error("expected an update of the operand's type");
  translator.updates[argument] = value;
  return success();
}

/// Each iteration draws under a seed of its own: that of the run plus its
/// number times a prime, another one for each loop around. (What the reference,
/// which computes in double, holds exactly.)
Value Node::randomState() {
  static constexpr int64_t primes[] = {2654435761, 2246822519, 3266489917};
  Expr state = wrap(translator.randomState(loc()));
  for (auto [depth, index] : llvm::enumerate(translator.iterations)) {
    Expr apart = wrap(constant(ints({primes[depth % std::size(primes)], 0})));
    state = state + wrap(index).broadcastTo({2}, {}) * apart;
  }
  return state.value;
}

FailureOr<SmallVector<Datum>>
Node::inlineIteration(const Graph &graph, ArrayRef<Datum> inputs, Value index) {
  translator.iterations.push_back(index);
  auto made = inlineGraph(graph, inputs);
  translator.iterations.pop_back();
  return made;
}

int64_t Node::nextDraw() { return translator.draws++; }

FailureOr<SmallVector<Datum>> Node::inlineGraph(const Graph &graph,
                                                ArrayRef<Datum> inputs) {
  if (inputs.size() != graph.inputs.size())
    return error("expected a graph of " + Twine(inputs.size()) +
                 " inputs, but got one of " + Twine(graph.inputs.size()));
  if (translator.depth >= 100)
    return error("graphs are too deep in each other");
  using Scope = GraphTranslator::Scope;
  Scope inside;
  inside.outer = static_cast<const Scope *>(scope);
  inside.opsets = inside.outer->opsets;
  inside.prefix = inside.outer->prefix + labelOf(data) + "/";
  size_t before = translator.problems.size();
  translator.addInitializers(graph, inside);
  for (auto [input, datum] : llvm::zip(graph.inputs, inputs))
    inside.names[input.name] = datum;
  ++translator.depth;
  translator.addNodes(graph, inside);
  --translator.depth;
  SmallVector<Datum> outputs;
  for (const NamedType &output : graph.outputs) {
    bool isBroken;
    const Datum *found = translator.find(output.name, inside, isBroken);
    if (!found && !isBroken)
      return error("expected a node that makes the output '" + output.name +
                   "' of its graph, but there is none");
    outputs.push_back(found ? *found : Datum());
    if (isNarrow(outputs.back().kind))
      return unsupported("a graph that gives elements of type " +
                         spelling(outputs.back().kind));
  }
  if (translator.problems.size() != before) {
    failed = true;
    return failure();
  }
  return outputs;
}
