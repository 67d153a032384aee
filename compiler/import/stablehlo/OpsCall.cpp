//===- OpsCall.cpp - StableHLO: calls, and what says nothing --------------===//
#include "compiler/import/stablehlo/Node.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::stablehlo;

static LogicalResult give(Node &node, FailureOr<SmallVector<Value>> made) {
  if (failed(made))
    return failure();
  if (made->size() != node.numResults())
    return node.error("expected a function of " + Twine(node.numResults()) +
                      " results, but got one of " + Twine(made->size()));
  for (auto [i, value] : llvm::enumerate(*made))
    node.result(i, value);
  return success();
}

/// jax.nn.relu, whose gradient at 0 is 0; that of `maximum(x, 0)` is a half.
static bool isRelu(func::FuncOp function) {
  if (!function || function.getNumArguments() != 1 ||
      !function.getName().starts_with("relu"))
    return false;
  std::string text = Node::spelling(function.getBody());
  return text == "constant; broadcast_in_dim zero; maximum a0 t1; return t2" ||
         text == "constant; maximum a0 zero; return t1";
}

static LogicalResult translateCall(Node &node) {
  auto call = cast<func::CallOp>(node.source());
  node.ignore({"callee"});
  auto function =
      node.source()->getParentOfType<ModuleOp>().lookupSymbol<func::FuncOp>(
          call.getCallee());
  if (isRelu(function) && node.size() == 1)
    return node.result(node.make("relu", node.all())), success();
  return give(node, node.inlineFunction(call.getCallee(), node.all()));
}

/// Ops of chlo, which the decomposition says in more primitive ones.
static LogicalResult translateComposite(Node &node) {
  std::string name = node.text("name", "");
  node.ignore({"composite_attributes", "version"});
  if (name == "chlo.erf" && node.size() == 1) {
    node.ignore({"decomposition"});
    return node.result(node.make("erf", node.all())), success();
  }
  std::string function = node.text("decomposition", "");
  return give(node, node.inlineFunction(function, node.all()));
}

/// Its results are its operands.
static LogicalResult passOn(Node &node) {
  if (node.size() != node.numResults())
    return node.error("expected a result for each operand");
  for (size_t i = 0; i < node.size(); ++i)
    node.result(i, node.operand(i));
  return success();
}

static LogicalResult passOnSharding(Node &node) {
  node.leaveOut("annotations of sharding");
  return passOn(node);
}

static LogicalResult translateCustomCall(Node &node) {
  std::string target = node.text("call_target_name", "");
  node.ignore({"api_version", "backend_config", "called_computations",
               "has_side_effect", "operand_layouts", "result_layouts",
               "output_operand_aliases"});
  if (target == "Sharding" || target == "SPMDFullToShardShape" ||
      target == "SPMDShardToFullShape")
    return passOnSharding(node);
  return node.unsupported("a call of '" + target +
                          "', which is no part of the module");
}

void stablehlo::addCallOps(OpTable &table) {
  table.addNamed("func.call", translateCall);
  table.add("composite", translateComposite);
  table.add("optimization_barrier", passOn);
  table.addNamed("sdy.sharding_constraint", passOnSharding);
  table.add("custom_call", translateCustomCall);
}
