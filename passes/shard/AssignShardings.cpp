//===- AssignShardings.cpp - who has what of arguments and results --------===//
//
// From what the module asks for (`tandem.parallel`, `tandem.shard`): the
// property `sharding` of roles. The sharding of a value is that of its
// gradient, its new value and its cotangent, but for what a plan says of
// gradients and of an optimizer's states.
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/shard/Distribution.h"
#include "passes/shard/ParallelSpec.h"

#include "ir/Pipeline.h"
#include "ir/Sharding.h"
#include "ir/Signature.h"
#include "ir/UpdatePrograms.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Regex.h"

namespace tandem {
#define GEN_PASS_DEF_ASSIGNSHARDINGS
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;

namespace {

/// What the module asks for.
struct Plan {
  Plan(ModuleOp module, const MeshAxes &mesh) {
    if (auto kinds = module->getAttrOfType<ArrayAttr>(kParallelAttr))
      for (auto kind : kinds.getAsRange<StringAttr>())
        names.push_back(kind.getValue());
    if (auto shard = module->getAttrOfType<DictionaryAttr>(kShardAttr))
      for (NamedAttribute entry : shard)
        patterns.push_back({entry.getName().strref(),
                            dyn_cast<ArrayAttr>(entry.getValue()), false});
    data = mesh.find("data");
    sequence = mesh.find("sequence");
  }
  bool asksFor(StringRef name) const { return llvm::is_contained(names, name); }
  bool cutsRows() const {
    return asksFor("ddp") || asksFor("zero1") || asksFor("zero2") ||
           asksFor("fsdp");
  }
  bool cutsStates() const { return asksFor("zero1") || cutsGradients(); }
  bool cutsGradients() const { return asksFor("zero2") || asksFor("fsdp"); }

  struct Pattern {
    StringRef text;
    ArrayAttr sharding;
    bool isUsed;
  };
  SmallVector<StringRef> names;
  SmallVector<Pattern> patterns;
  /// What was said of values and outputs, by kind and name: programs agree.
  llvm::StringMap<Distribution> said;
  std::optional<unsigned> data, sequence;
};

class Assigner {
public:
  Assigner(func::FuncOp func, const MeshAxes &mesh, Plan &plan)
      : func(func), mesh(mesh), plan(plan) {}

  LogicalResult run();

private:
  using Shape = ArrayRef<int64_t>;
  static RankedTensorType tensor(Type type) {
    return cast<RankedTensorType>(type);
  }
  ModuleOp module() const { return func->getParentOfType<ModuleOp>(); }
  /// The name of the param that goes from one stage to another as this value.
  StringAttr paramOfCrossing(RoleAttr role) const {
    auto params = pipelineField<DictionaryAttr>(module(), pipeline::kParams);
    return params ? params.getAs<StringAttr>(role.getName()) : StringAttr();
  }
  void findBatch();
  Distribution ofValue(RoleAttr role, RankedTensorType type, Location loc);
  Distribution newValue(RoleAttr role, RankedTensorType type, Location loc);
  Distribution ofRows(RoleAttr role, RankedTensorType type) const;
  Distribution inPieces(Distribution where, RankedTensorType type) const;
  RoleAttr with(RoleAttr role, const Distribution &where, Type type) const;
  Distribution ofResult(RoleAttr role, RankedTensorType type, Location loc);
  RoleAttr withoutCutAlias(RoleAttr role) const;

  func::FuncOp func;
  const MeshAxes &mesh;
  Plan &plan;
  int64_t rows = 0, positions = 0;
  bool isWrong = false;
  llvm::StringMap<Distribution> values, outputs;
};

} // namespace

/// What the optimizer does with gradients; the rest is the model's.
static bool isOfOptimizer(func::FuncOp func) {
  return takesGradients(func.getName());
}

/// The first dimension of the first input that has one, and the second of the
/// first one that has two. A stage of a pipeline has those of the whole model.
void Assigner::findBatch() {
  auto look = [&](Shape shape) {
    if (shape.empty())
      return;
    if (!rows)
      rows = shape[0];
    if (!positions && shape.size() > 1 && shape[0] == rows)
      positions = shape[1];
  };
  if (auto inputs = pipelineField<ArrayAttr>(module(), pipeline::kInputs))
    for (auto input : inputs.getAsRange<DictionaryAttr>())
      look(
          tensor(input.getAs<TypeAttr>(pipeline::kType).getValue()).getShape());
  else
    for (BlockArgument argument : func.getArguments())
      if (roleOfArgument(func, argument.getArgNumber()).getKind() ==
          RoleKind::Input)
        look(tensor(argument.getType()).getShape());
}

Distribution Assigner::ofRows(RoleAttr role, RankedTensorType type) const {
  Distribution where(mesh.size());
  bool hasRows = type.getRank() > 0 && rows && type.getDimSize(0) == rows;
  // What goes from one stage to the next may have several lines for each row.
  if (role.getName().getValue().starts_with(kCrossingPrefix) && !hasRows &&
      type.getRank() > 0 && rows && plan.cutsRows())
    hasRows =
        type.getDimSize(0) % rows == 0 && rows % mesh.ranksOf(*plan.data) == 0;
  if (hasRows && plan.cutsRows())
    where[*plan.data] = Placement::cut(0);
  if (hasRows && plan.asksFor("sp") && type.getRank() > 1 &&
      type.getDimSize(1) == positions)
    where[*plan.sequence] = Placement::cut(1);
  return where;
}

/// The same, and cut over `data` along the first dimension that divides and
/// that nothing cuts; without one, along the first that has as many elements as
/// there are ranks; as it is where there is none.
Distribution Assigner::inPieces(Distribution where,
                                RankedTensorType type) const {
  int64_t n = mesh.ranksOf(*plan.data);
  if (!where[*plan.data].isWhole())
    return where;
  std::optional<int64_t> found;
  for (int64_t dim = type.getRank(); dim-- > 0;) {
    int64_t size = type.getDimSize(unsigned(dim));
    bool divides = size % n == 0;
    bool dividesFound = found && type.getDimSize(unsigned(*found)) % n == 0;
    if (where.axesOf(dim).empty() && (divides || (size >= n && !dividesFound)))
      found = dim;
  }
  if (found)
    where[*plan.data] = Placement::cut(*found);
  return where;
}

/// Of an input, param, state or output: as a pattern says, else as plans do.
Distribution Assigner::ofValue(RoleAttr role, RankedTensorType type,
                               Location loc) {
  auto [place, isNew] = plan.said.try_emplace(role.str());
  return isNew ? place->second = newValue(role, type, loc) : place->second;
}

Distribution Assigner::newValue(RoleAttr role, RankedTensorType type,
                                Location loc) {
  std::optional<Distribution> asked;
  StringRef by;
  // A param that goes through stages is where their plans have it.
  StringAttr param = paramOfCrossing(role);
  StringRef name = param ? param.getValue() : role.getName().getValue();
  for (Plan::Pattern &pattern : plan.patterns) {
    if (!llvm::Regex(("^(" + pattern.text + ")$").str()).match(name))
      continue;
    pattern.isUsed = true;
    std::string error;
    auto found = readSharding(mesh, pattern.sharding, type, error);
    if (!found)
      error =
          role.str() + ", which '" + pattern.text.str() + "' matches: " + error;
    else if (asked && *asked != *found)
      error = role.str() + ": '" + by.str() + "' asks for " +
              asked->str(mesh, type.getRank()) + ", and '" +
              pattern.text.str() + "' for " + found->str(mesh, type.getRank());
    if (!error.empty()) {
      isWrong = true;
      mlir::emitError(loc) << error;
      return Distribution(mesh.size());
    }
    asked = found;
    by = pattern.text;
  }
  bool isParam = role.getKind() == RoleKind::Param;
  bool goesByRows =
      role.getKind() == RoleKind::Input || role.getKind() == RoleKind::Output;
  if (asked)
    return isParam && plan.asksFor("fsdp") ? inPieces(*asked, type) : *asked;
  Distribution where(mesh.size());
  if (goesByRows && !role.getAlias() && !paramOfCrossing(role))
    return ofRows(role, type);
  return isParam && plan.asksFor("fsdp") ? inPieces(where, type) : where;
}

RoleAttr Assigner::with(RoleAttr role, const Distribution &where,
                        Type type) const {
  ArrayAttr sharding =
      where.toAttr(mesh, role.getContext(), tensor(type).getRank());
  return sharding ? role.with(RoleAttr::kSharding, sharding)
                  : role.without(RoleAttr::kSharding);
}

Distribution Assigner::ofResult(RoleAttr role, RankedTensorType type,
                                Location loc) {
  auto known = values.find(role.getName());
  Distribution whole(mesh.size());
  switch (role.getKind()) {
  case RoleKind::Output:
    return outputs.try_emplace(role.getName(), ofValue(role, type, loc))
        .first->second;
  case RoleKind::Update:
    return known == values.end() ? whole : known->second;
  case RoleKind::Grad: {
    if (known == values.end())
      return whole;
    auto value = findValue(func, role.getName());
    bool isParam =
        value && roleOfArgument(func, *value).getKind() == RoleKind::Param;
    return isParam && plan.cutsGradients() ? inPieces(known->second, type)
                                           : known->second;
  }
  default:
    return whole;
  }
}

/// Views are of whole values: an output that would be one of a value that ranks
/// have in pieces, or that is asked for in pieces, is a value of its own.
RoleAttr Assigner::withoutCutAlias(RoleAttr role) const {
  Alias alias = role.getAlias();
  if (!alias)
    return role;
  const auto &known = alias.output ? outputs : values;
  auto base = known.find((alias.output ? alias.output : alias.of).getValue());
  bool isCut = base != known.end() && !base->second.isWhole();
  isCut |= llvm::any_of(plan.patterns, [&](const Plan::Pattern &pattern) {
    return llvm::Regex(("^(" + pattern.text + ")$").str())
        .match(role.getName().getValue());
  });
  return isCut ? role.without(RoleAttr::kAlias) : role;
}

LogicalResult Assigner::run() {
  bool isUpdate = isOfOptimizer(func);
  findBatch();
  // Parameters first, whose states follow them.
  for (BlockArgument argument : func.getArguments()) {
    RoleAttr role = roleOfArgument(func, argument.getArgNumber());
    RankedTensorType type = tensor(argument.getType());
    if (role.getKind() == RoleKind::Cotangent)
      continue;
    Distribution where = shardingOfLocal(mesh, role);
    if (isUpdate && role.getKind() == RoleKind::State) {
      StringRef param = role.getName().getValue().split(':').second;
      auto of = values.find(param);
      if (of != values.end() &&
          tensor(func.getArgument(*findValue(func, param)).getType())
                  .getShape() == type.getShape())
        where = plan.cutsStates() ? inPieces(of->second, type) : of->second;
    } else if (!isUpdate && !role.getSharding()) {
      where = ofValue(role, type, argument.getLoc());
    }
    // A gradient has the name of its value.
    if (role.getKind() != RoleKind::Grad)
      values[role.getName()] = where;
    setRoleOfArgument(func, argument.getArgNumber(),
                      with(role, where, argument.getType()));
  }
  Operation *end = func.getBody().front().getTerminator();
  // Outputs that others are views of first.
  for (auto [i, value] : llvm::enumerate(end->getOperands())) {
    RoleAttr role = roleOfResult(func, unsigned(i));
    if (role.getKind() != RoleKind::Output || role.getAlias())
      continue;
    outputs[role.getName()] =
        role.getSharding()
            ? shardingOfLocal(mesh, role)
            : ofValue(role, tensor(value.getType()), value.getLoc());
  }
  SmallVector<RoleAttr> roles;
  for (auto [i, value] : llvm::enumerate(end->getOperands())) {
    RoleAttr role = withoutCutAlias(roleOfResult(func, unsigned(i)));
    if (!role.getSharding())
      role = with(role, ofResult(role, tensor(value.getType()), value.getLoc()),
                  value.getType());
    else if (role.getKind() == RoleKind::Output)
      outputs[role.getName()] = shardingOfLocal(mesh, role);
    roles.push_back(role);
  }
  setRolesOfResults(func, roles);
  for (BlockArgument argument : func.getArguments()) {
    RoleAttr role = roleOfArgument(func, argument.getArgNumber());
    if (role.getKind() != RoleKind::Cotangent || role.getSharding())
      continue;
    StringRef of = role.getName();
    bool isOfUpdate = of.consume_front("update of ");
    auto &known = isOfUpdate ? values : outputs;
    if (auto found = known.find(of); found != known.end())
      setRoleOfArgument(func, argument.getArgNumber(),
                        with(role, found->second, argument.getType()));
  }
  return failure(isWrong);
}

namespace {

struct AssignShardings : tandem::impl::AssignShardingsBase<AssignShardings> {
  void runOnOperation() final {
    ModuleOp module = getOperation();
    auto attribute = module->getAttrOfType<MeshAttr>(kMeshAttr);
    if (!attribute)
      return markAllAnalysesPreserved();
    MeshAxes mesh(attribute);
    Plan plan(module, mesh);
    if (failed(checkPlan(plan, mesh)))
      return signalPassFailure();
    bool isWrong = false, isFirst = false;
    for (auto func : module.getOps<func::FuncOp>()) {
      if (func->hasAttr(kLocalAttr))
        continue;
      isFirst |= !isOfOptimizer(func);
      isWrong |= failed(Assigner(func, mesh, plan).run());
    }
    // What is there later is not the model's.
    // What no value of a stage matches may be another stage's:
    // tandem-assign-stages has looked.
    if (isFirst && !Pipeline::of(module))
      for (const Plan::Pattern &pattern : plan.patterns)
        if (!pattern.isUsed) {
          isWrong = true;
          module.emitError() << "no input, param, state or output has a name "
                                "that '"
                             << pattern.text << "' matches, as the plan of "
                             << "shardings asks";
        }
    if (isWrong)
      signalPassFailure();
  }

  LogicalResult checkPlan(const Plan &plan, const MeshAxes &mesh) {
    bool isWrong = false;
    auto needs = [&](bool isAsked, std::optional<unsigned> axis,
                     StringRef name) {
      if (!isAsked || axis)
        return;
      isWrong = true;
      getOperation().emitError()
          << "expected the mesh (" << mesh.str() << ") to have an axis '"
          << name << "', which '" << kParallelAttr << "' needs";
    };
    for (StringRef name : plan.names)
      if (llvm::none_of(parallelKinds(), [&](const ParallelKind &kind) {
            return kind.name == name;
          })) {
        isWrong = true;
        getOperation().emitError()
            << "'" << kParallelAttr << "' names no plan: '" << name << "'";
      }
    needs(plan.cutsRows(), plan.data, "data");
    needs(plan.asksFor("sp"), plan.sequence, "sequence");
    if (plan.asksFor("tp") && plan.patterns.empty()) {
      isWrong = true;
      getOperation().emitError()
          << "'tp' needs a plan that says how parameters are cut (--shard)";
    }
    for (const Plan::Pattern &pattern : plan.patterns) {
      std::string error;
      if (pattern.sharding && llvm::Regex(pattern.text).isValid(error))
        continue;
      isWrong = true;
      getOperation().emitError()
          << "expected '" << kShardAttr
          << "' to have regular expressions with shardings, but got '"
          << pattern.text << "'";
    }
    return failure(isWrong);
  }
};

} // namespace
