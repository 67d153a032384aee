//===- FindAnomaly.cpp - which op made a NaN ------------------------------===//
//
// What an op gives is looked at as it is computed. An op that passes on what an
// operand has did not make it; constants are meant.
//
//===----------------------------------------------------------------------===//
#include "tools/tandem/FindAnomaly.h"
#include "compiler/Phases.h"
#include "ir/Ops.h"
#include "ir/Signature.h"
#include "ir/Where.h"
#include "ir/reference/Rounding.h"
#include "tools/tandem/ModelBeside.h"

#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/DenseSet.h"

#include <cmath>

using namespace mlir;
using namespace tandem;
using namespace tandem::commands;
using reference::Array;

namespace {

class Finder {
public:
  explicit Finder(bool findsInfinity) : findsInfinity(findsInfinity) {}

  void lookAtArgument(BlockArgument argument, RoleAttr role,
                      const Array &array) {
    look(argument, array);
    bool isNaN = nan.contains(argument);
    if ((isNaN || (findsInfinity && infinite.contains(argument))) &&
        text.empty())
      text = "it was there before: '" + role.str() + "' has " +
             (isNaN ? "NaN" : "an infinity");
  }

  void lookAtResults(Operation *op, MutableArrayRef<Array> results) {
    bool hasNaN = false, hasInfinity = false;
    for (Value operand : op->getOperands()) {
      hasNaN |= nan.contains(operand);
      hasInfinity |= infinite.contains(operand);
    }
    bool isMeant = op->hasTrait<OpTrait::ConstantLike>();
    for (auto [i, result] : llvm::enumerate(op->getResults())) {
      round(result.getType(), results[i]);
      int64_t at = look(result, results[i]);
      if (at < 0 || isMeant)
        continue;
      if (nan.contains(result) && !hasNaN)
        made(op, i, at, "NaN", hasInfinity);
      else if (infinite.contains(result) && !nan.contains(result) &&
               !hasInfinity && !hasNaN)
        madeInfinity(op, i, at);
    }
  }

  std::string text; ///< about the first

private:
  static void round(Type type, Array &array) {
    auto element = dyn_cast<FloatType>(getElementTypeOrSelf(type));
    if (!element || element.isF64())
      return;
    for (double &x : array.data)
      x = reference::roundedTo(element.getFloatSemantics(), x);
  }

  /// Notes what a value has; returns the first element of that kind, or -1.
  int64_t look(Value value, const Array &array) {
    int64_t at = -1;
    for (int64_t i = 0; i < array.size(); ++i) {
      if (std::isfinite(array[i]))
        continue;
      bool isNaN = std::isnan(array[i]);
      if (at < 0 || (isNaN && !nan.contains(value)))
        at = i;
      (isNaN ? nan : infinite).insert(value);
    }
    return at;
  }

  static std::string describe(Operation *op, size_t result, int64_t element,
                              const std::string &what) {
    std::string type;
    llvm::raw_string_ostream(type) << op->getResult(result).getType();
    StringRef of = Marks(op->getLoc()).gradientOf;
    return whereIs(op) + " gave " + what + " (element " +
           std::to_string(element) + " of result " + std::to_string(result) +
           ", " + type + ")" +
           (of.empty() ? "" : ", in the grad of " + of.str());
  }

  void made(Operation *op, size_t result, int64_t element, const char *what,
            bool hasInfinity) {
    if (!text.empty())
      return;
    text = describe(op, result, element, what);
    if (hasInfinity)
      text += infinity.empty() ? ", of an infinity"
                               : ", of an infinity: " + infinity;
  }
  void madeInfinity(Operation *op, size_t result, int64_t element) {
    if (infinity.empty())
      infinity = describe(op, result, element, "an infinity");
    if (findsInfinity && text.empty())
      text = infinity;
  }

  bool findsInfinity;
  std::string infinity; ///< the first that was made
  llvm::DenseSet<Value> nan, infinite;
};

/// The joint of a step, and what it is called with.
class Step {
public:
  Step(ModuleOp graph, ModuleOp joint, const AnomalyStep &step)
      : graph(graph.lookupSymbol<func::FuncOp>("graph")),
        joint(joint.lookupSymbol<func::FuncOp>("joint")), step(step) {}

  Result<std::string> run() {
    reference::Call call;
    std::vector<Array> forward;
    for (unsigned i = 0; i < joint.getNumArguments(); ++i) {
      RoleAttr role = roleOfArgument(joint, i);
      auto type = cast<RankedTensorType>(joint.getArgumentTypes()[i]);
      if (role.getKind() == RoleKind::Cotangent) {
        Array ones(type);
        llvm::fill(ones.data, 1.0);
        call.arguments.push_back(std::move(ones));
        continue;
      }
      auto array = role.has(RoleAttr::kPass) ? afterForward(role)
                                             : valueOf(role.getName(), type);
      if (!array)
        return std::move(array).status();
      call.arguments.push_back(std::move(*array));
    }
    return findAnomaly(joint, call, step.findsInfinity);
  }

private:
  Result<Array> valueOf(StringRef name, RankedTensorType type) const {
    for (const NamedTensor &one : step.values)
      if (one.name == name) {
        Array array(type);
        if (array.size() != one.tensor.elements())
          return Status::failed("'" + one.name + "' has another shape");
        for (int64_t i = 0; i < array.size(); ++i)
          array[i] = one.tensor.at(i);
        return array;
      }
    return Status::failed("the step has no '" + name.str() + "'");
  }

  /// What the backward finds is what the forward left.
  Result<Array> afterForward(RoleAttr role) {
    if (left.empty()) {
      std::vector<Array> arguments;
      for (unsigned i = 0; i < graph.getNumArguments(); ++i) {
        auto array =
            valueOf(roleOfArgument(graph, i).getName(),
                    cast<RankedTensorType>(graph.getArgumentTypes()[i]));
        if (!array)
          return array;
        arguments.push_back(std::move(*array));
      }
      auto results = reference::evaluate(graph, arguments);
      if (failed(results))
        return Status::failed("the reference cannot evaluate the graph");
      left = std::move(*results);
    }
    if (auto update = findResult(graph, RoleKind::Update, role.getName()))
      return left[*update];
    auto index = *findValue(graph, role.getName());
    return valueOf(role.getName(),
                   cast<RankedTensorType>(graph.getArgumentTypes()[index]));
  }

  func::FuncOp graph, joint;
  const AnomalyStep &step;
  SmallVector<Array> left;
};

} // namespace

Result<std::string> commands::findAnomaly(func::FuncOp func,
                                          const reference::Call &given,
                                          bool findsInfinity) {
  Finder finder(findsInfinity);
  reference::Call call = given;
  for (auto [i, array] : llvm::enumerate(call.arguments))
    if (array)
      finder.lookAtArgument(func.getArgument(i),
                            roleOfArgument(func, static_cast<unsigned>(i)),
                            *array);
  call.computed = [&](Operation *op, MutableArrayRef<Array> results) {
    finder.lookAtResults(op, results);
  };
  if (failed(reference::run(func, call)))
    return Status::failed("the reference cannot evaluate the model");
  return finder.text;
}

Result<AnomalyPlace> commands::locateInModel(const AnomalyStep &step) {
  CompileOptions options;
  options.target = "cpu";
  Session session(options);
  auto piece = modelBeside(session, step.artifact);
  if (!piece)
    return std::move(piece).status();
  if (!piece->module)
    return AnomalyPlace{"", piece->why};
  auto reader = artifact::ArtifactReader::open(step.artifact);
  if (!reader)
    return std::move(reader).status();
  auto phases = [&](const char *stop) {
    CompileOptions part = options;
    part.stopAfter = stop;
    part.loss = phaseOf(*piece->module) == "capture" ? reader->manifest().loss
                                                     : std::string();
    return runPhases(*piece->module, part, session.times());
  };
  if (Status s = phases("functionalize"); !s)
    return s;
  OwningOpRef<ModuleOp> graph = piece->module->clone();
  if (Status s = phases("joint"); !s)
    return s;
  auto found = Step(*graph, *piece->module, step).run();
  if (!found)
    return std::move(found).status();
  if (found->empty())
    return AnomalyPlace{"", "no op of the model makes it where every result is "
                            "rounded by itself"};
  return AnomalyPlace{std::move(*found), ""};
}
