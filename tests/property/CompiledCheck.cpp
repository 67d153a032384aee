//===- CompiledCheck.cpp - compiled code, against the oracle --------------===//
#include "tests/property/Check.h"

#include "cuda/Register.h"
#include "ir/Signature.h"
#include "ir/reference/Evaluator.h"
#include "tests/semantics/Harness.h"
#include "tests/support/TestKernels.h"

#include <cmath>
#include <unistd.h>

using namespace mlir;
using namespace tandem;
using namespace tandem::property;

/// The machine and the reference round alike, but for the functions of libm.
static constexpr double kTolerance = 1e-8;

namespace {

/// One program in the runtime.
class Call {
public:
  Call(const Recipe &recipe, func::FuncOp captured)
      : recipe(recipe), captured(captured), values(valuesOf(recipe, captured)),
        oracle(captured, values) {
    for (unsigned i = 0; i < values.size(); ++i)
      names.push_back(roleOfArgument(captured, i).getName().str());
  }

  /// What is wrong, or "".
  std::string run(test::CompiledMachine &machine);

private:
  std::string same(const std::string &what, const Array &expected,
                   const std::vector<double> &got) const;
  std::string compareForward(test::CompiledMachine &machine);
  std::string compareBackward(test::CompiledMachine &machine);

  bool isAlias(unsigned i) { return roleOfArgument(captured, i).has("alias"); }
  void showAliases(test::CompiledMachine &machine);

  const Recipe &recipe;
  func::FuncOp captured;
  std::vector<Array> values;
  Oracle oracle;
  std::vector<std::string> names;
};

} // namespace

std::string Call::same(const std::string &what, const Array &expected,
                       const std::vector<double> &got) const {
  bool isSame = expected.data.size() == got.size();
  for (int64_t i = 0; isSame && i < expected.size(); ++i)
    isSame = std::abs(expected[i] - got[i]) <=
             kTolerance * (1 + std::abs(expected[i]) + oracle.largest);
  if (isSame)
    return "";
  std::string text = what + "\nexpected ";
  for (double x : expected.data)
    text += std::to_string(x) + " ";
  text += "\ngot      ";
  for (double x : got)
    text += std::to_string(x) + " ";
  return text;
}

std::string Call::compareForward(test::CompiledMachine &machine) {
  for (auto [i, output] : llvm::enumerate(oracle.outputs)) {
    std::string name = "o" + std::to_string(i);
    if (std::string problem = same("run: an output has another value\n" + name,
                                   output.value, machine.outputs[name]);
        !problem.empty())
      return problem;
    for (unsigned k = 0; k < names.size() && output.ref; ++k)
      if (output.ref->storage == oracle.atEnd[k].storage &&
          !machine.share(name, names[k]))
        return "run: an output does not share the storage of an argument\n" +
               name + ", " + names[k];
    for (size_t k = 0; k < i && output.ref; ++k) {
      const auto &other = oracle.outputs[k].ref;
      if (other && other->storage == output.ref->storage &&
          other->positions.data == output.ref->positions.data &&
          !machine.share(name, "o" + std::to_string(k)))
        return "run: outputs do not share their storage\n" + name;
    }
  }
  return "";
}

/// What the handles of the arguments show; params and states are the model's.
static Array shown(const Oracle &oracle, unsigned i) {
  Array result(oracle.atEnd[i].positions.shape);
  Numbers now = oracle.show(oracle.atEnd[i]);
  for (int64_t k = 0; k < result.size(); ++k)
    result[k] = now.data[k].value;
  return result;
}

std::string Call::compareBackward(test::CompiledMachine &machine) {
  for (unsigned i = 0; i < names.size(); ++i) {
    auto it = machine.gradients.find(names[i]);
    bool isDefined = it != machine.gradients.end();
    if (!isDefined && oracle.isReached(i))
      return "run: a gradient is undefined\n" + names[i];
    if (isDefined && !(oracle.defined >> i & 1))
      return "run: a gradient is defined that no cotangent reaches\n" +
             names[i];
    if (isDefined)
      if (std::string problem =
              same("run: a gradient has another value\n" + names[i],
                   oracle.gradient(i), it->second);
          !problem.empty())
        return problem;
  }
  return "";
}

/// Makes the declared aliases views of what they share.
void Call::showAliases(test::CompiledMachine &machine) {
  for (unsigned i = 0; i < names.size(); ++i) {
    if (!isAlias(i))
      continue;
    auto alias = roleOfArgument(captured, i)
                     .getProperties()
                     .getAs<DictionaryAttr>("alias");
    std::string of = alias.getAs<StringAttr>("of").str();
    if (alias.contains("type") && !machine.tensors.count(of))
      machine.setStorage(of, oracle.storageOf(i), DType::F64);
    reference::Handle handle{0, oracle.atCall[i].positions};
    auto strides = handle.strides();
    machine.setView(names[i], of, {handle.positions.shape},
                    {strides.begin(), strides.end()},
                    static_cast<int64_t>(handle.positions[0]));
  }
}

std::string Call::run(test::CompiledMachine &machine) {
  for (unsigned i = 0; i < names.size(); ++i) {
    if (isAlias(i))
      continue;
    machine.set(names[i], values[i].data);
    // Params and states are the model's.
    if (auto tensor = machine.model.get(names[i]))
      machine.tensors[names[i]] = *tensor;
  }
  showAliases(machine);
  if (std::string error = machine.forward(); !error.empty())
    return "run: the forward fails\n" + error;
  auto compareContents = [&](const std::string &when) -> std::string {
    for (unsigned i = 0; i < names.size(); ++i)
      if (std::string problem =
              same("run: a handle shows something else after the " + when +
                       "\n" + names[i],
                   shown(oracle, i), machine.contents(names[i]));
          !problem.empty())
        return problem;
    return "";
  };
  for (std::string problem :
       {compareContents("forward"), compareForward(machine)})
    if (!problem.empty())
      return problem;
  const artifact::Program *backward =
      machine.model.manifest().findProgram("backward");
  if (!backward)
    return "";
  std::map<std::string, Array> cotangents;
  test::NamedNumbers given;
  for (const artifact::Slot &slot : backward->arguments)
    if (slot.role == artifact::Role::Cotangent)
      cotangents[slot.name] = cotangentOf(recipe, slot.name, slot.shape);
  dropSome(recipe, cotangents);
  for (auto &[name, value] : cotangents)
    given[name] = value.data;
  oracle.backward(cotangents);
  if (oracle.isAmbiguous)
    return "";
  if (std::string error = machine.backward(given, {}); !error.empty())
    return "run: the backward fails\n" + error;
  for (std::string problem :
       {compareContents("backward"), compareBackward(machine)})
    if (!problem.empty())
      return problem;
  return "";
}

/// The program compiled for a device and run there; "" if it agrees.
static std::string checkOn(runtime::Device device, const Recipe &recipe,
                           ModuleOp captured) {
  OwningOpRef<ModuleOp> module(captured.clone());
  CompileOptions options;
  auto kernels = testKernels();
  options.kernels = kernels.get();
  options.threads = 1;
  if (!device.isHost()) {
    options.target = "cuda:sm_90";
    options.cubin = "no";
    options.emulation = true;
  }
  std::vector<PhaseTime> times;
  if (Status status = runPhases(*module, options, times); !status)
    return "it cannot be compiled\n" + status.message();
  auto writer = emitArtifact(*module, options, times);
  if (!writer)
    return "it cannot be emitted\n" + writer.status().message();
  std::string path =
      testing::TempDir() + "property-" + std::to_string(getpid()) + ".tdm";
  if (Status status = writer->write(path); !status)
    return "its artifact cannot be written\n" + status.message();
  auto machine = test::CompiledMachine::load(path, device);
  std::remove(path.c_str());
  if (!machine)
    return "its artifact cannot be loaded";
  return Call(recipe, captured.lookupSymbol<func::FuncOp>("graph"))
      .run(*machine);
}

Verdict property::checkCompiled(const Recipe &recipe, MLIRContext &context) {
  Verdict verdict = check(recipe, context);
  if (verdict.kind != Verdict::Agrees)
    return verdict;
  std::string diagnostics;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    diagnostics += diagnostic.str() + "\n";
    return success();
  });
  cuda::registerDevices();
  auto captured = build(recipe, context);
  for (runtime::DeviceKind kind :
       {runtime::DeviceKind::Cpu, runtime::DeviceKind::CudaEmu}) {
    runtime::Device device{kind, 0};
    std::string problem = checkOn(device, recipe, *captured);
    if (!problem.empty())
      return {Verdict::Fails,
              toString(device) + ": " + problem.substr(0, problem.find('\n')),
              toString(device) + ": " + problem + "\n" + diagnostics};
  }
  return {};
}
