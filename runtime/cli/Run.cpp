//===- Run.cpp - `run`: one call of a program -----------------------------===//
//
// Scalars go to stdout exactly (the shortest text that reads back the same),
// other outputs as a summary; whole arrays go into files.
//
//===----------------------------------------------------------------------===//
#include "runtime/cli/Checkpoint.h"
#include "runtime/cli/Commands.h"
#include "runtime/cli/Inputs.h"
#include "runtime/cli/Print.h"
#include "runtime/cli/Profile.h"
#include "runtime/io/Argument.h"
#include "runtime/io/Elements.h"
#include "runtime/io/Tensors.h"

#include <cmath>
#include <cstdio>
#include <deque>

namespace tandem::commands {
namespace {

using runtime::Tensor;

struct RunOptions {
  static constexpr std::string_view
      usage = "run X.tdm --input NAME=@FILE ... [options]",
      description =
          "Runs a program once and prints its scalar outputs and a summary of "
          "the others. An input is NAME=@FILE.npy, NAME=@FILE.npz:MEMBER, "
          "NAME=@FILE.safetensors:TENSOR or a scalar, NAME=3.5; types are "
          "converted where nothing is lost by it.";

  ModelOptions model;
  std::string program;
  std::vector<std::string> inputs, outputs;

  void declare(OptionTable &options) {
    options
        .text("program", "NAME", program,
              "the program: evaluate, forward or step")
        .byDefault("evaluate if the artifact has it, else forward");
    options.list("input", "NAME=@FILE", inputs, "an input; one for each")
        .keyed();
    options.list("output", "NAME=@FILE", outputs,
                 "writes an output to a .npy, .npz or .safetensors file");
    model.declare(options);
  }
};

/// Returns a row of the summary: minimum, maximum and mean of finite elements.
std::vector<std::string> summary(std::string_view name, const Tensor &tensor) {
  double low = INFINITY, high = -INFINITY, sum = 0;
  int64_t finite = 0;
  const auto *data = tensor.data<std::byte>();
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    double value = io::elementAsDouble(tensor.dtype(), data, i);
    if (!std::isfinite(value))
      continue;
    ++finite;
    low = std::min(low, value);
    high = std::max(high, value);
    sum += value;
  }
  std::vector<std::string> row = {std::string(name),
                                  std::string(spelling(tensor.dtype())),
                                  runtime::toString(tensor.shape())};
  for (double value : {low, high, sum / double(finite)})
    row.push_back(finite ? roundedText(value) : "-");
  row.push_back(std::to_string(tensor.elements() - finite));
  return row;
}

void printOutputs(const std::deque<NamedTensor> &outputs) {
  for (const auto &[name, tensor] : outputs)
    if (tensor.rank() == 0)
      std::printf("%s = %s\n", name.c_str(), scalarText(tensor).c_str());
  std::vector<std::vector<std::string>> rows = {
      {"output", "type", "shape", "min", "max", "mean", "nan/inf"}};
  for (const auto &[name, tensor] : outputs)
    if (tensor.rank() != 0)
      rows.push_back(summary(name, tensor));
  if (rows.size() > 1)
    printTable(rows);
}

/// Matches `--output` arguments with the program's outputs.
Result<std::vector<io::Argument>>
parseOutputs(const std::vector<std::string> &texts,
             const artifact::Program &program) {
  Problems problems;
  std::vector<io::Argument> result;
  for (const std::string &text : texts) {
    auto argument = io::parseArgument(text);
    if (!argument) {
      problems.add("--output: " + argument.status().message());
      continue;
    }
    std::string known;
    bool found = false;
    for (const artifact::Slot &slot : artifact::outputsOf(program)) {
      found |= slot.name == argument->name;
      known += (known.empty() ? "'" : ", '") + slot.name + "'";
    }
    if (!found)
      problems.add("--output: program '" + program.name + "' has no output '" +
                   argument->name + "'; it has " +
                   (known.empty() ? "none" : known));
    else if (argument->kind == io::Argument::Kind::Scalar)
      problems.add("--output '" + argument->name +
                   "': expected '@FILE' but got '" + argument->text + "'");
    else if (Status status = checkWritable(argument->text); !status)
      return status;
    result.push_back(*std::move(argument));
  }
  if (!problems.none())
    return problems.status();
  return result;
}

Status run(const RunOptions &options) {
  auto model = options.model.load();
  if (!model)
    return std::move(model).status();
  auto chosen = chooseProgram(model->manifest(), options.program,
                              {"evaluate", "forward"});
  if (!chosen)
    return std::move(chosen).status();
  const artifact::Program &program = **chosen;
  auto files = parseOutputs(options.outputs, program);
  if (!files)
    return std::move(files).status();
  auto inputs = readTensors(options.inputs, "--input", model->manifest());
  if (!inputs)
    return std::move(inputs).status();

  std::vector<runtime::Argument> arguments;
  for (NamedTensor &input : *inputs)
    arguments.push_back({input.name, &input.tensor});
  std::deque<NamedTensor> outputs; // destinations point into it
  std::vector<runtime::Destination> destinations;
  for (const artifact::Slot &slot : artifact::outputsOf(program)) {
    NamedTensor &output = outputs.emplace_back(NamedTensor{slot.name, {}});
    destinations.push_back({output.name, &output.tensor});
  }
  Profile profile;
  if (Status status = profile.start(options.model, *model); !status)
    return status;
  if (Status status = model->run(program.name, arguments, destinations);
      !status)
    return status;
  if (Status status = profile.stop(); !status)
    return status;
  // A view of an input may have any strides, and a device's memory is its own;
  // files and summaries are of dense elements on the host.
  for (NamedTensor &output : outputs) {
    auto dense = output.tensor.onHost();
    if (dense)
      dense = dense->dense();
    if (!dense)
      return std::move(dense).status().in("'" + output.name + "'");
    output.tensor = *std::move(dense);
  }

  std::vector<io::OutputFile> writes;
  for (const io::Argument &file : *files)
    for (const NamedTensor &output : outputs)
      if (output.name == file.name)
        writes.push_back({file, io::viewOf(output.tensor)});
  if (Status status = io::writeArguments(writes); !status)
    return status;
  printOutputs(outputs);
  return Status::success();
}

} // namespace

Command runCommand() {
  return commandOf<run>("run", "run a program of an artifact on given inputs");
}

} // namespace tandem::commands
