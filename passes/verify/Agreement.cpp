//===- Agreement.cpp - what the programs of a module say of one value -----===//
#include "passes/verify/Agreement.h"

#include "ir/IndexRange.h"
#include "ir/Keys.h"
#include "ir/Nearest.h"
#include "ir/Signature.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace tandem;

namespace {

/// The values of the graph that a program takes, and its outputs, by name.
struct Program {
  mutable func::FuncOp func; ///< a handle, whose getters are not const
  llvm::MapVector<StringRef, unsigned> values; ///< arguments
  unsigned numCotangents = 0;                  ///< arguments
  llvm::StringSet<> grads, updates;            ///< results
  llvm::MapVector<StringRef, Type> outputs;    ///< results, or views of others

  explicit Program(func::FuncOp func);
  RoleAttr role(unsigned argument) const {
    return roleOfArgument(func, argument);
  }
};

class Agreement {
public:
  Agreement(ModuleOp module, StringRef phase) : module(module), phase(phase) {}
  LogicalResult check();

private:
  InFlightDiagnostic error(func::FuncOp func) {
    failed = true;
    return func.emitError() << "phase '" << phase << "' left ";
  }
  std::optional<Program> program(StringRef name);
  void sameValues(const Program &program, const Program &graph);
  void knownValues(const Program &program, const Program &graph);
  void sameOutputs(const Program &program, const Program &graph);
  void gradients(const Program &taker, const Program &giver);
  void updates(const Program &backward, const Program &forward);

  ModuleOp module;
  StringRef phase;
  bool failed = false;
};

} // namespace

Program::Program(func::FuncOp func) : func(func) {
  for (unsigned i = 0, n = func.getNumArguments(); i < n; ++i)
    if (RoleAttr role = roleOfArgument(func, i);
        role && role.getKind() <= RoleKind::State && !role.has(RoleAttr::kPass))
      values.insert({role.getName().getValue(), i});
    else if (role && role.getKind() == RoleKind::Cotangent)
      ++numCotangents;
  for (unsigned i = 0, n = func.getNumResults(); i < n; ++i) {
    RoleAttr role = roleOfResult(func, i);
    StringRef name = role ? role.getName().getValue() : "";
    if (role && role.getKind() == RoleKind::Grad)
      grads.insert(name);
    if (role && role.getKind() == RoleKind::Update)
      updates.insert(name);
    if (role && role.getKind() == RoleKind::Output)
      outputs.insert({name, func.getResultTypes()[i]});
  }
  if (auto aliases = func->getAttrOfType<ArrayAttr>(kAliasesAttr))
    for (auto entry : aliases.getAsRange<DictionaryAttr>())
      if (auto name = entry.getAs<StringAttr>(key::kName))
        if (auto type = entry.getAs<TypeAttr>(key::kType))
          outputs.insert({name.getValue(), type.getValue()});
}

std::optional<Program> Agreement::program(StringRef name) {
  if (auto func = module.lookupSymbol<func::FuncOp>(name))
    return Program(func);
  return std::nullopt;
}

/// What both take is one value.
void Agreement::sameValues(const Program &program, const Program &graph) {
  for (auto [name, i] : program.values) {
    const auto *found = graph.values.find(name);
    if (found == graph.values.end())
      continue;
    RoleAttr own = program.role(i), other = graph.role(found->second);
    if (own.getKind() != other.getKind()) {
      error(program.func) << "'" << own.str() << "' in '"
                          << program.func.getName() << "', but '" << other.str()
                          << "' in '" << graph.func.getName() << "'";
      continue;
    }
    Type type = program.func.getArgumentTypes()[i],
         wanted = graph.func.getArgumentTypes()[found->second];
    if (type != wanted)
      error(program.func) << "'" << own.str() << "' of type " << type << " in '"
                          << program.func.getName() << "', but of type "
                          << wanted << " in '" << graph.func.getName() << "'";
    for (StringRef property : std::initializer_list<StringRef>{
             "requires_grad", "init", "high", "low", "ignored", kSliceRanges,
             "grad_type"}) {
      Attribute mine = own.getProperties().get(property),
                theirs = other.getProperties().get(property);
      if (mine == theirs)
        continue;
      auto say = [&](InFlightDiagnostic &text, Attribute value) {
        if (!value)
          text << "without '" << property << "'";
        else if (isa<UnitAttr>(value))
          text << "with '" << property << "'";
        else
          text << "with '" << property << "' " << value;
      };
      InFlightDiagnostic text = error(program.func);
      text << "'" << own.str() << "' ";
      say(text, mine);
      text << " in '" << program.func.getName() << "', but ";
      say(text, theirs);
      text << " in '" << graph.func.getName() << "'";
    }
  }
}

/// It takes nothing but what the graph takes.
void Agreement::knownValues(const Program &program, const Program &graph) {
  SmallVector<StringRef> names;
  for (auto [name, i] : graph.values)
    names.push_back(name);
  for (auto [name, i] : program.values)
    if (!graph.values.contains(name))
      error(program.func) << "'" << program.role(i).str() << "' in '"
                          << program.func.getName() << "', which '"
                          << graph.func.getName() << "' does not take"
                          << didYouMean(name, names);
}

void Agreement::sameOutputs(const Program &program, const Program &graph) {
  SmallVector<StringRef> names;
  for (auto [name, type] : graph.outputs)
    names.push_back(name);
  for (auto [name, type] : program.outputs) {
    const auto *found = graph.outputs.find(name);
    if (found == graph.outputs.end())
      error(program.func) << "'output \"" << name << "\"' in '"
                          << program.func.getName() << "', which '"
                          << graph.func.getName() << "' does not give"
                          << didYouMean(name, names);
    else if (found->second != type)
      error(program.func) << "'output \"" << name << "\"' of type " << type
                          << " in '" << program.func.getName()
                          << "', but of type " << found->second << " in '"
                          << graph.func.getName() << "'";
  }
}

/// What `taker` says to require grad gets one from `giver`.
void Agreement::gradients(const Program &taker, const Program &giver) {
  for (auto [name, i] : taker.values) {
    RoleAttr role = taker.role(i);
    bool isWanted =
        role.has(RoleAttr::kRequiresGrad) && !role.has(RoleAttr::kNoGrad);
    bool isGiven = giver.grads.contains(name);
    if (isWanted && !isGiven)
      error(giver.func) << "no 'grad of \"" << name << "\"' in '"
                        << giver.func.getName() << "', although '" << role.str()
                        << "' requires grad";
    else if (isGiven && !isWanted)
      error(giver.func) << "'grad of \"" << name << "\"' in '"
                        << giver.func.getName() << "', although '" << role.str()
                        << "' gets none";
  }
}

/// Of each param with a gradient @update and @step make the new value.
void Agreement::updates(const Program &backward, const Program &forward) {
  auto update = program("update");
  if (!update)
    return;
  for (auto [name, i] : forward.values)
    if (forward.role(i).getKind() == RoleKind::Param &&
        backward.grads.contains(name) && !update->updates.contains(name))
      error(update->func) << "no 'update of \"" << name
                          << "\"' in 'update', although it has a gradient";
  auto step = program("step");
  if (!step)
    return;
  // A step differentiates the loss, which need not reach all that others do.
  bool isAll = backward.numCotangents < 2;
  for (const auto &entry : update->updates)
    if (isAll && !step->updates.contains(entry.getKey()))
      error(step->func) << "no 'update of \"" << entry.getKey()
                        << "\"' in 'step', although 'update' makes it";
  // The optimizer's own states.
  for (auto [name, i] : step->values)
    if (!forward.values.contains(name) && !update->values.contains(name))
      error(step->func) << "'" << step->role(i).str()
                        << "' in 'step', which neither 'forward' nor 'update' "
                           "takes";
  sameValues(*step, *update);
}

LogicalResult Agreement::check() {
  auto joint = program("joint"), evaluate = program("evaluate"),
       forward = program("forward"), backward = program("backward");
  auto graph = joint ? joint : forward;
  if (!graph)
    return success();
  if (evaluate) {
    sameValues(*evaluate, *graph);
    knownValues(*evaluate, *graph);
    sameOutputs(*evaluate, *graph);
  }
  if (joint)
    gradients(*joint, *joint);
  for (StringRef name : {"backward", "update", "accumulation", "norm", "step",
                         "accumulate", "grad_forward", "grad_backward"}) {
    auto other = program(name);
    if (!other)
      continue;
    sameValues(*other, *graph);
    if (name == "backward")
      knownValues(*other, *graph);
    if (name == "step" || name == "accumulate")
      sameOutputs(*other, *graph);
  }
  if (forward && backward) {
    gradients(*forward, *backward);
    updates(*backward, *forward);
  }
  return failure(failed);
}

LogicalResult tandem::checkAgreement(ModuleOp module, StringRef phase) {
  return Agreement(module, phase).check();
}
