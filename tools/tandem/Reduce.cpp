//===- Reduce.cpp - the command `reduce` ----------------------------------===//
//
// Makes a module smaller for as long as a script finds in it what it looks for:
// first at all places at once, then at half of them, and so on to each alone
// (delta debugging). Every module that the script sees is valid, and passes the
// verifier of its phase if the first one did.
//
//===----------------------------------------------------------------------===//
#include "compiler/PassSteps.h"
#include "compiler/Phases.h"
#include "runtime/artifact/AtomicFile.h"
#include "runtime/io/Array.h"
#include "tools/commands/Files.h"
#include "tools/tandem/CompilerCommands.h"
#include "tools/tandem/Reductions.h"
#include "tools/tandem/RunProcess.h"
#include "tools/tandem/Session.h"

#include "mlir/IR/Verifier.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdio>

using namespace mlir;
using namespace tandem;
using namespace tandem::commands;

namespace {

struct ReduceOptions {
  static constexpr std::string_view
      usage = "reduce MODEL --test=SCRIPT -o F.mlir [options]",
      description =
          "Makes a model smaller for as long as a script says that it still "
          "shows what is looked for: for reports of bugs. SCRIPT gets the name "
          "of a file, a module, and exits with 0 if that is interesting. Every "
          "module that it gets is valid, at the phase of MODEL.";

  std::string model, script, output;
  std::optional<int64_t> seconds;
  bool force = false;

  void declare(OptionTable &table) {
    table.positional("MODEL", model,
                     "a module (.mlir, at any phase), or .json");
    table
        .text("test", "SCRIPT", script,
              "a program that exits with 0 if the file that it is given is "
              "interesting")
        .required();
    table
        .text("o", "F.mlir", output,
              "where the smallest module goes, and the smallest one yet while "
              "it works")
        .required();
    table
        .integer("test-timeout", "SECONDS", seconds, 1, 86400,
                 "a script that takes longer finds nothing")
        .byDefault("60");
    table.flag("force", force, "let the output replace any file");
  }
};

class Reducer {
public:
  Reducer(const ReduceOptions &options, std::string script, ModuleOp module)
      : options_(options), script_(std::move(script)), best_(module.clone()),
        quiet_(module.getContext(), [](Diagnostic &) { return success(); }) {
    isStrict_ = succeeded(checkPhase(*best_));
  }

  Status run();

private:
  static LogicalResult checkPhase(ModuleOp module) {
    // Within a phase it has no verifier.
    return module->hasAttr(kWithinAttr) ? success() : verifyPhase(module);
  }
  bool isValid(ModuleOp module) const {
    return succeeded(verify(module)) &&
           (!isStrict_ || succeeded(checkPhase(module)));
  }
  int64_t seconds() const { return options_.seconds.value_or(60); }
  Result<bool> isInteresting(ModuleOp module);
  /// Whether the way made the module smaller.
  Result<bool> tryReduction(const Reduction &reduction);
  Status write() const;

  const ReduceOptions &options_;
  std::string script_;
  OwningOpRef<ModuleOp> best_;
  ScopedDiagnosticHandler quiet_; ///< of modules that are tried
  bool isStrict_ = false;
  bool wasTooLate_ = false; ///< the script, the last time
  int tests_ = 0;
};

std::string textOf(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream out(text);
  module.print(out, OpPrintingFlags().enableDebugInfo());
  return text + "\n";
}

Result<bool> Reducer::isInteresting(ModuleOp module) {
  llvm::SmallString<128> path;
  int descriptor = -1;
  if (std::error_code error = llvm::sys::fs::createTemporaryFile(
          "tandem-reduce", "mlir", descriptor, path))
    return Status::failed("cannot make a temporary file: " + error.message());
  llvm::FileRemover remover(path);
  {
    llvm::raw_fd_ostream out(descriptor, /*shouldClose=*/true);
    out << textOf(module);
    out.close();
    std::error_code error = out.error();
    out.clear_error();
    if (error)
      return Status::failed("cannot write '" + path.str().str() +
                            "': " + error.message());
  }
  ++tests_;
  auto end = runProcess(script_, {script_, path.str().str()},
                        /*output=*/"", seconds());
  if (!end)
    return Status(end.status().code(), "--test: cannot run " +
                                           io::inQuotes(script_) + ": " +
                                           end.status().message());
  wasTooLate_ = end->isTooLate;
  return end->isZero();
}

Result<bool> Reducer::tryReduction(const Reduction &reduction) {
  bool changed = false;
  size_t chunk = reduction.count(*best_);
  for (; chunk >= 1; chunk /= 2)
    for (size_t begin = 0; begin < reduction.count(*best_);) {
      OwningOpRef<ModuleOp> candidate = best_->clone();
      reduction.apply(*candidate, begin, begin + chunk);
      eraseDeadOps(*candidate);
      begin += chunk;
      if (ModuleSize::of(*candidate).weight() >=
              ModuleSize::of(*best_).weight() ||
          !isValid(*candidate))
        continue;
      auto found = isInteresting(*candidate);
      if (!found)
        return found;
      if (!*found)
        continue;
      // What followed is where this was.
      begin -= chunk;
      best_ = std::move(candidate);
      changed = true;
      if (Status status = write(); !status)
        return status;
    }
  return changed;
}

Status Reducer::write() const {
  auto file = artifact::AtomicFile::create(options_.output);
  if (!file)
    return file.status();
  std::string text = textOf(*best_);
  if (Status status = file->write(text.data(), text.size()); !status)
    return status;
  return file->commit();
}

Status Reducer::run() {
  auto first = isInteresting(*best_);
  if (!first)
    return first.status();
  if (!*first)
    return Status::usage(
        "--test: " + io::inQuotes(options_.script) +
        (wasTooLate_ ? " does not end within " + std::to_string(seconds()) +
                           " seconds (--test-timeout) for the model itself"
                     : " does not exit with 0 for the model itself"));
  if (Status status = write(); !status)
    return status;
  std::fprintf(stderr, "%-22s %s\n",
               "the model:", ModuleSize::of(*best_).text().c_str());
  for (bool changed = true; changed;) {
    changed = false;
    for (const Reduction &reduction : reductions()) {
      auto smaller = tryReduction(reduction);
      if (!smaller)
        return smaller.status();
      if (!*smaller)
        continue;
      changed = true;
      std::fprintf(stderr, "%-22s %s (%d tests)\n",
                   (std::string(reduction.name) + ":").c_str(),
                   ModuleSize::of(*best_).text().c_str(), tests_);
    }
  }
  std::fprintf(stderr, "wrote the smallest module to %s (%s, %d tests)\n",
               io::inQuotes(options_.output).c_str(),
               ModuleSize::of(*best_).text().c_str(), tests_);
  return Status::success();
}

/// A script is a path, or the name of a program.
Result<std::string> scriptPath(const std::string &script) {
  llvm::SmallString<128> real;
  if (!llvm::sys::fs::real_path(script, real))
    return real.str().str();
  auto found = llvm::sys::findProgramByName(script);
  if (!found)
    return Status::usage("--test: cannot run " + io::inQuotes(script) + ": " +
                         found.getError().message());
  return *found;
}

Status runReduce(const ReduceOptions &options) {
  if (isImported(options.model))
    return Status::usage("expected MODEL to be a module or .json: 'compile "
                         "--stop-after=capture -o F.mlir' makes one of a model "
                         "in ONNX, and of an archive of PyTorch");
  auto script = scriptPath(options.script);
  if (!script)
    return script.status();
  Files files;
  files.reads("the model", options.model);
  files.reads("--test", *script);
  files.writes({"-o", options.output, {io::FileKind::Module}});
  if (Status status = files.check(options.force); !status)
    return status;
  Session session{CompileOptions()};
  auto module = session.read(options.model);
  if (!module)
    return session.status();
  return Reducer(options, *script, *module).run();
}

} // namespace

Command commands::reduceCommand() {
  return commandOf<runReduce>("reduce",
                              "make a model smaller that shows a fault");
}
