//===- GraphTranslator.cpp - the module of one ONNX graph -----------------===//
#include "compiler/import/onnx/GraphTranslator.h"
#include "compiler/capture/DemoteRefs.h"
#include "compiler/capture/Names.h"
#include "compiler/import/onnx/Narrow.h"
#include "ir/Ops.h"
#include "ir/Signature.h"
#include "ir/Where.h"

#include "mlir/IR/Verifier.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::onnx;

GraphTranslator::GraphTranslator(const Model &model, const std::string &path,
                                 const ImportOptions &options,
                                 MLIRContext &context,
                                 std::set<std::string> &constants)
    : model(model), path(path), options(options), constants(constants),
      builder(&context), known([this](Value argument) -> TensorPtr {
        auto it = parameters.find(argument);
        if (it == parameters.end())
          return nullptr;
        if (this->constants.insert(candidates[it->second.get()]).second)
          restart = true;
        return it->second;
      }) {}

void GraphTranslator::problem(const std::string &where, const std::string &text,
                              bool isUnsupported) {
  problems.push_back({printable(where), printable(text), isUnsupported});
}

void GraphTranslator::misuse(const std::string &option,
                             const std::string &text) {
  problems.push_back({printable(option), printable(text), false, true});
}

Location GraphTranslator::location(const std::string &name,
                                   const std::string &kind, unsigned number) {
  return placeWithoutLine(path, name, kind, number, builder.getContext());
}

//===----------------------------------------------------------------------===//
// Inputs and initializers
//===----------------------------------------------------------------------===//

BlockArgument GraphTranslator::addArgument(RankedTensorType type, RoleAttr role,
                                           Location loc) {
  unsigned index = func.getNumArguments();
  DictionaryAttr attributes;
  if (role)
    attributes =
        builder.getDictionaryAttr(builder.getNamedAttr(kRoleAttr, role));
  (void)func.insertArgument(index, type, attributes, loc);
  return func.getArgument(index);
}

/// The sizes of an input: as asked for, else as declared.
std::optional<SmallVector<int64_t>>
GraphTranslator::shapeOf(const NamedType &input) {
  std::string where = "input '" + input.name + "'";
  SmallVector<int64_t> shape;
  auto given = options.shapes.find(input.name);
  if (given != options.shapes.end()) {
    shape.assign(given->second.begin(), given->second.end());
    bool fits =
        !input.type.hasShape || input.type.shape.size() == given->second.size();
    if (fits)
      for (auto [declared, size] : llvm::zip(input.type.shape, given->second))
        fits &= declared.size < 0 || declared.size == size;
    if (!fits)
      return misuse("--shape=" + input.name,
                    "is not what the model declares of '" + input.name + "'"),
             std::nullopt;
    for (auto [declared, size] : llvm::zip(input.type.shape, shape))
      if (auto named = options.dims.find(declared.name);
          named != options.dims.end() && named->second != size)
        misuse("--shape=" + input.name,
               "gives '" + declared.name + "' the size " +
                   std::to_string(size) + ", but --dim=" + declared.name +
                   " says " + std::to_string(named->second));
    return shape;
  }
  if (!input.type.hasShape)
    return misuse(where, "has no declared shape; give it with --shape=" +
                             input.name + "=2x3"),
           std::nullopt;
  std::string missing;
  for (const Dim &dim : input.type.shape) {
    auto named = options.dims.find(dim.name);
    if (dim.size >= 0)
      shape.push_back(dim.size);
    else if (named != options.dims.end())
      shape.push_back(named->second);
    else if (!dim.name.empty())
      missing += (missing.empty() ? "" : " ") + ("--dim=" + dim.name) + "=N";
    else
      missing = "--shape=" + input.name + "=...";
  }
  if (!missing.empty())
    return misuse(where,
                  "has a dimension of no fixed size; give it with " + missing),
           std::nullopt;
  return shape;
}

void GraphTranslator::addInput(const NamedType &input, Scope &scope) {
  std::string where = "input '" + input.name + "'";
  auto given = options.values.find(input.name);
  if (given != options.values.end()) {
    const TensorData &data = *given->second;
    if (input.type.form == ValueType::Form::Tensor &&
        input.type.kind != data.kind)
      misuse("--value=" + input.name,
             "expected a value of " + spelling(input.type.kind) +
                 ", but got one of " + spelling(data.kind));
    scope.names[input.name] = given->second;
    return;
  }
  scope.broken.insert(input.name);
  if (input.name.empty())
    return; // checkNames has said so
  if (input.type.form != ValueType::Form::Tensor)
    return problem(where, "unsupported: an input that is no dense tensor",
                   true);
  bool isWide = !isNarrow(input.type.kind);
  Type element =
      elementTypeOf(isWide ? input.type.kind : carrierOf(input.type.kind),
                    builder.getContext());
  if (!element)
    problem(where, "unsupported: elements of type " + spelling(input.type.kind),
            true);
  auto shape = shapeOf(input);
  if (!shape || !element)
    return;
  auto type = RankedTensorType::get(*shape, element);
  if (!isTensorType(type))
    return problem(where,
                   llvm::is_contained(*shape, 0)
                       ? "unsupported: a tensor without elements"
                       : "the tensor is too large",
                   llvm::is_contained(*shape, 0));
  auto role = RoleAttr::get(builder.getContext(), RoleKind::Input, input.name);
  if (options.inputGradients && isWide && isDifferentiableType(type))
    role = role.withUnit(RoleAttr::kRequiresGrad);
  scope.broken.erase(input.name);
  Datum &datum = scope.names[input.name];
  datum = Value(addArgument(type, role, location(input.name)));
  if (!isWide)
    datum.kind = input.type.kind;
}

void GraphTranslator::addInitializers(const Graph &graph, Scope &scope) {
  for (const TensorPtr &data : graph.initializers) {
    if (!data) // its mistake was reported
      continue;
    if (!scope.names.emplace(data->name, datumOf(data)).second)
      problem("initializer '" + data->name + "'",
              "expected names to be unique, but this one is there twice");
    if (scope.isMain && !isNarrow(data->kind))
      addCandidate(data, data->name);
  }
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

/// Parameters are the float initializers of rank 1 and more with several
/// elements, or one and the name of a parameter (the bias of a layer with one
/// output); other scalars are numbers of the model, such as the bounds of a
/// Clip, and masks are constants (`masks`).
static bool looksLikeWeights(const TensorData &data, StringRef name) {
  return !data.shape.empty() && (data.elements() > 1 || namesParameter(name));
}

void GraphTranslator::addCandidate(const TensorPtr &data,
                                   const std::string &name) {
  if (!data || name.empty() ||
      !isa_and_nonnull<FloatType>(
          elementTypeOf(data->kind, builder.getContext())))
    return;
  trainable.insert(name);
  if (hasValuesOfMasks(*data))
    masks.insert(name);
  if (constants.count(name))
    return;
  candidates[data.get()] = name;
  keep.push_back(data);
}

Value GraphTranslator::asParameter(const TensorPtr &data, Location loc) {
  auto it = candidates.find(data.get());
  if (it == candidates.end() || data->elements() == 0)
    return {};
  const std::string &name = it->second;
  bool isWeight = looksLikeWeights(*data, name) && !masks.count(name);
  bool trained = isTrained(name, isWeight);
  if (!isWeight && !trained && !buffers.count(name)) {
    left.insert(name);
    return {};
  }
  RankedTensorType type = typeOf(*data, builder.getContext());
  if (!isTensorType(type))
    return {};
  auto role = RoleAttr::get(builder.getContext(), RoleKind::Param, name);
  if (trained)
    role = role.withUnit(RoleAttr::kRequiresGrad);
  double splat =
      data->isSplat
          ? numbersOf(TensorData{"", data->kind, {}, data->bytes, false, {}})[0]
          : 0;
  if (data->isSplat)
    role = role.with(
        "init",
        builder.getDictionaryAttr(
            {builder.getNamedAttr("kind", builder.getStringAttr("constant")),
             builder.getNamedAttr("value", builder.getF64FloatAttr(splat))}));
  Value argument = addArgument(type, role, location(name));
  parameters[argument] = data;
  arguments[data.get()] = argument;
  return argument;
}

Value GraphTranslator::materialize(const Datum &datum, Location loc,
                                   std::string &why) {
  if (datum.value)
    return datum.value;
  if (!datum.data) {
    why = datum.list ? "unsupported: a sequence where a tensor is expected"
                     : "expected a tensor, but got nothing";
    return {};
  }
  const TensorPtr &data = datum.data;
  if (auto it = arguments.find(data.get()); it != arguments.end())
    return it->second;
  RankedTensorType type = typeOf(*data, builder.getContext());
  if (!type) {
    why = "unsupported: elements of type " + spelling(data->kind);
    return {};
  }
  if (!isTensorType(type)) {
    why = data->elements() == 0 ? "unsupported: a tensor without elements"
                                : "the tensor is too large";
    return {};
  }
  if (Value parameter = asParameter(data, loc))
    return parameter;
  // Inside of a region a constant is made anew: it is seen only there.
  bool isOutside = builder.getInsertionBlock() == &func.getBody().front();
  if (auto it = made.find(data.get()); isOutside && it != made.end())
    return it->second;
  Value constant = ConstantOp::create(builder, loc,
                                      attributeOf(*data, builder.getContext()));
  if (isOutside) {
    made[data.get()] = constant;
    keep.push_back(data);
  }
  return constant;
}

TensorPtr GraphTranslator::knownData(const Datum &datum,
                                     SmallVectorImpl<Value> *unknown) {
  if (!datum.data)
    return datum.value ? known.of(datum.value, unknown) : nullptr;
  auto it = candidates.find(datum.data.get());
  if (it != candidates.end()) {
    constants.insert(it->second);
    // As an argument it would be seen to change.
    restart |= arguments.count(datum.data.get()) != 0;
    candidates.erase(it);
  }
  return datum.data;
}

Value GraphTranslator::randomState(Location loc) {
  if (random)
    return random;
  auto seed = builder.getDictionaryAttr(
      builder.getNamedAttr("kind", builder.getStringAttr("seed")));
  auto role = RoleAttr::get(builder.getContext(), RoleKind::State, "random")
                  .with(RoleAttr::kInit, seed);
  random =
      addArgument(RankedTensorType::get({2}, builder.getI64Type()), role, loc);
  return random;
}

/// Turns the arguments with new values into storage that is read first and
/// written last. The random state's offset grows by one a step.
void GraphTranslator::finishStates() {
  Block &block = func.getBody().front();
  if (random) {
    Location loc = random.getLoc();
    auto step = ConstantOp::create(
        builder, loc,
        DenseElementsAttr::get(cast<RankedTensorType>(random.getType()),
                               ArrayRef<int64_t>{0, 1}));
    updates[random] = AddOp::create(builder, loc, random, step);
  }
  for (auto [argument, value] : updates) {
    auto block_argument = cast<BlockArgument>(argument);
    auto type = cast<RankedTensorType>(argument.getType());
    OpBuilder first = OpBuilder::atBlockBegin(&block);
    unsigned index = block_argument.getArgNumber();
    Location loc = argument.getLoc();
    argument.setType(RefType::of(type));
    auto read = ReadOp::create(first, loc, argument);
    argument.replaceAllUsesExcept(read, read);
    Value fresh = value == argument ? Value(read) : value;
    WriteOp::create(builder, fresh.getLoc(), fresh, argument);
    if (argument != random) {
      RoleAttr old = roleOfArgument(func, index);
      auto role =
          RoleAttr::get(builder.getContext(), RoleKind::State, old.getName());
      if (auto init = old.getProperties().get("init"))
        role = role.with(RoleAttr::kInit, init);
      setRoleOfArgument(func, index, role);
    }
  }
  func.setFunctionType(
      builder.getFunctionType(block.getArgumentTypes(), func.getResultTypes()));
}

//===----------------------------------------------------------------------===//
// The whole
//===----------------------------------------------------------------------===//

const Datum *GraphTranslator::find(const std::string &name, const Scope &scope,
                                   bool &isBroken) const {
  isBroken = false;
  for (const Scope *s = &scope; s; s = s->outer) {
    auto it = s->names.find(name);
    if (it != s->names.end())
      return &it->second;
    if (s->broken.count(name)) {
      isBroken = true;
      return nullptr;
    }
  }
  return nullptr;
}

/// Other runtimes warn of it, too: what follows from the nodes counts.
static void warnOfShape(const NamedType &output, Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  const std::vector<Dim> &declared = output.type.shape;
  if (!output.type.hasShape || !type)
    return;
  bool fits = static_cast<int64_t>(declared.size()) == type.getRank();
  if (fits)
    for (auto [dim, size] : llvm::zip(declared, type.getShape()))
      fits &= dim.size < 0 || dim.size == size;
  if (fits)
    return;
  std::string text;
  for (const Dim &dim : declared)
    text += (text.empty() ? "" : ", ") +
            (dim.size < 0 ? "?" : std::to_string(dim.size));
  emitWarning(value.getLoc())
      << "output '" << printable(output.name) << "' has the shape ["
      << type.getShape() << "], but the model declares [" << text << "]";
}

void GraphTranslator::addOutputs(const Graph &graph, Scope &scope) {
  SmallVector<Value> values;
  SmallVector<RoleAttr> roles;
  std::set<std::string> names;
  if (graph.outputs.empty())
    problem("the graph", "expected at least one output, but got none");
  for (const NamedType &output : graph.outputs) {
    std::string where = "output '" + output.name + "'";
    if (!names.insert(output.name).second) {
      problem(where, "expected names to be unique, but this one is there "
                     "twice");
      continue;
    }
    bool isBroken;
    const Datum *datum = find(output.name, scope, isBroken);
    if (isBroken || output.name.empty())
      continue;
    if (!datum || !*datum) {
      problem(where, "expected a node that makes it, but there is none");
      continue;
    }
    std::string why;
    Value value = materialize(*datum, location(output.name), why);
    if (!value) {
      problem(where, why, StringRef(why).starts_with("unsupported"));
      continue;
    }
    warnOfShape(output, value);
    values.push_back(value);
    roles.push_back(
        RoleAttr::get(builder.getContext(), RoleKind::Output, output.name));
  }
  if (loss) {
    if (names.count("loss"))
      problem("output 'loss'",
              "expected another name: --loss makes an output of this one");
    values.push_back(loss);
    roles.push_back(
        RoleAttr::get(builder.getContext(), RoleKind::Output, "loss"));
  }
  auto end = func::ReturnOp::create(builder, func.getLoc(), values);
  builder.setInsertionPoint(end);
  finishStates();
  for (auto [i, role] : llvm::enumerate(roles)) {
    auto attributes =
        builder.getDictionaryAttr(builder.getNamedAttr(kRoleAttr, role));
    (void)func.insertResult(i, end.getOperand(i).getType(), attributes);
  }
}

/// Every name is defined once.
void GraphTranslator::checkNames(const Graph &graph) {
  std::set<std::string> names;
  auto expectName = [&](const std::string &name, const char *what) {
    if (name.empty())
      problem("the graph", std::string("expected ") + what +
                               " to have a name, but it is empty");
  };
  for (const NamedType &input : graph.inputs)
    expectName(input.name, "an input");
  for (const NamedType &output : graph.outputs)
    expectName(output.name, "an output");
  for (const TensorPtr &data : graph.initializers)
    expectName(data ? data->name : "?", "an initializer");
  for (const NamedType &input : graph.inputs)
    if (!names.insert(input.name).second)
      problem("input '" + input.name + "'",
              "expected names to be unique, but this one is there twice");
  for (const TensorPtr &data : graph.initializers)
    if (data)
      names.insert(data->name);
  for (const NodeData &node : graph.nodes)
    for (const std::string &output : node.outputs)
      if (!output.empty() && !names.insert(output).second)
        problem("node '" + labelOf(node) + "' (" + node.op + ")",
                "expected names to be unique, but '" + output +
                    "' is made twice");
}

void GraphTranslator::run(Import &to) {
  module =
      ModuleOp::create(builder.getUnknownLoc(), modelNameOf(model.graph.name));
  (*module)->setAttr(kPhaseAttr, builder.getStringAttr("capture"));
  builder.setInsertionPointToEnd(module->getBody());
  func = createGraphFunction(builder, location("graph"), "graph", {}, {});
  builder.setInsertionPointToEnd(&func.getBody().front());

  Scope scope;
  scope.isMain = true;
  scope.opsets = &model.opsets;
  checkNames(model.graph);
  findRoles(model.graph);
  findPartsOfLoss(model.graph);
  addInitializers(model.graph, scope);
  for (const NamedType &input : model.graph.inputs)
    if (!scope.names.count(input.name))
      addInput(input, scope);
  addNodes(model.graph, scope);
  if (makesLoss())
    addLoss(scope);
  addOutputs(model.graph, scope);
  checkChoices();

  to.problems = std::move(problems);
  to.neededValues = std::move(neededValues);
  if (!to.problems.empty())
    return;
  ScopedDiagnosticHandler handler(builder.getContext(), [&](Diagnostic
                                                                &diagnostic) {
    if (diagnostic.getSeverity() != DiagnosticSeverity::Error)
      return failure();
    to.problems.push_back({"the model", printable(diagnostic.str()), false});
    return success();
  });
  if (failed(verify(*module)))
    return;
  noteChoices();
  to.notes = std::move(notes);
  for (BlockArgument argument : func.getArguments())
    if (auto it = parameters.find(argument); it != parameters.end())
      to.weights[candidates[it->second.get()]] = it->second;
  to.module = std::move(module);
}

//===----------------------------------------------------------------------===//
// Imports
//===----------------------------------------------------------------------===//

static void countOperators(const Graph &graph,
                           std::map<std::string, int64_t> &counts) {
  for (const NodeData &node : graph.nodes) {
    ++counts[node.domain.empty() ? node.op : node.domain + "." + node.op];
    for (const onnx::Attribute &attribute : node.attributes)
      for (const auto &inner : attribute.graphs)
        countOperators(*inner, counts);
  }
}

Import onnx::importModel(const Model &model, const std::string &path,
                         const ImportOptions &options, MLIRContext &context) {
  context.loadDialect<TandemDialect, func::FuncDialect>();
  std::set<std::string> constants;
  while (true) {
    Import made;
    countOperators(model.graph, made.operators);
    GraphTranslator translator(model, path, options, context, constants);
    translator.run(made);
    // `constants` grows each time, and no initializer enters it twice.
    if (!translator.mustRestart())
      return made;
  }
}
