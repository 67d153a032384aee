//===- OpTable.cpp - what is known of every op of the dialect -------------===//
#include "tests/tandem-table/OpTable.h"

#include "ir/Ops.h"
#include "passes/lower/cpu/KernelEmitter.h"
#include "passes/lower/cuda/KernelEmitter.h"
#include "tests/gradients/Rows.h"

#include <map>

using namespace mlir;
using namespace tandem;

/// The class that an op states. Stating it needs no operands, so an op without
/// any is asked.
static std::string classOf(OperationName name) {
  OperationState state(UnknownLoc::get(name.getContext()), name);
  Operation *op = Operation::create(state);
  std::string text;
  if (auto cost = dyn_cast<CostOpInterface>(op))
    text = stringify(cost.getOpClass()).str();
  op->destroy();
  return text;
}

/// What the joint replaces: nothing after it differentiates or lowers it.
static bool isGoneAfterJoint(OperationName name) {
  StringRef text = name.getStringRef();
  return text == CustomVjpOp::getOperationName() ||
         text == GradOp::getOperationName() ||
         text == UndefinedOp::getOperationName();
}

static OpSupport supportOf(OperationName name, unsigned gradientRows) {
  OpSupport row;
  row.name = name.getStringRef().str();
  row.gradientRows = gradientRows;
  row.opClass = classOf(name);
  if (row.opClass.empty())
    row.opClass = name.hasTrait<OpTrait::IsTerminator>() ||
                          name.hasTrait<NotDifferentiable>()
                      ? "program"
                      : "storage";
  if (isGoneAfterJoint(name)) {
    row.opClass = "composite";
    row.gradient = row.cpu = row.cuda = "joint";
    row.reference = "evaluator";
    return row;
  }
  // Storage and programs stand outside of what is differentiated and lowered.
  if (row.opClass == "storage") {
    row.gradient = row.cpu = row.cuda = "functionalized";
    row.reference = "evaluator";
    return row;
  }
  if (row.opClass == "program") {
    row.gradient = "none";
    row.reference = name.getStringRef() == LaunchOp::getOperationName()
                        ? "before lowering"
                        : "evaluator";
    row.cpu = row.cuda = "program";
    return row;
  }

  // Regions are differentiated and expanded, or kernels that call those of the
  // region; of a loop without an end there is nothing to expand.
  if (row.opClass == "flow") {
    bool bounded = name.hasInterface<DifferentiableOpInterface>();
    row.gradient = bounded ? "rule" : "refused";
    row.reference = "evaluator";
    row.cpu = bounded ? "expanded, loop" : "loop";
    row.cuda = bounded ? "expanded" : "unsupported";
    return row;
  }

  // Each other's transposes, which tests/gradients checks over
  // ranks; the runtime's communicators carry them out.
  if (row.opClass == "collective") {
    bool hasRule = name.hasInterface<DifferentiableOpInterface>();
    row.gradient = hasRule ? "transpose" : "none";
    row.reference = "over ranks";
    row.cpu = "communicator";
    row.cuda = "unsupported";
    return row;
  }

  bool composite = name.hasInterface<CompositeOpInterface>();
  if (name.hasInterface<DifferentiableOpInterface>())
    row.gradient = "rule";
  else if (name.hasTrait<NotDifferentiable>())
    row.gradient = "none";
  else if (name.hasTrait<RefusesGradient>())
    row.gradient = "refused";
  else if (composite)
    row.gradient = "decomposes";

  bool generic = name.hasInterface<PointwiseOpInterface>() ||
                 name.hasInterface<ViewOpInterface>() ||
                 name.hasInterface<ReductionOpInterface>();
  if (name.hasInterface<ReferenceOpInterface>())
    row.reference = generic ? "generic" : "own";

  auto lowering = [&](bool isAnchor) {
    return composite                              ? "decomposes"
           : generic || row.opClass == "constant" ? "loops"
           : isAnchor                             ? "anchor"
                                                  : "";
  };
  row.cpu = lowering(lower::cpu::hasCpuLowering(name));
  row.cuda = lowering(lower::cuda::hasCudaLowering(name));
  return row;
}

std::vector<std::string> OpSupport::missing() const {
  std::vector<std::string> list;
  if (gradient.empty())
    list.push_back("a gradient, NotDifferentiable, RefusesGradient, or a "
                   "decomposition");
  if (reference.empty())
    list.push_back("a reference");
  if (cpu.empty())
    list.push_back("a lowering for the cpu");
  if (cuda.empty())
    list.push_back("a lowering for cuda");
  if ((gradient == "rule" || gradient == "decomposes") && gradientRows == 0)
    list.push_back("a row in tests/gradients");
  return list;
}

std::vector<OpSupport> tandem::opTable(MLIRContext &context) {
  context.loadDialect<TandemDialect>();
  std::map<std::string, unsigned> rows;
  for (const test::GradientRow &row : test::gradientRows())
    ++rows[row.op];
  std::vector<OpSupport> table;
  for (RegisteredOperationName name :
       context.getRegisteredOperationsByDialect("tandem"))
    table.push_back(supportOf(name, rows[name.getStringRef().str()]));
  llvm::sort(table, [](const OpSupport &a, const OpSupport &b) {
    return a.name < b.name;
  });
  return table;
}
