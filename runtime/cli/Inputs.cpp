//===- Inputs.cpp - what a command line gives to a model ------------------===//
//
// Names and shapes are left to the model's own checks, which know them all;
// here only files are read and element types converted.
//
//===----------------------------------------------------------------------===//
#include "runtime/cli/Inputs.h"

#include "runtime/cli/Checkpoint.h"
#include "runtime/io/Argument.h"
#include "runtime/io/Elements.h"
#include "runtime/io/Tensors.h"

#include <algorithm>

namespace tandem::commands {

using artifact::Manifest;
using artifact::Program;
using artifact::Role;

void ModelOptions::declare(OptionTable &options) {
  options.group("");
  options.positional("X.tdm", artifact, "the artifact");
  options.text("params", "F.safetensors", params,
               "parameters (and states, where the file has them)");
  options.integer("threads", "N", threads, 1, 1024, "threads to compute with")
      .byDefault("one for each processor");
  options
      .integer("seed", "S", seed, 0, INT64_MAX,
               "seed of initial parameters and of shuffling")
      .byDefault("0");
  options.group("device");
  options.text("device", "DEVICE", device, "cpu, cuda[:N] or cuda-emu[:N]")
      .check([](std::string_view text) {
        return runtime::parseDevice(text).status().in("--device");
      })
      .example("cpu")
      .example("cuda:1")
      .byDefault("cpu if the artifact has code for it, else cuda");
  options
      .text("cpu-variant", "ARCH", cpuVariant,
            "of an artifact for several processors, the code for this one")
      .onlyWith("device", "cpu")
      .byDefault("the best that runs here");
  options
      .flag("no-cuda-graph", noGraphs,
            "launch kernels one by one instead of whole programs")
      .excludes("device=cpu");
  options
      .text("libraries", "auto|no", libraries,
            "no: cuBLASLt and cuDNN are not used where they are installed")
      .oneOf({"auto", "no"})
      .excludes("device=cpu")
      .byDefault("auto");
  options
      .text("profile", "F.json", profile,
            "write what ran on the device, and when, in Chrome's format")
      .excludes("device=cpu");
  options.group("");
}

Result<runtime::Model> ModelOptions::load() const {
  runtime::Options options;
  options.threads = int(threads.value_or(0));
  options.seed = uint64_t(seed.value_or(0));
  options.cpuVariant = cpuVariant;
  options.useGraphs = !noGraphs;
  options.useLibraries = libraries == "auto";
  if (!device.empty()) {
    auto parsed = runtime::parseDevice(device);
    if (!parsed)
      return std::move(parsed).status().in("--device");
    options.device = *parsed;
  }
  if (!profile.empty())
    if (Status status = checkWritable(profile); !status)
      return status;
  auto model = runtime::Model::load(artifact, options);
  if (model && !params.empty())
    if (Status status = loadParameters(*model, params); !status)
      return status;
  return model;
}

namespace {

/// Unpacked arrays of more bytes are looked at before they are unpacked, which
/// takes seconds; smaller ones are left to whoever knows all that is wrong.
constexpr int64_t largeArray = int64_t(64) << 20;

/// Refuses a large array whose rows are not those of `value`.
Status checkRows(const artifact::Value &value, artifact::DType dtype,
                 std::span<const int64_t> shape) {
  std::span<const int64_t> own = value.shape;
  auto count = io::elementCount(shape);
  if (count && *count * byteSize(dtype) <= largeArray)
    return Status::success();
  bool fits = !own.empty() && shape.size() == own.size() &&
              std::equal(own.begin() + 1, own.end(), shape.begin() + 1);
  return fits ? Status::success()
              : Status::usage("expected rows of " +
                              runtime::describe(value.dtype, own) +
                              " but got " + runtime::describe(dtype, shape));
}

/// Reads and converts one argument; `value` is the model's value of its name.
Result<runtime::Tensor> readTensor(const io::Argument &argument,
                                   const artifact::Value *value) {
  io::ArrayCheck check;
  if (value)
    check = [value](artifact::DType dtype, std::span<const int64_t> shape) {
      return checkRows(*value, dtype, shape);
    };
  auto array = io::readArgument(
      argument, value ? value->dtype : artifact::DType::F32, check);
  if (!array)
    return std::move(array).status();
  if (value && array->dtype != value->dtype) {
    auto converted = io::convertExactly(*array, value->dtype);
    if (!converted)
      return Status::usage(argument.where() + ": expected " +
                           std::string(spelling(value->dtype)) + " but got " +
                           std::string(spelling(array->dtype)) + ": " +
                           converted.status().message());
    array = std::move(converted);
  }
  return io::toTensor(*array);
}

} // namespace

Result<std::vector<NamedTensor>>
readTensors(const std::vector<std::string> &texts, const std::string &option,
            const Manifest &manifest) {
  std::vector<NamedTensor> result;
  std::string problems;
  Code code = Code::Ok;
  auto problem = [&](Status status) {
    problems += (problems.empty() ? "" : "; ") + status.message();
    code = code == Code::Ok ? status.code() : code;
  };
  for (const std::string &text : texts) {
    auto argument = io::parseArgument(text);
    if (!argument) {
      problem(std::move(argument).status().in(option));
      continue;
    }
    bool twice =
        std::any_of(result.begin(), result.end(), [&](const NamedTensor &t) {
          return t.name == argument->name;
        });
    if (twice)
      problem(
          Status::usage(option + ": '" + argument->name + "' is given twice"));
    auto tensor = readTensor(*argument, manifest.findValue(argument->name));
    if (tensor)
      result.push_back({argument->name, std::move(*tensor)});
    else
      problem(
          std::move(tensor).status().in(option + " '" + argument->name + "'"));
  }
  if (!problems.empty())
    return Status(code, problems);
  return result;
}

std::vector<const artifact::Slot *> inputsOf(const Program &program) {
  std::vector<const artifact::Slot *> inputs;
  for (const artifact::Slot &slot : program.arguments)
    if (slot.role == Role::Input)
      inputs.push_back(&slot);
  return inputs;
}

Result<const Program *>
chooseProgram(const Manifest &manifest, const std::string &wanted,
              std::initializer_list<std::string_view> otherwise) {
  auto runs = [](const Program &program) {
    return std::all_of(program.arguments.begin(), program.arguments.end(),
                       [](const artifact::Slot &slot) {
                         return slot.role == Role::Input ||
                                slot.role == Role::Param ||
                                slot.role == Role::State ||
                                slot.role == Role::Prepared;
                       });
  };
  if (wanted.empty()) {
    for (std::string_view name : otherwise)
      if (const Program *program = manifest.findProgram(name))
        if (runs(*program))
          return program;
  } else if (const Program *program = manifest.findProgram(wanted)) {
    if (runs(*program))
      return program;
    return Status::usage("program '" + wanted +
                         "' needs gradients or saved values, which no file "
                         "can give; it runs as part of 'step'");
  }
  std::string known;
  for (const Program &program : manifest.programs)
    if (runs(program))
      known += (known.empty() ? "'" : ", '") + program.name + "'";
  if (!wanted.empty())
    return Status::usage("the artifact has no program '" + wanted +
                         "'; it has " + (known.empty() ? "none" : known));
  return Status::unsupported("the artifact has no program to run");
}

} // namespace tandem::commands
