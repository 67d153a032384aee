//===- Compile.cpp - the command `compile` --------------------------------===//
#include "runtime/artifact/Text.h"
#include "runtime/cli/Print.h"
#include "tools/onnx/Tensors.h"
#include "tools/tandem/CompileFlags.h"
#include "tools/tandem/CompilerCommands.h"
#include "tools/tandem/Session.h"

#include "mlir/IR/AsmState.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdio>

using namespace mlir;
using namespace tandem;
using namespace tandem::commands;

static void printTimes(const std::vector<PhaseTime> &times) {
  double total = 0;
  for (const PhaseTime &time : times)
    total += time.seconds;
  std::fprintf(stderr, "%-20s %9s %6s\n", "phase", "seconds", "share");
  for (const PhaseTime &time : times)
    std::fprintf(stderr, "%-20s %9.3f %5.1f%%\n", time.phase.c_str(),
                 time.seconds, total > 0 ? 100 * time.seconds / total : 0);
  std::fprintf(stderr, "%-20s %9.3f\n", "total", total);
}

/// Says on stderr what a file holds that was written, and how much that is.
static void sayWritten(const std::string &what, const std::string &path) {
  uint64_t bytes = 0;
  if (path.empty() || llvm::sys::fs::file_size(path, bytes))
    return; // On stdout.
  std::fprintf(stderr, "wrote %s to %s (%s)\n", what.c_str(),
               artifact::inQuotes(path).c_str(),
               bytesText(static_cast<int64_t>(bytes)).c_str());
}

/// The modules as text, with locations, on stdout or in `path`. Those of
/// several targets are parted as mlir-opt's --split-input-file expects.
static Status writeModules(const Modules &modules, const std::string &path) {
  std::error_code error;
  llvm::raw_fd_ostream out(path.empty() ? "-" : path, error);
  if (error)
    return Status::failed("cannot write '" + path + "': " + error.message());
  for (const auto &module : modules) {
    if (&module != &modules.front())
      out << "// -----\n";
    module.get().print(out, OpPrintingFlags().enableDebugInfo());
    out << '\n';
  }
  out.flush();
  error = out.error();
  out.clear_error();
  if (error)
    return Status::failed("cannot write '" + path + "': " + error.message());
  return Status::success();
}

/// What an ONNX model's parameters start from: to `path`, or beside `output`.
static Status writeWeights(const Weights &weights, const std::string &output,
                           std::string path) {
  if (path.empty() && StringRef(output).ends_with(".tdm"))
    path = StringRef(output).drop_back(4).str() + ".safetensors";
  if (weights.empty() || path.empty())
    return Status::success();
  if (Status s = onnx::writeWeights(path, weights); !s)
    return s;
  sayWritten(std::to_string(weights.size()) + " weights", path);
  return Status::success();
}

namespace {
struct CompileCommandOptions {
  static constexpr std::string_view
      usage = "compile MODEL -o X.tdm [options]",
      description = "Compiles a model (.mlir in the dialect, at any phase, a "
                    "graph in .json, or .onnx) into an artifact.";

  std::string model, output, weights;
  CompileFlags flags;
  bool timeReport = false;

  void declare(OptionTable &table) {
    table.positional("MODEL", model, "the model");
    table
        .text("o", "X.tdm", output,
              "where to write the artifact, or the module of --stop-after")
        .byDefault("for a module stdout");
    table
        .text("weights", "F.safetensors", weights,
              "where to write the weights of a model in ONNX, for --params of "
              "run and train")
        .byDefault("beside the artifact, X.safetensors")
        .onlyFor(".onnx", "models in ONNX");
    table
        .text("stop-after", "PHASE", flags.options.stopAfter,
              "stop there and write the module: capture, functionalize, joint, "
              "optimize, partition, plan, lower")
        .oneOf({"capture", "functionalize", "joint", "optimize", "partition",
                "plan", "lower"});
    table.flag("time-report", timeReport, "say how long each phase took");
    table.atLeastOneOf({"o", "stop-after"});
    flags.declare(table);
  }
};
} // namespace

static Status runCompile(const CompileCommandOptions &command) {
  CompileOptions options;
  if (Status s = command.flags.finish(options); !s)
    return s;
  const std::string &model = command.model, &output = command.output;
  Session session(options);
  Status status;
  if (!options.stopAfter.empty()) {
    Modules modules = session.phases(model);
    status = modules.empty() ? session.status() : writeModules(modules, output);
    if (status)
      sayWritten("the module at '" + options.stopAfter + "'", output);
  } else {
    auto writer = session.artifact(model);
    status = writer ? writer->write(output) : writer.status();
    if (status)
      sayWritten("the artifact", output);
  }
  if (status)
    status = writeWeights(session.weights(), output, command.weights);
  if (status && !options.dumpPhases.empty())
    std::fprintf(stderr, "wrote the module of each phase to %s\n",
                 artifact::inQuotes(options.dumpPhases).c_str());
  if (command.timeReport && status)
    printTimes(session.times());
  return status;
}

Command commands::compileCommand() {
  return commandOf<runCompile>("compile", "compile a model into an artifact");
}
