//===- Reductions.cpp - ways to make a module smaller ---------------------===//
#include "tools/tandem/Reductions.h"

#include "ir/Dialect.h"
#include "ir/Ops.h"
#include "ir/Signature.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::commands;

void commands::eraseDeadOps(ModuleOp module) {
  for (bool changed = true; changed;) {
    changed = false;
    SmallVector<Operation *> dead;
    module.walk<WalkOrder::PostOrder>([&](Operation *op) {
      if (op != module && isOpTriviallyDead(op))
        dead.push_back(op);
    });
    // What is dead has no uses; one that stands in another comes before it.
    for (Operation *op : dead) {
      op->erase();
      changed = true;
    }
  }
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

static SmallVector<Operation *> unusedSymbols(ModuleOp module) {
  SmallVector<Operation *> symbols;
  for (Operation &op : *module.getBody())
    if (isa<SymbolOpInterface>(op) &&
        SymbolTable::symbolKnownUseEmpty(&op, module))
      symbols.push_back(&op);
  return symbols;
}

static size_t countSymbols(ModuleOp module) {
  return unusedSymbols(module).size();
}

static void eraseSymbols(ModuleOp module, size_t begin, size_t end) {
  SmallVector<Operation *> symbols = unusedSymbols(module);
  for (size_t i = begin; i < std::min(end, symbols.size()); ++i)
    symbols[i]->erase();
}

//===----------------------------------------------------------------------===//
// Roles: what several programs take and give goes from all of them at once
//===----------------------------------------------------------------------===//

static llvm::SetVector<Attribute> rolesOf(ModuleOp module, bool ofResults) {
  llvm::SetVector<Attribute> roles;
  for (auto func : module.getOps<func::FuncOp>()) {
    unsigned n = ofResults ? func.getNumResults() : func.getNumArguments();
    for (unsigned i = 0; i < n; ++i)
      if (Attribute role =
              ofResults ? roleOfResult(func, i) : func.getArgAttr(i, kRoleAttr))
        roles.insert(role);
  }
  return roles;
}

static SmallVector<Attribute> rolesIn(ModuleOp module, bool ofResults,
                                      size_t begin, size_t end) {
  llvm::SetVector<Attribute> roles = rolesOf(module, ofResults);
  ArrayRef<Attribute> all = roles.getArrayRef();
  begin = std::min(begin, all.size());
  return SmallVector<Attribute>(
      all.slice(begin, std::min(end, all.size()) - begin));
}

static size_t countOutputs(ModuleOp module) {
  return rolesOf(module, /*ofResults=*/true).size();
}

static void eraseOutputs(ModuleOp module, size_t begin, size_t end) {
  auto roles = rolesIn(module, /*ofResults=*/true, begin, end);
  for (auto func : module.getOps<func::FuncOp>()) {
    if (func.isDeclaration())
      continue;
    llvm::BitVector erased(func.getNumResults());
    for (unsigned i = 0; i < func.getNumResults(); ++i)
      if (Attribute role = roleOfResult(func, i);
          role && llvm::is_contained(roles, role))
        erased.set(i);
    if (erased.none())
      continue;
    func.getBody().front().getTerminator()->eraseOperands(erased);
    (void)func.eraseResults(erased);
  }
}

static size_t countArguments(ModuleOp module) {
  return rolesOf(module, /*ofResults=*/false).size();
}

/// Where nothing reads them.
static void eraseArguments(ModuleOp module, size_t begin, size_t end) {
  auto roles = rolesIn(module, /*ofResults=*/false, begin, end);
  for (auto func : module.getOps<func::FuncOp>()) {
    if (func.isDeclaration())
      continue;
    llvm::BitVector erased(func.getNumArguments());
    for (unsigned i = 0; i < func.getNumArguments(); ++i)
      if (func.getArgument(i).use_empty() &&
          llvm::is_contained(roles, func.getArgAttr(i, kRoleAttr)))
        erased.set(i);
    (void)func.eraseArguments(erased);
  }
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

/// Ops that can go: no functions, no terminators, no constants.
static SmallVector<Operation *> opsOf(ModuleOp module) {
  SmallVector<Operation *> ops;
  module.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (!isa<ModuleOp, SymbolOpInterface>(op) &&
        !op->hasTrait<OpTrait::IsTerminator>() &&
        !op->hasTrait<OpTrait::ConstantLike>())
      ops.push_back(op);
  });
  return ops;
}

static size_t countOps(ModuleOp module) { return opsOf(module).size(); }

/// Calls `replace` on the ops, the last first, so that one within another goes
/// before it.
static void forOps(ModuleOp module, size_t begin, size_t end,
                   llvm::function_ref<void(Operation *)> replace) {
  SmallVector<Operation *> ops = opsOf(module);
  for (size_t i = std::min(end, ops.size()); i > begin; --i)
    replace(ops[i - 1]);
}

static void putZeros(ModuleOp module, size_t begin, size_t end) {
  forOps(module, begin, end, [](Operation *op) {
    if (op->getNumResults() == 0 || op->use_empty() ||
        !llvm::all_of(op->getResultTypes(), isTensorType))
      return;
    OpBuilder builder(op);
    for (Value result : op->getResults()) {
      if (result.use_empty())
        continue;
      auto zero =
          dyn_cast_or_null<ElementsAttr>(builder.getZeroAttr(result.getType()));
      if (!zero)
        return;
      result.replaceAllUsesWith(
          ConstantOp::create(builder, op->getLoc(), zero).getResult());
    }
    op->erase();
  });
}

/// A value of the same type that is there before the op: one of its operands,
/// or an argument of the function.
static Value standInFor(Operation *op, Value result, bool isOperand) {
  if (isOperand) {
    for (Value operand : op->getOperands())
      if (operand.getType() == result.getType())
        return operand;
    return {};
  }
  auto func = op->getParentOfType<func::FuncOp>();
  if (!func || op->getParentOp() != func)
    return {};
  for (Value argument : func.getArguments())
    if (argument.getType() == result.getType())
      return argument;
  return {};
}

template <bool isOperand>
static void putValues(ModuleOp module, size_t begin, size_t end) {
  forOps(module, begin, end, [](Operation *op) {
    SmallVector<Value> values;
    for (Value result : op->getResults())
      if (Value value = standInFor(op, result, isOperand))
        values.push_back(value);
    if (values.empty() || values.size() != op->getNumResults())
      return;
    op->replaceAllUsesWith(values);
    op->erase();
  });
}

/// Makes a result of the first of the ops the function's first result, which
/// keeps its role, so that what leads from the one to the other can go.
static void putOutputs(ModuleOp module, size_t begin, size_t end) {
  SmallVector<Operation *> ops = opsOf(module);
  Operation *op = begin < ops.size() ? ops[begin] : nullptr;
  auto func = op ? dyn_cast<func::FuncOp>(op->getParentOp()) : func::FuncOp();
  if (!func || !func.getNumResults() || op->getNumResults() != 1 ||
      !isTensorType(op->getResult(0).getType()))
    return;
  func.getBody().front().getTerminator()->setOperand(0, op->getResult(0));
  SmallVector<Type> types(func.getResultTypes());
  types[0] = op->getResult(0).getType();
  func.setFunctionType(
      FunctionType::get(func.getContext(), func.getArgumentTypes(), types));
}

/// Writes, and whatever else is done for its effect.
static void eraseUnused(ModuleOp module, size_t begin, size_t end) {
  forOps(module, begin, end, [](Operation *op) {
    if (op->use_empty())
      op->erase();
  });
}

static size_t countOne(ModuleOp) { return 1; }

static void runMlirPasses(ModuleOp module, size_t, size_t) {
  PassManager passes(module.getContext(), ModuleOp::getOperationName());
  passes.addPass(createCanonicalizerPass());
  passes.addPass(createCSEPass());
  passes.addPass(createSymbolDCEPass());
  // A module that they leave half done is no smaller, or not valid.
  (void)passes.run(module);
}

ArrayRef<Reduction> commands::reductions() {
  static constexpr Reduction all[] = {
      {"functions", countSymbols, eraseSymbols},
      {"outputs", countOutputs, eraseOutputs},
      {"results as outputs", countOps, putOutputs},
      {"zeros for results", countOps, putZeros},
      {"operands for results", countOps, putValues<true>},
      {"arguments for results", countOps, putValues<false>},
      {"effects", countOps, eraseUnused},
      {"arguments", countArguments, eraseArguments},
      {"canonicalize, cse", countOne, runMlirPasses}};
  return all;
}

//===----------------------------------------------------------------------===//
// Size
//===----------------------------------------------------------------------===//

ModuleSize ModuleSize::of(ModuleOp module) {
  ModuleSize size;
  module.walk([&](Operation *op) {
    if (auto func = dyn_cast<func::FuncOp>(op)) {
      ++size.functions;
      size.arguments += func.getNumArguments();
      size.results += func.getNumResults();
    } else if (isa<ModuleOp>(op) || op->hasTrait<OpTrait::IsTerminator>()) {
      return;
    } else if (op->hasTrait<OpTrait::ConstantLike>()) {
      ++size.constants;
    } else {
      ++size.ops;
    }
  });
  return size;
}

size_t ModuleSize::weight() const {
  return 3 * (ops + functions) + constants + arguments + results;
}

std::string ModuleSize::text() const {
  auto counted = [](size_t n, const char *name) {
    return std::to_string(n) + " " + name + (n == 1 ? "" : "s");
  };
  return counted(ops, "op") + ", " + counted(constants, "constant") + ", " +
         counted(arguments, "argument") + ", " + counted(results, "result");
}
