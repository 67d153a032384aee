//===- GradientCheck.cpp - derivatives against differences ----------------===//
#include "tests/gradients/GradientCheck.h"

#include "ir/Signature.h"
#include "ir/reference/Evaluator.h"
#include "passes/RegisterPasses.h"
#include "passes/autodiff/Specialize.h"
#include "passes/common/Phase.h"
#include "passes/pipelines/Pipelines.h"
#include "tests/support/TestModule.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

#include <cmath>
#include <random>

using namespace mlir;
using namespace tandem;
using namespace tandem::test;
using reference::Array;
using Arrays = llvm::SmallVector<Array>;

/// Half of the distance of the differences. With curvatures around 1 the error
/// of the differences is about h^2 = 1e-9, that of rounding 1e-16 / h = 1e-11.
static constexpr double kStep = 3e-5;

bool test::runPasses(ModuleOp module, StringRef pipeline) {
  static bool registered = [] {
    registerTandemPasses();
    registerTandemPipelines();
    return true;
  }();
  (void)registered;
  PassManager manager(module.getContext());
  return succeeded(parsePassPipeline(pipeline, manager)) &&
         succeeded(manager.run(module));
}

void test::makeJointTheGraph(ModuleOp module) {
  auto joint = module.lookupSymbol<func::FuncOp>("joint");
  MLIRContext *context = module.getContext();
  module.lookupSymbol("evaluate")->erase();
  joint.setName("graph");
  // Inputs are always given.
  specializeCotangents(joint);
  for (Operation &op : joint.getOps())
    op.removeAttr(kPassAttr);
  for (unsigned i = 0, n = joint.getNumArguments(); i < n; ++i)
    if (RoleAttr role = roleOfArgument(joint, i);
        role.getKind() == RoleKind::Cotangent)
      setRoleOfArgument(joint, i,
                        RoleAttr::get(context, RoleKind::Input,
                                      "cotangent of " + role.getName().str())
                            .withUnit("requires_grad"));
  for (unsigned i = 0, n = joint.getNumResults(); i < n; ++i)
    if (RoleAttr role = roleOfResult(joint, i);
        role.getKind() == RoleKind::Grad)
      setRoleOfResult(joint, i,
                      RoleAttr::get(context, RoleKind::Output,
                                    "grad of " + role.getName().str()));
  module->removeAttr(kLossAttr);
  setPhase(module, "functionalize");
}

std::string test::textOf(const GradientRow &row) {
  if (!row.module.empty())
    return row.module;
  std::string arguments, types, values, results;
  for (size_t i = 0; i < row.operands.size(); ++i) {
    const RowOperand &operand = row.operands[i];
    bool wanted =
        operand.differentiate && operand.type.find("f64>") != std::string::npos;
    arguments += (i ? ", %" : "%") + std::to_string(i) + ": " + operand.type +
                 " {tandem.role = #tandem.role<input \"x" + std::to_string(i) +
                 "\"" + (wanted ? " {requires_grad}" : "") + ">}";
  }
  for (const RowResult &result : row.results) {
    std::string comma = values.empty() ? "" : ", ";
    values += comma + result.name;
    types += comma + result.type;
    results += comma + result.type + " {tandem.role = #tandem.role<output \"" +
               result.name.substr(1) + "\">}";
  }
  std::string target =
      row.fused ? ", tandem.target = #tandem.target<cuda>" : "";
  return "module attributes {tandem.phase = \"functionalize\"" + target +
         "} {\nfunc.func @graph(" + arguments + ") -> (" + results + ") {\n" +
         row.body + "\nreturn " + values + " : " + types + "\n}\n}";
}

namespace {

double dot(const Array &a, const Array &b) {
  double sum = 0;
  for (int64_t i = 0; i < a.size(); ++i)
    sum += a[i] * b[i];
  return sum;
}

class Check {
public:
  explicit Check(const GradientRow &row) : row(row), module(textOf(row)) {}

  std::string run();

private:
  void checkOrder(int order);
  /// <cotangents, f(arguments + step * direction of argument i)>.
  double along(func::FuncOp graph, unsigned i, const Array &direction,
               double step);
  void compareOutputs(const Arrays &direct, const Arrays &joint);
  Array draw(Type type, double low, double high);
  std::string fail(const std::string &what) {
    return problems += (problems.empty() ? "" : "\n") + what;
  }

  const GradientRow &row;
  TestModule module;
  std::mt19937_64 generator{1};
  Arrays arguments, cotangents;
  std::string problems;
};

} // namespace

Array Check::draw(Type type, double low, double high) {
  auto tensor = cast<RankedTensorType>(type);
  Array result(tensor);
  for (double &x : result.data) {
    // The same numbers with every standard library.
    double unit = static_cast<double>(generator() >> 11) * 0x1p-53;
    x = low + (high - low) * unit;
    if (!isa<FloatType>(tensor.getElementType()))
      x = std::floor(x);
  }
  return result;
}

double Check::along(func::FuncOp graph, unsigned i, const Array &direction,
                    double step) {
  Arrays moved = arguments;
  for (int64_t k = 0; k < direction.size(); ++k)
    moved[i][k] += step * direction[k];
  auto results = reference::evaluate(graph, moved);
  if (failed(results))
    return std::nan("");
  double sum = 0;
  for (auto [result, cotangent] : llvm::zip(*results, cotangents))
    sum += dot(result, cotangent);
  return sum;
}

void Check::compareOutputs(const Arrays &direct, const Arrays &joint) {
  for (auto [i, output] : llvm::enumerate(direct))
    for (int64_t k = 0; k < output.size(); ++k)
      if (double difference = std::abs(output[k] - joint[i][k]);
          !(difference <= 1e-10 * (1 + std::abs(output[k]))))
        fail("result #" + std::to_string(i) + " element " + std::to_string(k) +
             ": the op itself gives " + std::to_string(output[k]) +
             ", its decomposition " + std::to_string(joint[i][k]));
}

void Check::checkOrder(int order) {
  func::FuncOp graph = module.function("graph");
  OwningOpRef<func::FuncOp> original = graph.clone();
  for (Type type : graph.getArgumentTypes().drop_front(arguments.size()))
    arguments.push_back(draw(type, -1, 1));
  unsigned numPrimals = arguments.size();
  auto direct = reference::evaluate(*original, arguments);
  if (failed(direct) || !runPasses(*module.module, "tandem-build-joint")) {
    fail("order " + std::to_string(order) + ": " + module.diagnostics);
    return;
  }
  func::FuncOp joint = module.function("joint");
  Arrays all = arguments;
  cotangents.clear();
  for (const Array &output : *direct)
    cotangents.push_back(Array(output.shape));
  for (unsigned i = numPrimals; i < joint.getNumArguments(); ++i) {
    auto output =
        findResult(joint, RoleKind::Output, roleOfArgument(joint, i).getName());
    cotangents[*output] = draw(joint.getArgumentTypes()[i], -1, 1);
    all.push_back(cotangents[*output]);
  }
  auto results = reference::evaluate(joint, all);
  if (failed(results)) {
    fail("order " + std::to_string(order) + ": " + module.diagnostics);
    return;
  }
  compareOutputs(*direct, *results);

  for (unsigned i = 0; i < numPrimals; ++i) {
    RoleAttr role = roleOfArgument(joint, i);
    if (!role.has("requires_grad"))
      continue;
    Array direction = draw(joint.getArgumentTypes()[i], -1, 1);
    auto gradient = findResult(joint, RoleKind::Grad, role.getName());
    double ours = gradient ? dot((*results)[*gradient], direction) : 0;
    double theirs = (along(*original, i, direction, kStep) -
                     along(*original, i, direction, -kStep)) /
                    (2 * kStep);
    if (!(std::abs(ours - theirs) <=
          row.tolerance * (1 + std::max(std::abs(ours), std::abs(theirs)))))
      fail("order " + std::to_string(order) + ", " + role.str() +
           ": the gradient gives " + std::to_string(ours) +
           ", the differences " + std::to_string(theirs));
  }
  // The next order differentiates the joint at the same point.
  arguments = all;
}

std::string Check::run() {
  if (!module.module)
    return module.diagnostics + textOf(row);
  for (const RowOperand &operand : row.operands) {
    auto type = module.function("graph").getArgumentTypes()[arguments.size()];
    arguments.push_back(draw(type, operand.low, operand.high));
  }
  for (int order = 1; order <= row.order && problems.empty(); ++order) {
    checkOrder(order);
    if (order < row.order && problems.empty())
      makeJointTheGraph(*module.module);
  }
  return problems.empty() ? "" : problems + "\n" + module.print();
}

std::string test::checkGradients(const GradientRow &row) {
  return Check(row).run();
}
