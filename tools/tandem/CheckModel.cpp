//===- CheckModel.cpp - the gradients of a model, three ways --------------===//
#include "tools/tandem/CheckModel.h"
#include "compiler/CheckOptions.h"
#include "compiler/PassSteps.h"
#include "compiler/Phases.h"
#include "ir/Ops.h"
#include "ir/Signature.h"
#include "ir/UserText.h"
#include "ir/reference/Rounding.h"
#include "runtime/model/Initialize.h"
#include "runtime/model/Model.h"
#include "tools/onnx/Tensors.h"
#include "tools/tandem/CheckArrays.h"
#include "tools/tandem/CheckRun.h"
#include "tools/tandem/EmulatedOrders.h"
#include "tools/tandem/FindAnomaly.h"
#include "tools/tandem/HeldValues.h"
#include "tools/tandem/RoundingNoise.h"
#include "tools/tandem/Session.h"

#include "llvm/Support/Regex.h"

#include <cmath>
#include <limits>
#include <set>

using namespace mlir;
using namespace tandem;
using namespace tandem::commands;
using reference::Array;
using runtime::CounterStream;
using runtime::Model;

namespace {

/// The module at the phases that the check looks at.
struct Stages {
  OwningOpRef<ModuleOp> graph; ///< after functionalize: the forward alone
  OwningOpRef<ModuleOp> joint;
  OwningOpRef<ModuleOp> parts; ///< after partition: the whole step
};

class Checker {
public:
  /// The programs run on models that `load` loads; `model` has their values.
  Checker(Stages &stages, Model model, std::function<Result<Model>()> load,
          bool isEmulated, const CheckSettings &settings)
      : graph(stages.graph->lookupSymbol<func::FuncOp>("graph")),
        joint(stages.joint->lookupSymbol<func::FuncOp>("joint")),
        step(stages.parts->lookupSymbol<func::FuncOp>("step")),
        prepare(stages.parts->lookupSymbol<func::FuncOp>("prepare")),
        model(std::move(model)), load(std::move(load)), isEmulated(isEmulated),
        settings(settings), seed(settings.seed) {}

  Result<ModelCheck> run();

private:
  Status findTrusted();
  Status drawArguments();
  Status runCode();
  Status checkLaws(const std::vector<Array> &all, ModelCheck &found);
  Status argumentsOf(func::FuncOp program, std::vector<Array> &found) const;
  Status checkStep(std::vector<StepCheck> &checks);
  FailureOr<SmallVector<Array>> forwardAt(const std::vector<Array> &at);
  Result<double> lossAt(const std::vector<Array> &at);
  std::pair<Array, double> steepDirection(const std::string &name,
                                          const Array &gradient) const;
  Status numericGradient(unsigned argument, const Array &gradient,
                         GradientCheck &check, double scale);

  func::FuncOp graph, joint;
  func::FuncOp step, prepare; ///< may be null
  Model model;
  std::function<Result<Model>()> load;
  bool isEmulated;
  const CheckSettings &settings;
  uint64_t seed;
  llvm::DenseMap<Value, std::string> trusted; ///< what is before which op
  HeldValues held;
  std::vector<Array> arguments; ///< of @graph
  std::vector<std::pair<std::string, runtime::Tensor>> inputs;
  std::vector<Array> stepArguments;
  CompiledValues compiled;
};

static std::string nameOf(CustomVjpOp op) {
  auto named = dyn_cast<NameLoc>(op.getLoc());
  return named ? named.getName().str() : "custom_vjp";
}

/// What the operands of the trusted ops follow from: gradients that reach it
/// went through one of them.
Status Checker::findTrusted() {
  const std::string &trust = settings.trust;
  if (trust.empty())
    return Status::success();
  std::string error, others;
  if (!isRegex(trust, error))
    return Status::usage("expected --trust to be a regular expression, but "
                         "got '" +
                         trust + "': " + error);
  llvm::Regex expression(trust);
  SmallVector<std::pair<Value, std::string>> open;
  for (CustomVjpOp op : graph.getOps<CustomVjpOp>()) {
    std::string name = nameOf(op);
    if (!expression.match(name))
      others += (others.empty() ? "'" : ", '") + name + "'";
    else
      for (Value operand : op->getOperands())
        open.emplace_back(operand, name);
  }
  if (open.empty())
    return Status::usage("--trust=" + trust +
                         " matches no custom_vjp of the model: " +
                         (others.empty() ? "it has none" : others));
  while (!open.empty()) {
    auto [value, name] = open.pop_back_val();
    if (!trusted.try_emplace(value, name).second)
      continue;
    if (Operation *op = value.getDefiningOp())
      for (Value operand : op->getOperands())
        open.emplace_back(operand, name);
  }
  return Status::success();
}

/// Inputs are drawn, params and states are the model's.
Status Checker::drawArguments() {
  for (unsigned i = 0, n = graph.getNumArguments(); i < n; ++i) {
    RoleAttr role = roleOfArgument(graph, i);
    std::string name = role.getName().str();
    if (role.getKind() != RoleKind::Input) {
      auto tensor = model.get(name);
      if (!tensor)
        return tensor.status();
      auto host = tensor->onHost();
      if (!host)
        return host.status();
      arguments.push_back(toArray(*host));
      continue;
    }
    const artifact::Value *value = model.manifest().findValue(name);
    if (!value)
      return Status::failed("the artifact lacks input '" + name + "'");
    auto tensor = runtime::Tensor::empty(value->dtype, value->shape);
    if (!tensor)
      return tensor.status();
    CounterStream stream(seed, runtime::streamOf("input " + name));
    // Of integers whose range nobody knows: masks and counts have both.
    auto [low, high] = value->commonRange().value_or(std::pair(0, 2));
    auto type = cast<RankedTensorType>(graph.getArgumentTypes()[i]);
    Array array(type);
    for (int64_t k = 0; k < array.size(); ++k) {
      if (isa<FloatType>(type.getElementType()))
        array[k] = static_cast<float>(2.0 * stream.centered(k));
      else
        array[k] = double(low) +
                   std::floor(stream.unit(k) * (double(high) - double(low)));
    }
    auto draft = runtime::Tensor::empty(artifact::DType::F64, value->shape);
    if (!draft)
      return draft.status();
    std::copy(array.data.begin(), array.data.end(),
              draft->mutableData<double>());
    auto converted = draft->to(value->dtype);
    if (!converted)
      return converted.status();
    // What the type holds is what both sides compute with.
    arguments.push_back(toArray(*converted));
    inputs.emplace_back(name, std::move(*converted));
  }
  // Before the step changes them.
  return step ? argumentsOf(step, stepArguments) : Status::success();
}

/// The arguments of a program: what was drawn, the model's own values, and what
/// is prepared of these.
Status Checker::argumentsOf(func::FuncOp program,
                            std::vector<Array> &found) const {
  for (unsigned i = 0, n = program.getNumArguments(); i < n; ++i) {
    RoleAttr role = roleOfArgument(program, i);
    if (role.getKind() == RoleKind::Prepared) {
      std::vector<Array> from;
      if (Status s = argumentsOf(prepare, from); !s)
        return s;
      // Rounded: what its type holds is what the step begins with.
      auto results = reference::evaluate(prepare, from);
      auto which = findResult(prepare, RoleKind::Prepared, role.getName());
      if (failed(results) || !which)
        return Status::failed("the reference cannot prepare '" +
                              role.getName().str() + "'");
      found.push_back(std::move((*results)[*which]));
      continue;
    }
    if (role.getKind() == RoleKind::Input) {
      found.push_back(arguments[*findValue(graph, role.getName())]);
      continue;
    }
    auto tensor = model.get(role.getName().str());
    if (!tensor)
      return tensor.status();
    // At once: reading elements of a device one by one takes most of a check.
    auto host = tensor->onHost();
    if (!host)
      return host.status();
    found.push_back(toArray(*host));
  }
  return Status::success();
}

/// Runs what was compiled, on the emulated GPU in several orders.
Status Checker::runCode() {
  auto values =
      isEmulated ? runInOrders(load, inputs) : runCompiled(load, inputs);
  if (!values)
    return values.status();
  compiled = std::move(*values);
  return Status::success();
}

/// What @graph gives for these arguments. A gradient inside of the forward has
/// no reference until it is built, so that such a graph runs as the joint.
FailureOr<SmallVector<Array>> Checker::forwardAt(const std::vector<Array> &at) {
  auto hold = [this](Operation *op, MutableArrayRef<Array> results) {
    held(op, results);
  };
  if (graph.getOps<GradOp>().empty())
    return reference::evaluateUnrounded(graph, at, hold);
  std::vector<Array> all = at;
  for (unsigned i = at.size(), n = joint.getNumArguments(); i < n; ++i)
    all.emplace_back(cast<RankedTensorType>(joint.getArgumentTypes()[i]));
  auto results = reference::evaluateUnrounded(joint, all, hold);
  if (succeeded(results))
    results->resize(graph.getNumResults());
  return results;
}

/// The sum of all outputs and new values that get a cotangent.
Result<double> Checker::lossAt(const std::vector<Array> &at) {
  held.giveAgain();
  auto results = forwardAt(at);
  if (failed(results))
    return Status::failed("the reference cannot evaluate the graph");
  double loss = 0;
  for (unsigned i = 0, n = graph.getNumResults(); i < n; ++i) {
    RoleAttr role = roleOfResult(graph, i);
    std::string name = role.getName().str();
    if (role.getKind() == RoleKind::Update)
      name = "update of " + name;
    if (findArgument(joint, RoleKind::Cotangent, name))
      for (double x : (*results)[i].data)
        loss += x;
  }
  return loss;
}

/// Returns the one of some random directions along which the gradient is
/// steepest, and its derivative there: along one that the gradient hardly has,
/// a wrong factor would hardly show.
std::pair<Array, double> Checker::steepDirection(const std::string &name,
                                                 const Array &gradient) const {
  CounterStream stream(seed, runtime::streamOf("direction " + name));
  std::pair<Array, double> best{Array(ArrayRef<int64_t>(gradient.shape)), 0.0};
  constexpr int64_t kTried = 16;
  for (int64_t k = 0; k < kTried; ++k) {
    Array direction(ArrayRef<int64_t>(gradient.shape));
    for (int64_t i = 0; i < direction.size(); ++i)
      direction[i] = stream.unit(k * direction.size() + i) - 0.5;
    double length = norm(direction), derivative = 0;
    for (int64_t i = 0; i < direction.size(); ++i) {
      direction[i] /= length;
      derivative += direction[i] * gradient[i];
    }
    if (k == 0 || std::abs(derivative) > std::abs(best.second))
      best = {std::move(direction), derivative};
  }
  return best;
}

Status Checker::numericGradient(unsigned argument, const Array &gradient,
                                GradientCheck &check, double scale) {
  auto [direction, derivative] = steepDirection(check.name, gradient);
  // Small enough that few activations cross a kink, large enough for doubles.
  const double step = 1e-6 * std::max(1.0, norm(arguments[argument]));
  std::vector<Array> moved = arguments;
  double losses[2], size = 0;
  for (int side : {0, 1}) {
    for (int64_t i = 0; i < direction.size(); ++i)
      moved[argument][i] =
          arguments[argument][i] + (side ? step : -step) * direction[i];
    auto loss = lossAt(moved);
    if (!loss)
      return loss.status();
    losses[side] = *loss;
    size = std::max(size, std::abs(*loss));
  }
  double difference = (losses[1] - losses[0]) / (2 * step);
  // The losses are sums in double; of their last bits a difference is made.
  double rounding = 64 * std::numeric_limits<double>::epsilon() * size / step;
  // A random direction meets 1/sqrt(n) of the gradient's length.
  double typical =
      scale /
      std::sqrt(static_cast<double>(std::max<int64_t>(direction.size(), 1)));
  double off = std::abs(difference - derivative);
  check.numericError = std::max(off - rounding, 0.0) /
                       std::max({std::abs(derivative), typical, 1e-300});
  return Status::success();
}

/// What the whole step left, beside the reference's. What is not changed is
/// compared with what it was.
Status Checker::checkStep(std::vector<StepCheck> &checks) {
  reference::Call call;
  llvm::append_range(call.arguments, stepArguments);
  SmallVector<unsigned> places; // of the results that are checked
  auto results = reference::evaluateUnrounded(step, stepArguments);
  if (failed(results))
    return Status::failed("the reference cannot evaluate the step");
  for (unsigned i = 0, n = step.getNumResults(); i < n; ++i) {
    RoleAttr role = roleOfResult(step, i);
    bool isUpdate = role.getKind() == RoleKind::Update;
    if (!isUpdate && role.getKind() != RoleKind::Output)
      continue;
    std::string name = role.getName().str();
    if (isUpdate && !findValue(step, name))
      continue; // what is prepared
    const auto &values = isUpdate ? compiled.stepValues : compiled.stepOutputs;
    auto it = values.find(name);
    if (it == values.end())
      return Status::failed("the step gave no '" + name + "'");
    const Array &expected = (*results)[i];
    // Of a param what changes is small beside it.
    double size = norm(expected);
    if (auto argument = findValue(step, name); isUpdate && argument)
      size = distance(expected, stepArguments[*argument]);
    checks.push_back({isUpdate ? "update of " + name : name,
                      distance(toArray(it->second), expected), size});
    places.push_back(i);
  }
  auto isExplained = [&](ArrayRef<double> rounding) {
    for (auto [check, place] : llvm::zip_equal(checks, places))
      if (!(check.error <=
            std::max(kOfRounding * rounding[place], kRelative * check.size)))
        return false;
    return true;
  };
  auto rounding = roundingUntil(step, call, *results, seed, isExplained);
  if (failed(rounding))
    return Status::failed("the reference cannot evaluate the step");
  for (auto [check, place] : llvm::zip_equal(checks, places))
    check.rounding = kOfRounding * (*rounding)[place];
  return Status::success();
}

static NamedArrays toArrays(const std::map<std::string, runtime::Tensor> &of) {
  NamedArrays arrays;
  for (const auto &[name, tensor] : of)
    arrays.emplace(name, toArray(tensor));
  return arrays;
}

/// `all` are the joint's arguments.
Status Checker::checkLaws(const std::vector<Array> &all, ModelCheck &found) {
  if (settings.linear) {
    auto linear = checkLinear(
        joint, all, seed, [&](const NamedArrays &at) -> Result<NamedArrays> {
          auto gradients = runBackward(load, inputs, at);
          return gradients ? Result<NamedArrays>(toArrays(*gradients))
                           : gradients.status();
        });
    if (!linear)
      return linear.status();
    found.linear = std::move(*linear);
  }
  if (!settings.rowsAlike)
    return Status::success();
  auto rows = checkRows(
      joint, all, seed, [&](const NamedArrays &at) -> Result<NamedArrays> {
        auto moved = withArrays(inputs, at);
        auto values = moved ? runCompiled(load, *moved) : moved.status();
        if (!values)
          return values.status();
        NamedArrays arrays = toArrays(values->gradients);
        for (const auto &[name, tensor] : values->outputs)
          arrays.emplace("output '" + name + "'", toArray(tensor));
        return arrays;
      });
  if (!rows)
    return rows.status();
  found.rows = std::move(*rows);
  return Status::success();
}

Result<ModelCheck> Checker::run() {
  if (Status s = findTrusted(); !s)
    return s;
  if (Status s = drawArguments(); !s)
    return s;
  if (Status s = runCode(); !s)
    return s;
  std::vector<Array> all = arguments;
  held.keep();
  auto forward = forwardAt(arguments);
  if (failed(forward))
    return Status::failed("the reference cannot evaluate the graph");
  for (unsigned i = graph.getNumArguments(), n = joint.getNumArguments(); i < n;
       ++i) {
    RoleAttr role = roleOfArgument(joint, i);
    if (role.has(RoleAttr::kPass)) {
      // What the backward finds is what the forward left.
      auto update = findResult(graph, RoleKind::Update, role.getName());
      all.push_back(update ? (*forward)[*update]
                           : arguments[*findValue(graph, role.getName())]);
      continue;
    }
    all.emplace_back(cast<RankedTensorType>(joint.getArgumentTypes()[i]));
    llvm::fill(all.back().data, 1.0);
  }
  reference::Call call;
  llvm::append_range(call.arguments, all);
  if (settings.anomaly.isOn) {
    auto found = findAnomaly(joint, call, settings.anomaly.findsInfinity());
    if (!found || !found->empty())
      return found ? Status::failed(*found) : std::move(found).status();
  }
  auto results = reference::evaluateUnrounded(joint, all);
  if (failed(results))
    return Status::failed("the reference cannot evaluate the joint program");

  double largest = 0;
  for (unsigned i = 0, n = joint.getNumResults(); i < n; ++i)
    if (roleOfResult(joint, i).getKind() == RoleKind::Grad)
      largest = std::max(largest, norm((*results)[i]));
  auto ofCode = [&](unsigned result) -> std::optional<Array> {
    auto it =
        compiled.gradients.find(roleOfResult(joint, result).getName().str());
    if (it == compiled.gradients.end())
      return std::nullopt;
    return toArray(it->second);
  };
  // Rounding is looked at as far as something is left for it to explain.
  auto isExplained = [&](ArrayRef<double> rounding) {
    for (unsigned i = 0, n = joint.getNumResults(); i < n; ++i) {
      if (roleOfResult(joint, i).getKind() != RoleKind::Grad)
        continue;
      const Array &gradient = (*results)[i];
      // Gradients that cancel to nothing are compared with the largest.
      double scale = std::max(norm(gradient), kOfLargest * largest);
      if (auto code = ofCode(i);
          code && !(distance(*code, gradient) <=
                    std::max(kOfRounding * rounding[i], kRelative * scale)))
        return false;
    }
    return true;
  };
  auto rounding = roundingUntil(joint, call, *results, seed, isExplained);
  if (failed(rounding))
    return Status::failed("the reference cannot evaluate the joint program");
  ModelCheck found;
  for (unsigned i = 0, n = joint.getNumResults(); i < n; ++i) {
    RoleAttr role = roleOfResult(joint, i);
    if (role.getKind() != RoleKind::Grad)
      continue;
    GradientCheck check;
    check.name = role.getName().str();
    const Array &gradient = (*results)[i];
    check.norm = norm(gradient);
    double scale = std::max(check.norm, kOfLargest * largest);
    auto code = ofCode(i);
    if (!code)
      return Status::failed("the artifact has no gradient of '" + check.name +
                            "'");
    check.compiledError = distance(*code, gradient) / std::max(scale, 1e-300);
    check.roundingError = (*rounding)[i] / std::max(scale, 1e-300);
    unsigned argument = *findValue(graph, check.name);
    check.trusted = trusted.lookup(graph.getArgument(argument));
    if (settings.differences && check.trusted.empty())
      if (Status s = numericGradient(argument, gradient, check, scale); !s)
        return s;
    found.gradients.push_back(check);
  }
  if (step)
    if (Status s = checkStep(found.step); !s)
      return s;
  if (Status s = checkLaws(all, found); !s)
    return s;
  return found;
}

/// Counts the kernels of what was run.
void countKernels(const artifact::Manifest &manifest, ModelCheck &check) {
  std::set<int64_t> kernels;
  for (const char *name : {"forward", "backward", "step"})
    if (const artifact::Program *program = manifest.findProgram(name))
      for (const artifact::Launch &launch : program->launches)
        if (!launch.isCopy() && !launch.isCollective()) {
          kernels.insert(launch.kernel);
          ++check.launches;
        }
  check.kernels = kernels.size();
}

} // namespace

Result<ModelCheck> tandem::checkGradients(const std::string &path,
                                          const CompileOptions &asked,
                                          const CheckSettings &settings) {
  Session session(asked);
  auto module = session.read(path);
  if (!module)
    return session.status();
  const CompileOptions &options = session.options();
  if (!options.lora.empty())
    return Status::unsupported(
        "--lora: gradients are compared with those of the model as it is "
        "written, which has no adapters; check it without them");
  if (!options.fp8.empty())
    return Status::unsupported(
        "--fp8: gradients are compared with those of the model as it is "
        "written, whose products are of f32; check it without them");
  auto targets = targetsOf(options);
  if (!targets)
    return targets.status();
  if (targets->size() > 1)
    return Status::usage("--target=" + options.target + " is " +
                         std::to_string(targets->size()) +
                         " targets, and gradients are checked on one: name it, "
                         "as cuda:sm_80 or cpu");
  Stages stages;
  auto phases = [&](CompileOptions part, const char *stop) {
    part.stopAfter = stop;
    return runPhases(*module, part, session.times());
  };
  if (Status s = phases(options, "functionalize"); !s)
    return std::move(s).in(path);
  stages.graph = module->clone();
  if (Status s = phases(withoutDone(options, *module), "joint"); !s)
    return std::move(s).in(path);
  stages.joint = module->clone();
  if (Status s = phases(withoutDone(options, *module), "partition"); !s)
    return std::move(s).in(path);
  stages.parts = module->clone();
  if (Status s = phases(withoutDone(options, *module), "lower"); !s)
    return std::move(s).in(path);
  auto writer = emitArtifact(*module, options, session.times());
  if (!writer)
    return writer.status();
  auto bytes = writer->bytes();
  if (!bytes)
    return bytes.status();
  auto load = [&]() -> Result<Model> {
    auto reader =
        artifact::ArtifactReader::fromMemory(std::as_bytes(std::span(*bytes)));
    if (!reader)
      return reader.status();
    runtime::Options where = {.threads = options.threads,
                              .seed = settings.seed};
    if (options.emulation) {
      where.device = runtime::Device{runtime::DeviceKind::CudaEmu, 0};
      where.useLibraries = false; // every kernel is to run
    }
    auto model = Model::load(std::move(*reader), where);
    if (model)
      if (Status s = onnx::setWeights(*model, session.weights()); !s)
        return s;
    return model;
  };
  // What a model before made it find is not of this one.
  if (options.emulation)
    if (Status s = resetEmulator(); !s)
      return s;
  auto model = load();
  if (!model)
    return model.status();
  ModelCheck counted;
  if (options.emulation)
    countKernels(model->manifest(), counted);
  auto check =
      Checker(stages, std::move(*model), load, options.emulation, settings)
          .run();
  if (check) {
    check->kernels = counted.kernels;
    check->launches = counted.launches;
  }
  return check;
}
