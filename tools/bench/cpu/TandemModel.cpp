//===- TandemModel.cpp - Tandem's contender of a case ---------------------===//
#include "tools/bench/cpu/TandemModel.h"
#include "runtime/Model.h"

#include <cstdio>
#include <cstdlib>

using namespace tandem;
using namespace tandem::bench;
using namespace tandem::runtime;

Result<Artifact> bench::compile(const Case &c, const std::string &target) {
  CompileOptions options;
  options.target = target;
  options.inference = c.calls == Case::Evaluate;
  options.optimizer = c.optimizer;
  return compileText(c.program, options);
}

namespace {

/// A loaded model with the tensors that it is called with.
struct Program {
  Program(Model model) : model(std::move(model)) {}
  Model model;
  std::vector<std::string> names;
  std::vector<Tensor> inputs, outputs;
  std::vector<Argument> arguments;
  std::vector<Destination> destinations;

  Status evaluate() { return model.run("evaluate", arguments, destinations); }
};

} // namespace

/// A call that failed is a mistake of this program: nothing is measured then.
static void expect(const Status &status) {
  if (!status) {
    std::fprintf(stderr, "bench-cpu: %s\n", status.message().c_str());
    std::exit(status.exitCode());
  }
}

Result<Contender> bench::tandemContender(const Case &c,
                                         const Artifact &artifact,
                                         const std::vector<Tensor> &inputs,
                                         const std::vector<Tensor> &outputs,
                                         int threads) {
  auto reader = read(artifact);
  if (!reader)
    return reader.status();
  Options options;
  options.threads = threads;
  auto model = Model::load(std::move(*reader), options);
  if (!model)
    return model.status();
  auto program = std::make_shared<Program>(std::move(*model));
  program->inputs = inputs;
  program->outputs = outputs;
  for (size_t i = 0; i < inputs.size(); ++i)
    program->arguments.push_back({c.inputs[i].name, &program->inputs[i]});
  for (size_t i = 0; i < outputs.size(); ++i)
    program->destinations.push_back({c.outputs[i].name, &program->outputs[i]});
  Contender contender;
  contender.name = "tandem";
  contender.isPeer = false;
  contender.outputs = program->outputs;
  contender.call = [program] { expect(program->evaluate()); };
  return contender;
}
