//===- StepMemory.cpp - the memory of a training step ---------------------===//
#include "passes/plan/StepMemory.h"
#include "passes/plan/PlanMemory.h"
#include "passes/plan/PlanPasses.h"
#include "passes/plan/PlannedSteps.h"
#include "passes/plan/Storage.h"
#include "passes/target/Target.h"

#include "ir/Keys.h"

#include "ir/Signature.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tandem;

/// The bytes of an allocation of its own.
static int64_t allocated(Type type) {
  int64_t bytes = byteSize(cast<RankedTensorType>(type));
  return llvm::alignTo(std::max<int64_t>(bytes, 1), kBufferAlignment);
}

/// The programs that one step calls, in order.
static SmallVector<func::FuncOp> programsOfStep(ModuleOp module) {
  SmallVector<func::FuncOp> programs;
  if (auto step = module.lookupSymbol<func::FuncOp>("step"))
    return {step};
  for (StringRef name : {"forward", "backward"})
    if (auto program = module.lookupSymbol<func::FuncOp>(name))
      programs.push_back(program);
  if (programs.empty())
    for (StringRef name : {"prepare", "evaluate"})
      if (auto program = module.lookupSymbol<func::FuncOp>(name))
        programs.push_back(program);
  return programs;
}

/// The programs whose arenas the model's has to hold: a device's is made for
/// all of them when the model is loaded.
static SmallVector<func::FuncOp> programsOfArena(ModuleOp module) {
  if (isForCuda(module))
    return llvm::to_vector(module.getOps<func::FuncOp>());
  return programsOfStep(module);
}

namespace {
class Counter {
public:
  explicit Counter(ModuleOp module) : module(module) {}
  StepMemory count();

private:
  void countVariables();
  void countConstants();
  void countArguments(func::FuncOp program);
  void countResults(func::FuncOp program);
  void countScratch(func::FuncOp program);

  ModuleOp module;
  StepMemory memory;
  llvm::StringSet<> inputs;
  SymbolTableCollection symbols;
};
} // namespace

/// The variables of all programs: they live as long as the model.
void Counter::countVariables() {
  llvm::StringSet<> known;
  for (auto program : module.getOps<func::FuncOp>())
    for (auto [i, type] : llvm::enumerate(program.getArgumentTypes())) {
      RoleAttr role = roleOfArgument(program, i);
      bool isParam = role && role.getKind() == RoleKind::Param;
      if (!isParam && !(role && role.getKind() == RoleKind::State))
        continue;
      if (known.insert(role.getName().getValue()).second)
        (isParam ? memory.parameters : memory.states) += allocated(type);
    }
}

/// One allocation with the constants of all programs.
void Counter::countConstants() {
  DenseSet<Attribute> known;
  module.walk([&](ConstantOp constant) {
    if (isa<func::FuncOp>(constant->getParentOp()) && !constant.getSplat() &&
        known.insert(constant.getValue()).second)
      memory.constants +=
          llvm::alignTo(byteSize(constant.getType()), kBufferAlignment);
  });
}

void Counter::countArguments(func::FuncOp program) {
  for (auto [i, type] : llvm::enumerate(program.getArgumentTypes())) {
    RoleAttr role = roleOfArgument(program, i);
    if (!role)
      continue;
    bool isInput = role.getKind() == RoleKind::Input;
    if (!isInput && role.getKind() != RoleKind::Cotangent)
      continue;
    // What is an alias, or has no bytes, brings no memory.
    if (role.has(RoleAttr::kAlias) || role.has(RoleAttr::kFreed))
      continue;
    if (!isInput || inputs.insert(role.getName().getValue()).second)
      memory.inputs += allocated(type);
  }
}

void Counter::countResults(func::FuncOp program) {
  for (auto [i, type] : llvm::enumerate(program.getResultTypes())) {
    RoleAttr role = roleOfResult(program, i);
    if (!role)
      continue;
    if (role.getKind() == RoleKind::Output)
      memory.outputs += allocated(type);
    else if (role.getKind() == RoleKind::Grad)
      memory.gradients += allocated(type);
    else if (role.getKind() == RoleKind::Saved && !role.has(RoleAttr::kAlias))
      (role.has(RoleAttr::kHost) ? memory.host : memory.saved) +=
          allocated(type);
    else if (role.getKind() == RoleKind::Update &&
             !role.has(RoleAttr::kInPlace))
      memory.staged += allocated(type);
  }
}

/// Of planned kernels, or of launches.
void Counter::countScratch(func::FuncOp program) {
  program.walk([&](Operation *op) {
    int64_t bytes = 0;
    if (auto kernel = dyn_cast<KernelOp>(op))
      bytes = static_cast<int64_t>(kernel.getScratchBytes().value_or(0));
    else if (auto launch = dyn_cast<LaunchOp>(op))
      bytes = scratchOf(launch, symbols);
    memory.scratch = std::max(memory.scratch, bytes);
  });
}

StepMemory Counter::count() {
  countVariables();
  countConstants();
  if (auto prepare = module.lookupSymbol<func::FuncOp>("prepare"))
    for (Type type : prepare.getResultTypes())
      memory.prepared += allocated(type);
  for (func::FuncOp program : programsOfStep(module)) {
    countArguments(program);
    countResults(program);
  }
  int64_t hostArena = 0;
  for (func::FuncOp program : programsOfArena(module)) {
    countScratch(program);
    if (PlanAttr plan = planOf(program)) {
      memory.arena = std::max(memory.arena, plan.getArenaBytes());
      hostArena = std::max(hostArena, plan.getHostBytes());
    }
  }
  memory.host += llvm::alignTo(hostArena, kBufferAlignment);
  if (memory.arena)
    memory.arena = llvm::alignTo(memory.arena, kBufferAlignment);
  return memory;
}

StepMemory tandem::stepMemory(ModuleOp planned) {
  return Counter(planned).count();
}

bool tandem::lacksScratch(ModuleOp planned) {
  return llvm::any_of(planned.getOps<func::FuncOp>(), [](func::FuncOp func) {
    return llvm::any_of(func.getOps<KernelOp>(), [](KernelOp kernel) {
      return !kernel.getScratchBytesAttr();
    });
  });
}

DictionaryAttr tandem::describeStepMemory(ModuleOp planned) {
  StepMemory memory = stepMemory(planned);
  Builder b(planned.getContext());
  std::pair<StringRef, int64_t> fields[] = {
      {key::kParameters, memory.parameters},
      {key::kStates, memory.states},
      {key::kConstants, memory.constants},
      {key::kInputs, memory.inputs},
      {key::kOutputs, memory.outputs},
      {key::kGradients, memory.gradients},
      {key::kSaved, memory.saved},
      {key::kStaged, memory.staged},
      {key::kArena, memory.arena},
      {key::kHost, memory.host},
      {key::kPrepared, memory.prepared},
      {key::kScratch, memory.scratch}};
  SmallVector<NamedAttribute> attributes;
  for (auto [name, bytes] : fields)
    if (bytes ||
        (name != key::kHost && name != key::kPrepared && name != key::kScratch))
      attributes.push_back(b.getNamedAttr(name, b.getI64IntegerAttr(bytes)));
  return b.getDictionaryAttr(attributes);
}

FailureOr<StepMemory> tandem::rehearsePlan(ModuleOp partitioned) {
  OwningOpRef<ModuleOp> copy = partitioned.clone();
  for (func::FuncOp program : programsOfArena(*copy))
    if (failed(rehearseProgram(program)))
      return failure();
  return stepMemory(*copy);
}
