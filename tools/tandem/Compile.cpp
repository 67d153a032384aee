//===- Compile.cpp - the command `compile` --------------------------------===//
#include "tools/tandem/CompilerCommands.h"
#include "tools/tandem/Session.h"

#include "mlir/IR/AsmState.h"
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

Status commands::compile(std::string_view tool, Words words) {
  OptionTable table("compile MODEL -o X.tdm [options]",
                    "Compiles a model (.mlir in the dialect, at any phase) "
                    "into an artifact.");
  std::string model, output;
  CompileFlags flags;
  bool timeReport = false;
  table.positional("MODEL", model, "the model");
  table.text("o", "X.tdm", output,
             "where to write the artifact, or the module of --stop-after\n"
             "(default for a module: stdout)");
  flags.declare(table);
  table.text("stop-after", "PHASE", flags.options.stopAfter,
             "stop there and write the module: capture, functionalize, joint,\n"
             "optimize, partition, plan, lower");
  table.flag("time-report", timeReport, "say how long each phase took");
  if (Status s = table.parse(words); !s)
    return s;
  if (table.helpAsked()) {
    std::fputs(table.help(tool).c_str(), stdout);
    return Status::success();
  }
  CompileOptions options;
  if (Status s = flags.finish(options); !s)
    return s;
  if (options.stopAfter.empty() && output.empty())
    return Status::usage("expected -o X.tdm or --stop-after=PHASE");

  Session session(options);
  Status status;
  if (!options.stopAfter.empty()) {
    Modules modules = session.phases(model);
    status = modules.empty() ? session.status() : writeModules(modules, output);
  } else {
    auto writer = session.artifact(model);
    status = writer ? writer->write(output) : writer.status();
  }
  if (timeReport && status)
    printTimes(session.times());
  return status;
}
