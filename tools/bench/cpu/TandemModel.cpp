//===- TandemModel.cpp - Tandem's contender of a case ---------------------===//
#include "tools/bench/cpu/TandemModel.h"
#include "runtime/model/Model.h"

#include <cstdio>
#include <cstdlib>

using namespace tandem;
using namespace tandem::bench;
using namespace tandem::runtime;

Result<Artifact> bench::compile(const Case &c, const std::string &target) {
  CompileOptions options;
  options.target = target;
  options.inference = c.optimizer.empty();
  options.optimizer = c.optimizer;
  options.winograd = c.isDirect ? "no" : "auto";
  return compileText(c.program, options);
}

namespace {

/// A loaded model with the tensors that it is called with.
struct Program {
  explicit Program(Model model) : model(std::move(model)) {}
  Model model;
  std::vector<Tensor> inputs, outputs;
  std::vector<Argument> arguments;
  std::vector<Destination> destinations;
};

/// A call that failed is a mistake of this program: nothing is measured then.
void expect(const Status &status) {
  if (!status) {
    std::fprintf(stderr, "bench-cpu: %s\n", status.message().c_str());
    std::exit(status.exitCode());
  }
}

} // namespace

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
  Contender contender;
  contender.name = "tandem";
  contender.group = Contender::Tandem;
  if (!c.optimizer.empty()) {
    if (Status status = program->model.set("w", inputs[1]); !status)
      return status;
    program->arguments = {{"w", &program->inputs[0]}};
    program->outputs = {*program->model.get("w")};
    contender.call = [program] {
      expect(program->model.update(program->arguments));
    };
  } else {
    for (size_t i = 0; i < inputs.size(); ++i)
      program->arguments.push_back({c.inputs[i].name, &program->inputs[i]});
    for (size_t i = 0; i < outputs.size(); ++i)
      program->destinations.push_back(
          {c.outputs[i].name, &program->outputs[i]});
    contender.call = [program] {
      expect(program->model.run("evaluate", program->arguments,
                                program->destinations));
    };
  }
  contender.outputs = program->outputs;
  return contender;
}
