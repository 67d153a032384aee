//===- Run.cpp - cases as programs ----------------------------------------===//
#include "tests/oracle/Run.h"

#include "compiler/Compile.h"
#include "compiler/import/JsonGraph.h"
#include "ir/Dialect.h"
#include "ir/Signature.h"
#include "ir/reference/Evaluator.h"
#include "runtime/model/Model.h"
#include "tests/support/TestKernels.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"

#include <cstdio>
#include <gtest/gtest.h>
#include <unistd.h>

using namespace mlir;
using namespace tandem;
using namespace tandem::oracle;

namespace {

/// A program of some cases, imported.
class Program {
public:
  Program(const Cases &cases, const std::string &type, Asked asked)
      : trains(cases[0]->isTraining()),
        handler(&context(), [this](Diagnostic &diagnostic) {
          if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
            error += diagnostic.str() + "\n";
          return success();
        }) {
    Json graph = emptyGraph();
    for (const Case *c : cases) {
      c->addTo(graph, type, asked);
      inputs.merge(c->inputs(asked));
    }
    Status status;
    module = importJsonGraph(graph.dump(), "case.json", context(), status);
    if (!module)
      error += status.message();
  }

  /// Runs the phases up to `last`; "" is all.
  bool runPhases(const std::string &last) {
    options.inference = !trains;
    options.threads = 1;
    options.kernels = kernels.get();
    options.stopAfter = last;
    if (module)
      if (Status status = tandem::runPhases(*module, options, times); !status)
        error += status.message();
    return error.empty();
  }

  static MLIRContext &context() {
    static MLIRContext *context = [] {
      DialectRegistry registry;
      registerCompiler(registry);
      auto *made = new MLIRContext(registry, MLIRContext::Threading::DISABLED);
      made->loadDialect<TandemDialect>();
      return made;
    }();
    return *context;
  }

  bool trains;
  OwningOpRef<ModuleOp> module;
  NamedNumbers inputs;
  CompileOptions options;
  std::vector<PhaseTime> times;
  std::string error;

private:
  std::unique_ptr<KernelCache> kernels = testKernels();
  ScopedDiagnosticHandler handler;
};

} // namespace

std::string oracle::evaluate(const Cases &cases, const std::string &type,
                             Asked asked, NamedNumbers &outputs) {
  Program program(cases, type, asked);
  bool differentiates = asked == Asked::Derivatives;
  if (!program.module || (differentiates && !program.runPhases("joint")))
    return program.error;
  auto func =
      program.module->lookupSymbol<func::FuncOp>(!differentiates  ? "graph"
                                                 : program.trains ? "joint"
                                                                  : "evaluate");
  if (!func)
    return "there is no function to evaluate";
  SmallVector<reference::Array> arguments;
  for (unsigned i = 0; i < func.getNumArguments(); ++i) {
    const Numbers &given =
        program.inputs.at(roleOfArgument(func, i).getName().str());
    reference::Array array{ArrayRef<int64_t>(given.shape)};
    array.data = given.data;
    arguments.push_back(std::move(array));
  }
  auto results = reference::evaluate(func, arguments);
  if (failed(results))
    return program.error + "it cannot be evaluated";
  for (auto [i, result] : llvm::enumerate(*results))
    outputs[roleOfResult(func, i).getName().str()] = {result.shape,
                                                      result.data};
  return "";
}

/// The artifact of `program` in a file of its own; "" and an error if there is
/// none.
static std::string write(Program &program) {
  auto writer = emitArtifact(*program.module, program.options, program.times);
  std::string path =
      testing::TempDir() + "oracle-" + std::to_string(getpid()) + ".tdm";
  Status status = writer ? writer->write(path) : writer.status();
  if (!status)
    program.error += status.message();
  return status ? path : "";
}

std::string oracle::runCompiled(const Cases &cases, const std::string &type,
                                int effort, NamedNumbers &outputs) {
  Program program(cases, type, Asked::Derivatives);
  program.options.effort = effort;
  if (!program.module || !program.runPhases(""))
    return program.error;
  std::string path = write(program);
  if (path.empty())
    return program.error;
  auto model = runtime::Model::load(path, {.threads = 1});
  std::remove(path.c_str());
  if (!model)
    return model.status().message();
  std::map<std::string, runtime::Tensor> given, made;
  std::vector<runtime::Argument> arguments;
  std::vector<runtime::Destination> destinations;
  for (const artifact::Value &value : model->manifest().values) {
    if (value.role == artifact::Role::Output)
      destinations.push_back({value.name, &made[value.name]});
    if (value.role != artifact::Role::Input)
      continue;
    auto exact =
        runtime::Tensor::copyOf(program.inputs.at(value.name).data.data(),
                                artifact::DType::F64, value.shape);
    auto tensor = exact ? exact->to(value.dtype) : std::move(exact);
    if (!tensor)
      return tensor.status().message();
    given[value.name] = *tensor;
    arguments.push_back({value.name, &given[value.name]});
  }
  if (Status status = model->run(program.trains ? "forward" : "evaluate",
                                 arguments, destinations);
      !status)
    return status.message();
  for (auto &[name, tensor] : made) {
    Numbers &result = outputs[name];
    result.shape.assign(tensor.shape().begin(), tensor.shape().end());
    for (int64_t i = 0; i < tensor.elements(); ++i)
      result.data.push_back(tensor.at(i));
  }
  return "";
}
