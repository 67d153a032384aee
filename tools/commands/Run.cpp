//===- Run.cpp - `run`: one call of a program -----------------------------===//
//
// Scalars go to stdout exactly (the shortest text that reads back the same),
// other outputs as a summary; whole arrays go into files.
//
//===----------------------------------------------------------------------===//
#include "runtime/io/Tensors.h"
#include "runtime/model/Pieces.h"
#include "tools/commands/Arrays.h"
#include "tools/commands/Commands.h"
#include "tools/commands/Outputs.h"
#include "tools/commands/Print.h"
#include "tools/commands/Profile.h"

#include <deque>

namespace tandem::commands {
namespace {

struct RunOptions {
  static constexpr std::string_view
      usage = "run X.tdm --input NAME=@FILE ... [options]",
      description =
          "Runs a program once and prints its scalar outputs and a summary of "
          "the others. An input is NAME=@FILE.npy, NAME=@FILE.npz:MEMBER, "
          "NAME=@FILE.safetensors:TENSOR, NAME=@FILE.csv:COLUMNS or a scalar, "
          "NAME=3.5; types are converted where nothing is lost by it, and as "
          "--cast says.";

  ModelOptions model;
  std::string program;
  std::vector<std::string> inputs, outputs;
  Casts casts;
  bool json = false;

  void declare(OptionTable &options) {
    options
        .text("program", "NAME", program,
              "the program: evaluate, forward or step")
        .byDefault("evaluate if the artifact has it, else forward");
    options.list("input", "NAME=@FILE", inputs, "an input; one for each")
        .keyed();
    options.list("output", "NAME=@FILE", outputs,
                 "writes an output to a .npy, .npz, .safetensors or .csv file, "
                 "or adds it to an archive: NAME=@FILE.npz:MEMBER");
    casts.declare(options);
    options.flag("json", json, "print results as one JSON object");
    model.declareAverage(options).needs("params", "they are in it");
    model.declare(options);
  }
};

/// What to say beside a refusal where an input has another number of rows than
/// the program takes, and fits else.
std::string adviceForRows(const artifact::Program &program,
                          const std::vector<NamedTensor> &inputs) {
  for (const artifact::Slot &slot : program.arguments)
    for (const NamedTensor &input : inputs) {
      auto shape = input.tensor.shape();
      if (slot.role == artifact::Role::Input && slot.name == input.name &&
          !shape.empty() && shape.size() == slot.shape.size() &&
          shape[0] != slot.shape[0] &&
          std::equal(shape.begin() + 1, shape.end(), slot.shape.begin() + 1))
        return "; 'predict' computes outputs for any number of rows, and "
               "'train --steps=0 --eval NAME=@FILE' their mean loss";
    }
  return "";
}

Status run(const RunOptions &options) {
  Files files;
  options.model.declare(files);
  files.readsArguments("--input", options.inputs);
  files.writesArguments("--output", options.outputs);
  if (Status status = options.model.check(files); !status)
    return status;
  auto model = options.model.load();
  if (!model)
    return std::move(model).status();
  auto chosen = chooseProgram(model->manifest(), options.program,
                              {"evaluate", "forward"});
  if (!chosen)
    return std::move(chosen).status();
  const artifact::Program &program = **chosen;
  const artifact::Manifest &whole = model->wholeManifest();
  if (Status status = checkVariables(*model, program); !status)
    return status;
  if (program.name == "step")
    warn("'step' changes parameters, and run keeps nothing of that: 'train "
         "--steps=1 --save=F.safetensors' does");
  auto targets =
      parseOutputs(options.outputs, program.name,
                   artifact::outputsOf(*whole.findProgram(program.name)));
  if (!targets)
    return std::move(targets).status();
  if (!options.model.force && isFirstRank())
    if (Status status = checkReplaced(*targets, artifact::outputsOf(program),
                                      /*isArgmax=*/false);
        !status)
      return status;
  Casts casts = options.casts;
  if (Status status = casts.parse(whole); !status)
    return status;
  auto inputs = readTensors(options.inputs, "--input", whole, casts);
  if (!inputs)
    return std::move(inputs).status();
  for (NamedTensor &input : *inputs)
    if (const artifact::Value *value = model->manifest().findValue(input.name);
        value && model->communicators()) {
      auto piece = pieceOf(input.tensor, *value, model->communicators());
      if (!piece)
        return std::move(piece).status().in("--input " +
                                            io::inQuotes(input.name));
      input.tensor = *std::move(piece);
    }

  options.model.noteInitialValues(*model);
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
    return Status(status.code(),
                  status.message() + adviceForRows(program, *inputs));
  if (Status status = profile.stop(); !status)
    return status;
  // A view of an input may have any strides, and a device's memory is its own;
  // files and summaries are of dense elements on the host.
  for (NamedTensor &output : outputs) {
    const artifact::Value *value = model->manifest().findOutput(output.name);
    auto dense = wholeOf(output.tensor, value, model->communicators());
    if (dense)
      dense = dense->dense();
    if (!dense)
      return std::move(dense).status().in("'" + output.name + "'");
    output.tensor = *std::move(dense);
  }

  if (!isFirstRank())
    return Status::success();
  std::vector<io::OutputFile> writes;
  for (const io::Argument &file : *targets)
    for (const NamedTensor &output : outputs)
      if (output.name == file.name)
        writes.push_back({file, io::viewOf(output.tensor)});
  if (Status status = io::writeArguments(writes); !status)
    return status;
  if (options.json)
    printOutputsAsJson(program.name, outputs);
  else
    printOutputs(outputs);
  return Status::success();
}

} // namespace

Command runCommand() {
  return commandOf<run>("run", "run a program of an artifact on given inputs");
}

} // namespace tandem::commands
