//===- CheckGradients.cpp - the gradients of an ONNX model ----------------===//
#include "tools/onnx/CheckGradients.h"
#include "compiler/import/onnx/Known.h"
#include "ir/Ops.h"
#include "ir/Signature.h"
#include "ir/reference/Rounding.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

#include <cmath>
#include <random>

using namespace mlir;

namespace tandem::onnx {

using reference::Array;
using Arrays = SmallVector<Array>;

namespace {

constexpr int kPoints = 6;
constexpr double kLargest = 1e9;
constexpr double kStep = 3e-5;
/// Of differences: their error is about kStep^2 times third derivatives.
constexpr double kTolerance = 1e-5;

class Check {
public:
  Check(const TestCase &one, MLIRContext &context)
      : one(one), context(context) {}

  Outcome run();

private:
  /// The module at the phase `functionalize`; or why there is none.
  std::optional<Outcome> import();
  /// What the data says, moved by up to `distance` times each number.
  Arrays point(double distance);
  Array draw(RankedTensorType type);
  std::optional<double> along(const Arrays &arguments, unsigned i,
                              const Array &direction, double step);
  /// Of one point: what is wrong, "" if nothing is; nothing where it is not
  /// smooth or outside of the domain.
  std::optional<std::string> compareAt(const Arrays &arguments);

  const TestCase &one;
  MLIRContext &context;
  OwningOpRef<ModuleOp> module;
  OwningOpRef<func::FuncOp> graph;
  std::map<std::string, TensorPtr> values;
  Arrays cotangents;
  std::mt19937_64 generator{1};
};

double dot(const Array &a, const Array &b) {
  double sum = 0;
  for (int64_t i = 0; i < a.size(); ++i)
    sum += a[i] * b[i];
  return sum;
}

bool isFloat(Type type) {
  return isa<FloatType>(cast<RankedTensorType>(type).getElementType());
}

/// The same numbers with every standard library.
double unit(std::mt19937_64 &generator) {
  return static_cast<double>(generator() >> 11) * 0x1p-53;
}

} // namespace

Array Check::draw(RankedTensorType type) {
  Array result(type);
  for (double &x : result.data)
    x = 2 * unit(generator) - 1;
  return result;
}

std::optional<Outcome> Check::import() {
  ImportOptions options;
  options.inputGradients = true;
  Import import = importFor(one, one.sets[0], options, context);
  if (!import.problems.empty())
    return outcomeOf(import);
  module = std::move(import.module);
  CompileOptions to;
  to.threads = 1;
  to.stopAfter = "functionalize";
  std::vector<PhaseTime> times;
  if (Status status = runPhases(*module, to, times); !status)
    return Outcome{Outcome::Kind::Failed, "", status.message()};
  values = import.weights;
  values.insert(one.sets[0].inputs.begin(), one.sets[0].inputs.end());
  auto func = module->lookupSymbol<func::FuncOp>("graph");
  graph = func.clone();
  bool hasInput = false, hasOutput = false;
  for (unsigned i = 0, n = func.getNumArguments(); i < n; ++i)
    hasInput |= roleOfArgument(func, i).has(RoleAttr::kRequiresGrad);
  for (Type type : func.getResultTypes())
    hasOutput |= isFloat(type);
  if (!hasInput || !hasOutput)
    return Outcome{Outcome::Kind::Excluded, "",
                   hasInput ? "no output has floats"
                            : "no input has floats that are differentiated"};
  return std::nullopt;
}

Arrays Check::point(double distance) {
  Arrays arguments;
  for (unsigned i = 0, n = graph->getNumArguments(); i < n; ++i) {
    auto type = cast<RankedTensorType>(graph->getArgumentTypes()[i]);
    Array array(type);
    auto value = values.find(roleOfArgument(*graph, i).getName().str());
    if (value != values.end()) {
      SmallVector<double> numbers = numbersOf(*value->second);
      array.data.assign(numbers.begin(), numbers.end());
    }
    if (roleOfArgument(*graph, i).has(RoleAttr::kRequiresGrad))
      for (double &x : array.data) {
        // Some data is memory that nobody wrote: numbers beside which no step
        // can be seen.
        if (std::abs(x) > kLargest)
          x = 1;
        double by = distance * (2 * unit(generator) - 1);
        x += std::isfinite(x) ? by * (std::abs(x) + 0.1) : 0;
      }
    arguments.push_back(std::move(array));
  }
  return arguments;
}

std::optional<double> Check::along(const Arrays &arguments, unsigned i,
                                   const Array &direction, double step) {
  double sums[2];
  for (int side : {0, 1}) {
    Arrays moved = arguments;
    for (int64_t k = 0; k < direction.size(); ++k)
      moved[i][k] += (side ? -step : step) * direction[k];
    auto results = reference::evaluateUnrounded(*graph, moved);
    if (failed(results))
      return std::nullopt;
    sums[side] = 0;
    for (auto [result, cotangent] : llvm::zip(*results, cotangents))
      if (!cotangent.data.empty())
        sums[side] += dot(result, cotangent);
  }
  double slope = (sums[0] - sums[1]) / (2 * step);
  return std::isfinite(slope) ? std::optional(slope) : std::nullopt;
}

std::optional<std::string> Check::compareAt(const Arrays &arguments) {
  auto joint = module->lookupSymbol<func::FuncOp>("joint");
  Arrays all = arguments;
  cotangents.assign(graph->getNumResults(), Array());
  for (unsigned i = 0; i < graph->getNumResults(); ++i)
    cotangents[i].data.clear();
  for (unsigned i = arguments.size(); i < joint.getNumArguments(); ++i) {
    auto output =
        findResult(joint, RoleKind::Output, roleOfArgument(joint, i).getName());
    Array drawn = draw(cast<RankedTensorType>(joint.getArgumentTypes()[i]));
    if (output)
      cotangents[*output] = drawn;
    all.push_back(drawn);
  }
  auto results = reference::evaluateUnrounded(joint, all);
  if (failed(results))
    return "the joint cannot be evaluated";
  std::string problems;
  for (unsigned i = 0; i < arguments.size(); ++i) {
    RoleAttr role = roleOfArgument(joint, i);
    if (!role.has(RoleAttr::kRequiresGrad) || arguments[i].size() == 0)
      continue;
    Array direction = draw(cast<RankedTensorType>(joint.getArgumentTypes()[i]));
    // Directions of the size of the numbers: steps stay in the domain.
    for (int64_t k = 0; k < direction.size(); ++k)
      direction[k] *= std::abs(arguments[i][k]) + 0.1;
    auto whole = along(arguments, i, direction, kStep);
    auto half = along(arguments, i, direction, kStep / 2);
    if (!whole || !half)
      return std::nullopt;
    double bound =
        kTolerance * (1 + std::max(std::abs(*whole), std::abs(*half)));
    if (std::abs(*whole - *half) > bound)
      return std::nullopt;
    auto gradient = findResult(joint, RoleKind::Grad, role.getName());
    double ours = gradient ? dot((*results)[*gradient], direction) : 0;
    if (!(std::abs(ours - *half) <= 2 * bound))
      problems += (problems.empty() ? "" : "; ") + role.str() +
                  ": the gradient gives " + std::to_string(ours) +
                  ", the differences " + std::to_string(*half);
  }
  return problems;
}

Outcome Check::run() {
  if (auto ended = import())
    return *ended;
  // runPhases() has registered the passes.
  PassManager manager(&context);
  if (failed(parsePassPipeline("tandem-build-joint", manager)) ||
      failed(manager.run(*module)))
    return {Outcome::Kind::Failed, "", "there is no joint"};
  double distance = 0.03;
  for (int i = 0; i < kPoints; ++i, distance /= 3)
    if (auto problems = compareAt(point(distance)))
      return {problems->empty() ? Outcome::Kind::Passed : Outcome::Kind::Failed,
              "", *problems};
  return {Outcome::Kind::Excluded, "", "it is smooth at none of the points"};
}

Outcome checkGradients(const std::string &folder) {
  auto one = readTestCase(folder);
  if (!one)
    return {one.status().code() == Code::Unsupported
                ? Outcome::Kind::Unsupported
                : Outcome::Kind::Failed,
            "", one.status().message()};
  DialectRegistry registry;
  registerCompiler(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  std::string said;
  context.getDiagEngine().registerHandler([&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
      said += (said.empty() ? "" : "; ") + diagnostic.str();
  });
  Outcome outcome = Check(*one, context).run();
  if (outcome.kind == Outcome::Kind::Failed && !said.empty())
    outcome.reason += (outcome.reason.empty() ? "" : ": ") + said;
  return outcome;
}

} // namespace tandem::onnx
