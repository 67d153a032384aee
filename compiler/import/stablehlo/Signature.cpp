//===- Signature.cpp - what arguments and results of a module are ---------===//
//
// JAX names each argument in its location (`loc("params['dense']['kernel']")`)
// and each result in an attribute (`jax.result_info`).
//
//===----------------------------------------------------------------------===//
#include "ir/Signature.h"
#include "compiler/import/Expressions.h"
#include "compiler/import/stablehlo/ModuleTranslator.h"
#include "ir/Ops.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::stablehlo;

/// A name that can stand in messages and manifests, and that `taken` lacks.
static std::string uniqueName(StringRef wanted, std::set<std::string> &taken) {
  std::string name;
  for (char c : wanted)
    name += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '_' : c;
  std::string made = name;
  for (int i = 2; !taken.insert(made).second; ++i)
    made = name + "_" + std::to_string(i);
  return made;
}

/// The argument `params` of a function, or what is `params` in an argument (the
/// variables of a module of Flax).
static bool isNamedParams(StringRef name) {
  return name == "params" || name.starts_with("params[") ||
         name.starts_with("params.") || name.contains("['params']");
}

bool ModuleTranslator::isTrained(StringRef name, Type type) const {
  if (options.loss.empty() || !isDifferentiableType(type))
    return false;
  bool isChosen = options.train.empty() ? isNamedParams(name)
                                        : matches(options.train, name.str());
  return isChosen && !matches(options.freeze, name.str());
}

void ModuleTranslator::findResults(func::FuncOp main) {
  std::set<std::string> taken;
  unsigned count = main.getNumResults();
  for (unsigned i = 0; i < count; ++i) {
    auto info = main.getResultAttrOfType<StringAttr>(i, "jax.result_info");
    std::string name = count == 1 ? "result" : "result" + std::to_string(i);
    if (info && !info.getValue().empty())
      name = info.getValue().starts_with("result")
                 ? info.getValue().str()
                 : "result" + info.getValue().str();
    else if (info)
      name = "result";
    results.push_back(uniqueName(name, taken));
  }
}

void ModuleTranslator::findArguments(func::FuncOp main) {
  std::set<std::string> taken;
  std::set<int64_t> aliased;
  for (BlockArgument argument : main.getArguments()) {
    unsigned i = argument.getArgNumber();
    Argument made;
    auto named = dyn_cast<NameLoc>(argument.getLoc());
    made.name = uniqueName(named && !named.getName().getValue().empty()
                               ? named.getName().getValue().str()
                               : "arg" + std::to_string(i),
                           taken);
    for (StringRef sharding : {"sdy.sharding", "mhlo.sharding"})
      if (main.getArgAttr(i, sharding))
        dropped.insert("annotations of sharding");
    // What JAX puts before the arguments: it would be one more input.
    if (auto constant =
            main.getArgAttrOfType<StringAttr>(i, "jax.global_constant"))
      missing(location(argument.getLoc()))
          << "the argument '" << constant.getValue()
          << "', which a function has that was exported for several platforms "
             "or symbolic sizes; export it for one (or write what serialize() "
             "gives to a .bin file), and for fixed shapes";
    if (auto alias =
            main.getArgAttrOfType<IntegerAttr>(i, "tf.aliasing_output")) {
      made.alias = alias.getInt();
      if (made.alias < 0 || made.alias >= main.getNumResults() ||
          !aliased.insert(made.alias).second ||
          main.getResultTypes()[made.alias] != argument.getType()) {
        wrong(location(argument.getLoc()))
            << "argument '" << made.name
            << "': expected 'tf.aliasing_output' to be a result of its type, "
               "which no other argument has";
        made.alias = -1;
      }
    }
    arguments.push_back(std::move(made));
  }
}

Value ModuleTranslator::addInput(RankedTensorType type, RoleAttr role,
                                 Location loc) {
  unsigned index = func.getNumArguments();
  (void)func.insertArgument(
      index, type,
      builder.getDictionaryAttr(builder.getNamedAttr(kRoleAttr, role)), loc);
  return func.getArgument(index);
}

void ModuleTranslator::addArguments(func::FuncOp main) {
  for (auto [argument, made] : llvm::zip(main.getArguments(), arguments)) {
    std::string why;
    Location loc = placeOfName(made.name);
    RankedTensorType type = typeOf(argument.getType(), why);
    if (!type) {
      missing(loc) << "argument '" << made.name << "': " << why;
      continue;
    }
    bool trains = isTrained(made.name, type);
    RoleKind kind = made.alias >= 0                      ? RoleKind::State
                    : isNamedParams(made.name) || trains ? RoleKind::Param
                                                         : RoleKind::Input;
    if (kind == RoleKind::State && trains) {
      misuse("'" + made.name +
             "' cannot be trained: the module updates it itself, for the "
             "function was exported with donated arguments");
      continue;
    }
    made.role = RoleAttr::get(builder.getContext(), kind, made.name);
    if (trains || (kind == RoleKind::Input && options.inputGradients &&
                   isDifferentiableType(type)))
      made.role = made.role.withUnit(RoleAttr::kRequiresGrad);
    values[argument] = addInput(type, made.role, loc);
  }
}

/// Says what is wrong with an expression: that it names nothing that it could.
void ModuleTranslator::checkChoices() {
  std::vector<std::string> names, trained;
  for (const Argument &one : arguments) {
    names.push_back(one.name);
    if (one.role && one.role.has(RoleAttr::kRequiresGrad) &&
        one.role.getKind() == RoleKind::Param)
      trained.push_back(one.name);
  }
  auto check = [&](const char *option, const std::string &expression) {
    if (expression.empty())
      return;
    for (StringRef part : alternativesOf(expression))
      if (llvm::none_of(names, [&](const std::string &name) {
            return matches(part.str(), name);
          }))
        misuse(Twine(option) + "=" + expression + ": '" + part +
               "' matches no argument; the arguments are " + listed(names));
  };
  check("--train", options.train);
  check("--freeze", options.freeze);
  if (!options.loss.empty() && trained.empty() && problems == 0)
    misuse("nothing is trained: --train=REGEX says which arguments are "
           "parameters (without it, those called 'params' are); the arguments "
           "are " +
           listed(names));
}

/// The loss that is asked for, as an output more, or found among them.
LogicalResult ModuleTranslator::addLossTo(ArrayRef<Value> made,
                                          SmallVectorImpl<Value> &outputs,
                                          SmallVectorImpl<RoleAttr> &roles) {
  if (!StringRef(options.loss).contains(':')) {
    std::vector<std::string> names;
    for (RoleAttr role : roles)
      names.push_back(role.getName().str());
    if (options.loss.empty() || llvm::is_contained(names, options.loss))
      return success();
    misuse("--loss=" + options.loss +
           ": expected the name of a result; the results are " + listed(names));
    return failure();
  }
  if (llvm::is_contained(results, "loss")) {
    misuse("--loss=" + options.loss +
           ": expected no result of the name 'loss', for it makes one");
    return failure();
  }
  Value loss = addLoss(made);
  if (!loss)
    return failure();
  outputs.push_back(loss);
  roles.push_back(
      RoleAttr::get(builder.getContext(), RoleKind::Output, "loss"));
  return success();
}

/// States are read first and written last.
void ModuleTranslator::finishStates(ArrayRef<Value> made) {
  Block &block = func.getBody().front();
  // What is written was computed before anything is.
  SmallVector<std::pair<Value, Value>> writes;
  for (auto [i, argument] : llvm::enumerate(arguments))
    if (argument.alias >= 0)
      writes.push_back({func.getArgument(i), made[argument.alias]});
  DenseMap<Value, Value> reads;
  for (auto [state, fresh] : writes) {
    auto type = cast<RankedTensorType>(state.getType());
    OpBuilder first = OpBuilder::atBlockBegin(&block);
    state.setType(RefType::of(type));
    auto read = ReadOp::create(first, state.getLoc(), state);
    state.replaceAllUsesExcept(read, read);
    reads[state] = read;
  }
  for (auto [state, fresh] : writes) {
    Value value = reads.contains(fresh) ? reads[fresh] : fresh;
    WriteOp::create(builder, state.getLoc(), value, state);
  }
  func.setFunctionType(
      builder.getFunctionType(block.getArgumentTypes(), func.getResultTypes()));
}

void ModuleTranslator::addResults(func::FuncOp main, ArrayRef<Value> made) {
  if (made.size() != results.size()) {
    wrong(location(main.getLoc()))
        << "expected " << results.size() << " results, but got " << made.size();
    return;
  }
  std::set<int64_t> updates;
  for (const Argument &argument : arguments)
    if (argument.alias >= 0)
      updates.insert(argument.alias);
  SmallVector<Value> outputs;
  SmallVector<RoleAttr> roles;
  for (auto [i, value] : llvm::enumerate(made)) {
    if (updates.count(static_cast<int64_t>(i)))
      continue;
    outputs.push_back(value);
    roles.push_back(
        RoleAttr::get(builder.getContext(), RoleKind::Output, results[i]));
  }
  if (failed(addLossTo(made, outputs, roles)))
    return;
  if (outputs.empty()) {
    wrong(location(main.getLoc()))
        << "expected a result that is no new value of an argument";
    return;
  }
  auto end = func::ReturnOp::create(builder, func.getLoc(), outputs);
  builder.setInsertionPoint(end);
  finishStates(made);
  for (auto [i, role] : llvm::enumerate(roles))
    (void)func.insertResult(
        i, end.getOperand(i).getType(),
        builder.getDictionaryAttr(builder.getNamedAttr(kRoleAttr, role)));
}

void ModuleTranslator::noteChoices() {
  Location loc = FileLineColLoc::get(builder.getContext(), path, 0, 0);
  std::vector<std::string> trained;
  int64_t numbers = 0, states = 0;
  for (auto [i, argument] : llvm::enumerate(arguments)) {
    states += argument.alias >= 0;
    if (argument.role.getKind() != RoleKind::Param ||
        !argument.role.has(RoleAttr::kRequiresGrad))
      continue;
    numbers +=
        cast<RankedTensorType>(func.getArgument(i).getType()).getNumElements();
    trained.push_back(argument.name);
  }
  if (!trained.empty())
    emitRemark(loc) << "trains " << trained.size() << " arguments of "
                    << numbers << " numbers: " << listed(trained);
  if (states)
    emitRemark(loc) << states
                    << " arguments are states, which the program updates: they "
                       "were donated";
  for (const std::string &what : dropped)
    emitRemark(loc) << what
                    << " are left out: the program is compiled for one "
                       "device";
}
