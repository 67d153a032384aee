//===- GraphTranslator.cpp - the module of one exported program -----------===//
#include "compiler/import/torch/GraphTranslator.h"
#include "compiler/capture/DemoteRefs.h"
#include "compiler/capture/Names.h"
#include "compiler/import/torch/ElementTypes.h"
#include "compiler/import/torch/Import.h"
#include "ir/Ops.h"
#include "ir/Signature.h"
#include "ir/TiedNames.h"
#include "ir/Where.h"
#include "ir/ops/Inference.h"

#include "mlir/IR/Verifier.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::torch;
using Form = Argument::Form;

/// Graphs in graphs in ...
static constexpr int kMostDepth = 64;

GraphTranslator::GraphTranslator(const Program &program,
                                 const std::string &path,
                                 const ImportOptions &options,
                                 MLIRContext &context)
    : builder(&context), program(program), path(path), options(options) {}

void GraphTranslator::problem(const std::string &where, const std::string &text,
                              bool isUnsupported) {
  using artifact::printable;
  problems.push_back({printable(where), printable(text), isUnsupported});
}

void GraphTranslator::misuse(const std::string &option,
                             const std::string &text) {
  using artifact::printable;
  problems.push_back({printable(option), printable(text), false, true});
}

//===----------------------------------------------------------------------===//
// Inputs
//===----------------------------------------------------------------------===//

RankedTensorType GraphTranslator::typeOf(const TensorMeta &meta,
                                         const std::string &where) {
  Type element = elementTypeOf(meta.dtype, builder.getContext());
  if (!element || !meta.isDense)
    problem(where,
            element ? "unsupported: a tensor that is not dense"
                    : "unsupported: elements of type " + spellingOf(meta.dtype),
            true);
  SmallVector<int64_t> shape;
  std::vector<std::string> unknown;
  bool isKnown = true;
  for (const Size &size : meta.sizes) {
    auto value = evaluate(size, symbols, &unknown);
    isKnown &= value && *value >= 0;
    shape.push_back(value.value_or(1));
    if (!value && unknown.empty())
      problem(where, "unsupported: the size " + size.expression, true);
  }
  if (!element || !isKnown)
    return {};
  auto type = RankedTensorType::get(shape, element);
  if (isTensorType(type))
    return type;
  problem(where, "the tensor is too large");
  return {};
}

BlockArgument GraphTranslator::addArgument(RankedTensorType type, RoleAttr role,
                                           Location loc) {
  unsigned index = func.getNumArguments();
  auto attributes =
      builder.getDictionaryAttr(builder.getNamedAttr(kRoleAttr, role));
  (void)func.insertArgument(index, RefType::of(type), attributes, loc);
  return func.getArgument(index);
}

void GraphTranslator::addInput(const InputSpec &input, Scope &to) {
  if (input.kind == InputSpec::Kind::Known)
    return; // its value is in the graph
  const std::string name =
      input.argument.names.empty() ? "" : input.argument.names[0];
  std::string where =
      input.target.empty() ? "input '" + name + "'" : "'" + input.target + "'";
  if (input.kind == InputSpec::Kind::Other)
    return problem("the signature",
                   "unsupported: an input of kind '" + input.what + "'", true);
  if (input.argument.form != Form::Tensor) {
    if (input.argument.form == Form::Int ||
        input.argument.form == Form::Float || input.argument.form == Form::Bool)
      return; // decided when it was exported, or by symbols
    if (input.argument.form != Form::None && input.argument.form != Form::Text)
      problem("the signature", "unsupported: an input that is no dense tensor",
              true);
    return;
  }
  to.refs[name] = Value();
  auto meta = program.graph.tensors.find(name);
  if (meta == program.graph.tensors.end())
    return problem(where, "the graph does not say its type");
  RankedTensorType type = typeOf(meta->second, where);
  if (!type)
    return;
  Location loc =
      placeWithoutLine(path, input.target.empty() ? name : input.target, "", 0,
                       builder.getContext());
  MLIRContext *context = builder.getContext();
  bool isDifferentiable = isDifferentiableType(type);
  if (input.kind == InputSpec::Kind::User) {
    auto role = RoleAttr::get(context, RoleKind::Input, name);
    if ((meta->second.requiresGrad || options.inputGradients) &&
        isDifferentiable)
      role = role.withUnit(RoleAttr::kRequiresGrad);
    to.refs[name] = addArgument(type, role, loc);
    return;
  }
  auto value = program.values.find(input.target);
  TensorPtr data = value == program.values.end() ? nullptr : value->second;
  auto unread = program.unread.find(input.target);
  if (data && (data->shape != std::vector<int64_t>(type.getShape().begin(),
                                                   type.getShape().end()) ||
               kindOf(meta->second.dtype) != data->kind))
    return problem(where, "the archive's value of it has another type");
  if (!data && unread == program.unread.end())
    return problem(where, "the archive has no value of it");
  // What is no part of a state_dict, and what nobody can give, is a constant.
  if (input.kind == InputSpec::Kind::Constant ||
      (input.kind == InputSpec::Kind::Buffer && !input.isPersistent)) {
    if (!data)
      return problem(where, "unsupported: its value " + unread->second, true);
    DenseElementsAttr elements = elementsOf(type, *data);
    Value ref = MakeRefOp::create(builder, loc,
                                  ConstantOp::create(builder, loc, elements));
    to.refs[name] = ref;
    constants.emplace_back(where, ref);
    return;
  }
  // PyTorch before 2.8 has a parameter again for each graph that reads it.
  if (auto same = placed.find(input.target); same != placed.end()) {
    to.refs[name] = same->second;
    return;
  }
  bool isParameter = input.kind == InputSpec::Kind::Parameter;
  // One parameter by several names is one.
  if (data && isParameter)
    for (const auto &[other, argument] : parameters)
      if (program.values.at(other) == data) {
        to.refs[name] = argument;
        placed[input.target] = argument;
        return addName(argument, input.target);
      }
  auto role = RoleAttr::get(
      context, isParameter ? RoleKind::Param : RoleKind::State, input.target);
  if (isParameter && isDifferentiable) {
    trainable.insert(input.target);
    if (isTrained(input.target))
      role = role.withUnit(RoleAttr::kRequiresGrad);
  }
  if (data)
    weights[input.target] = data;
  else
    notes.push_back(where + " " + unread->second +
                    "; give it with --params when it is trained");
  BlockArgument argument = addArgument(type, role, loc);
  to.refs[name] = argument;
  placed[input.target] = argument;
  if (data)
    kept.emplace_back(input.target, argument);
  if (data && isParameter)
    parameters.emplace(input.target, argument);
}

void GraphTranslator::addName(BlockArgument parameter,
                              const std::string &name) {
  unsigned index = parameter.getArgNumber();
  RoleAttr role = roleOfArgument(func, index);
  SmallVector<Attribute> names;
  if (auto known = role.getProperty<ArrayAttr>(kAlsoCalled))
    llvm::append_range(names, known);
  names.push_back(builder.getStringAttr(name));
  setRoleOfArgument(func, index,
                    role.with(kAlsoCalled, builder.getArrayAttr(names)));
  notes.push_back("'" + role.getName().str() + "' is also called '" + name +
                  "': one parameter, which is trained once");
}

void GraphTranslator::addInputs(Scope &to) {
  if (program.inputs.size() != program.graph.inputs.size())
    return problem("the signature",
                   "expected as many inputs as the graph has, " +
                       std::to_string(program.graph.inputs.size()) +
                       ", but got " + std::to_string(program.inputs.size()));
  for (const InputSpec &input : program.inputs)
    addInput(input, to);
}

/// The state of random numbers; its offset grows by one a step.
Value GraphTranslator::randomState() {
  if (randomValue)
    return randomValue;
  auto seed = builder.getDictionaryAttr(
      builder.getNamedAttr("kind", builder.getStringAttr("seed")));
  auto role = RoleAttr::get(builder.getContext(), RoleKind::State, "random")
                  .with(RoleAttr::kInit, seed);
  Location loc = func.getLoc();
  random =
      addArgument(RankedTensorType::get({2}, builder.getI64Type()), role, loc);
  OpBuilder first = OpBuilder::atBlockBegin(&func.getBody().front());
  randomValue = ReadOp::create(first, loc, random);
  return randomValue;
}

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

std::pair<std::string, std::string> torch::operatorOf(StringRef target) {
  StringRef rest = target;
  if (!rest.consume_front("torch.ops."))
    return {target.str(), ""};
  auto [space, name] = rest.split('.');
  auto [op, overload] = name.split('.');
  return {(space + "." + op).str(),
          overload == "default" ? "" : overload.str()};
}

/// The place in the user's code: the innermost frame that is not PyTorch's.
Location GraphTranslator::locationOf(const NodeData &data, StringRef op) {
  StringRef file = path;
  unsigned line = 0;
  StringRef trace = data.stackTrace;
  SmallVector<StringRef> lines;
  trace.split(lines, '\n');
  for (StringRef one : lines) {
    StringRef text = one.trim();
    if (!text.consume_front("File \""))
      continue;
    auto [name, rest] = text.split('"');
    unsigned number;
    if (!rest.consume_front(", line ") || rest.consumeInteger(10, number) ||
        (line && name.contains("/torch/")))
      continue;
    file = name;
    line = number;
  }
  // "L__self__,,M;L__self__c,c,Conv2d": the last one's second field.
  StringRef module = data.modules;
  module =
      module.rsplit(';').second.empty() ? module : module.rsplit(';').second;
  module = module.split(',').second.split(',').first;
  std::string name = module.empty() ? op.str() : (module + "." + op).str();
  Location place =
      FileLineColLoc::get(builder.getContext(), file, line, line ? 1 : 0);
  return NameLoc::get(builder.getStringAttr(name), place);
}

/// Whether a node makes numbers that follow from sizes, or checks some.
bool GraphTranslator::isSizes(const NodeData &data, const Graph &graph) const {
  static constexpr StringRef checks[] = {"aten._assert_scalar",
                                         "aten._assert_async",
                                         "aten._assert_tensor_metadata",
                                         "aten.sym_constrain_range",
                                         "aten.sym_constrain_range_for_size",
                                         "aten._functional_assert_scalar",
                                         "aten._functional_assert_async"};
  if (llvm::is_contained(checks, operatorOf(data.target).first))
    return true;
  return !data.outputs.empty() &&
         llvm::all_of(data.outputs, [](const Argument &output) {
           return output.form == Form::Int || output.form == Form::Float ||
                  output.form == Form::Bool;
         });
}

/// Gives the ops that were made since `before` what their graph says of them.
void GraphTranslator::tag(Operation *before) {
  if (mode.differentiates)
    return;
  Block *block = builder.getInsertionBlock();
  auto first = before ? std::next(before->getIterator()) : block->begin();
  for (Operation &op : llvm::make_range(first, builder.getInsertionPoint())) {
    if (isa<ReadOp, MakeRefOp, ConstantOp>(op))
      continue;
    op.setAttr(kNoGradAttr, builder.getUnitAttr());
  }
}

/// Whether a node reads what was not made, which was said where it is made.
static bool readsWrong(const NodeData &data,
                       const GraphTranslator::Scope &scope) {
  return llvm::any_of(data.inputs, [&](const NamedArgument &input) {
    return llvm::any_of(input.argument.names, [&](const std::string &name) {
      auto it = scope.refs.find(name);
      return it != scope.refs.end() && !it->second;
    });
  });
}

/// Whether an overload of several results is given tensors for them:
/// "sort.values", "max.dim_max", "var_mean.correction_out".
static bool isGivenResults(StringRef overload) {
  return overload == "out" || overload.ends_with("_out") ||
         overload.starts_with("values") || overload.ends_with("_values") ||
         overload.ends_with("dim_max") || overload.ends_with("dim_min");
}

void GraphTranslator::addNode(const NodeData &data, Scope &to) {
  if (isSizes(data, *to.graph))
    return;
  auto [op, overload] = operatorOf(data.target);
  StringRef name = op;
  const Translation *translation = opTable().find(name, overload);
  // What writes is what it computes, and a write. "__and__" does not.
  bool isInPlace = false;
  if (!translation && name.ends_with("_") && !name.ends_with("__")) {
    translation = opTable().find(name.drop_back(), overload);
    isInPlace = true;
  }
  StringRef bare = name.split('.').second.drop_back(isInPlace ? 1 : 0);
  Location loc = locationOf(data, bare);
  Node node(*this, data, *to.graph, loc);
  node.op_ = bare.str();
  node.overload_ = overload;
  node.names_ = node.resultNames();
  node.results.resize(node.names_.size());
  std::string at = placeOf(loc);
  if (auto named = dyn_cast<NameLoc>(loc))
    at = placeOf(named.getChildLoc());
  node.place =
      (at.empty() ? "" : at + ": ") + "node '" +
      (data.name.empty() ? (node.names_.empty() ? bare.str() : node.names_[0])
                         : data.name) +
      "' (" + op + (overload.empty() ? "" : "." + overload) + ")";
  bool writesSeveral = node.names_.size() > 1 && isGivenResults(overload);
  if (!translation || writesSeveral) {
    (void)node.unsupported("the operator '" + op + "'" +
                           (translation ? " with several tensors that it "
                                          "writes its results to"
                                        : ""));
    return finish(node, to, false);
  }
  // What reads it cannot be told to be wrong; graphs inside have other nodes.
  bool readsUnknown = readsWrong(data, to);
  if (readsUnknown &&
      llvm::none_of(data.inputs, [](const NamedArgument &input) {
        return input.argument.form == Form::Graph;
      })) {
    node.failed_ = true;
    return finish(node, to, false);
  }
  Block *block = builder.getInsertionBlock();
  Operation *before = block->empty() ? nullptr : &block->back();
  ScopedDiagnosticHandler handler(
      builder.getContext(), [&](Diagnostic &diagnostic) {
        if (diagnostic.getSeverity() != DiagnosticSeverity::Error)
          return failure();
        std::string text = diagnostic.str();
        StringRef rest = text;
        (void)(rest.consume_front("unsupported: ") ||
                       rest.consume_front("unsupported")
                   ? node.unsupported(rest)
                   : node.error(text));
        return success();
      });
  size_t known = problems.size();
  bool isMade = succeeded((*translation)(node)) && !node.failed_;
  if (!isMade && problems.size() == known && !readsUnknown)
    (void)node.error("cannot be translated");
  finish(node, to, isInPlace);
  tag(before);
}

bool torch::isRead(const std::string &name, const Graph &graph) {
  auto names = [&](const Argument &argument) {
    return llvm::is_contained(argument.names, name);
  };
  return llvm::any_of(graph.outputs, names) ||
         llvm::any_of(graph.nodes, [&](const NodeData &node) {
           return llvm::any_of(node.inputs, [&](const NamedArgument &input) {
             return names(input.argument);
           });
         });
}

/// Binds the results, which have to be what the archive says they are.
void GraphTranslator::finish(Node &node, Scope &to, bool isInPlace) {
  if (!node.failed_ && !node.results.empty()) {
    if (isInPlace && !node.data_.inputs.empty())
      node.writeTo(node.data_.inputs[0].name);
    else if (node.has("out"))
      node.writeTo("out");
  }
  for (size_t i = 0; i < node.names_.size(); ++i) {
    if (node.names_[i].empty())
      continue;
    Value made = node.failed_ ? Value() : node.results[i];
    if (!node.failed_ && !made) {
      if (!node.wants(i))
        continue;
      (void)node.unsupported("its result " + Twine(i));
    } else if (RankedTensorType type = node.resultType(i); made && type) {
      auto got = cast<RefType>(made.getType());
      // Some versions of PyTorch are wrong about states of an LSTM.
      if (got != RefType::of(type) && isRead(node.names_[i], *to.graph)) {
        auto textOf = [](Type type) {
          std::string text;
          llvm::raw_string_ostream(text) << type;
          return text;
        };
        (void)node.error("expected to make " + textOf(type) +
                         " as the archive says, but made " +
                         textOf(got.getTensorType()));
        made = Value();
      }
    }
    to.refs[node.names_[i]] = made;
  }
}

void GraphTranslator::addNodes(const Graph &graph, Scope &to) {
  Scope *outside = scope;
  scope = &to;
  for (const NodeData &data : graph.nodes)
    addNode(data, to);
  scope = outside;
}

FailureOr<SmallVector<Value>>
GraphTranslator::translate(const Graph &graph, ArrayRef<Value> inputs) {
  if (++depth > kMostDepth)
    return failure();
  Scope inner;
  inner.graph = &graph;
  bool isFine = inputs.size() == graph.inputs.size();
  for (auto [input, value] : llvm::zip(graph.inputs, inputs))
    if (input.form == Form::Tensor)
      inner.refs[input.names[0]] = value;
  SmallVector<Value> outputs;
  if (isFine)
    addNodes(graph, inner);
  for (const Argument &output : graph.outputs) {
    Value made;
    if (output.form == Form::Tensor)
      if (auto it = inner.refs.find(output.names[0]); it != inner.refs.end())
        made = it->second;
    isFine &= bool(made);
    outputs.push_back(made);
  }
  --depth;
  if (!isFine)
    return failure();
  return outputs;
}

//===----------------------------------------------------------------------===//
// The whole
//===----------------------------------------------------------------------===//

void GraphTranslator::run(Import &to) {
  std::string name = llvm::sys::path::stem(path).str();
  module = ModuleOp::create(builder.getUnknownLoc(), modelNameOf(name));
  (*module)->setAttr(kPhaseAttr, builder.getStringAttr("capture"));
  builder.setInsertionPointToEnd(module->getBody());
  func = createGraphFunction(
      builder, placeWithoutLine(path, "graph", "", 0, builder.getContext()),
      "graph", {}, {});
  builder.setInsertionPointToEnd(&func.getBody().front());

  Scope main;
  main.graph = &program.graph;
  bindSymbols();
  if (problems.empty()) {
    addInputs(main);
    addNodes(program.graph, main);
    addOutputs(main);
    checkChoices();
  }
  // Last, behind the list.
  if (llvm::any_of(problems, [](const ImportProblem &one) {
        return StringRef(one.text).starts_with("unsupported: the operator '");
      }))
    problem("hint",
            "an archive of exported.run_decompositions() may have other "
            "operators, which are supported",
            true);
  to.problems = std::move(problems);
  if (!to.problems.empty())
    return;
  ScopedDiagnosticHandler handler(
      builder.getContext(), [&](Diagnostic &diagnostic) {
        if (diagnostic.getSeverity() != DiagnosticSeverity::Error)
          return failure();
        to.problems.push_back(
            {"the model", artifact::printable(diagnostic.str()), false});
        return success();
      });
  if (failed(verify(*module)))
    return;
  noteChoices();
  to.notes = std::move(notes);
  to.weights = std::move(weights);
  to.module = std::move(module);
}

Import torch::importProgram(const Program &program, const std::string &path,
                            const ImportOptions &options,
                            MLIRContext &context) {
  context.loadDialect<TandemDialect, func::FuncDialect>();
  Import made;
  GraphTranslator(program, path, options, context).run(made);
  return made;
}
