//===- Session.cpp - one use of the compiler by a command -----------------===//
#include "tools/tandem/Session.h"

#include "mlir/IR/Location.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::commands;

static DialectRegistry registry() {
  DialectRegistry registry;
  registerCompiler(registry);
  return registry;
}

Session::Session(const CompileOptions &options)
    : options_(options), context_(registry()) {
  context_.printOpOnDiagnostic(false);
  context_.getDiagEngine().registerHandler(
      [this](Diagnostic &diagnostic) { print(diagnostic); });
}

/// Writes "FILE:LINE:COLUMN: " for the first place in the file of a location,
/// and what was being derived there.
static void printPlace(llvm::raw_ostream &out, Location loc) {
  if (auto file = dyn_cast<FileLineColLoc>(loc)) {
    out << file.getFilename().getValue() << ':' << file.getLine() << ':'
        << file.getColumn() << ": ";
  } else if (auto name = dyn_cast<NameLoc>(loc)) {
    printPlace(out, name.getChildLoc());
    out << "in '" << name.getName().getValue() << "': ";
  } else if (auto call = dyn_cast<CallSiteLoc>(loc)) {
    printPlace(out, call.getCallee());
  } else if (auto fused = dyn_cast<FusedLoc>(loc)) {
    if (!fused.getLocations().empty())
      printPlace(out, fused.getLocations().front());
  }
}

void Session::print(Diagnostic &diagnostic) {
  auto line = [](Diagnostic &d) {
    printPlace(llvm::errs(), d.getLocation());
    switch (d.getSeverity()) {
    case DiagnosticSeverity::Error:
      llvm::errs() << "error: ";
      break;
    case DiagnosticSeverity::Warning:
      llvm::errs() << "warning: ";
      break;
    case DiagnosticSeverity::Note:
      llvm::errs() << "note: ";
      break;
    case DiagnosticSeverity::Remark:
      llvm::errs() << "remark: ";
      break;
    }
    llvm::errs() << d.str() << '\n';
  };
  line(diagnostic);
  for (Diagnostic &note : diagnostic.getNotes())
    line(note);
  if (diagnostic.getSeverity() == DiagnosticSeverity::Error) {
    ++errors_;
    if (StringRef(diagnostic.str()).starts_with("unsupported"))
      ++unsupported_;
  }
}

Status Session::status() const {
  if (status_ || errors_ == 0 || unsupported_ < errors_)
    return status_;
  return Status::unsupported(status_.message());
}

Modules Session::phases(const std::string &path) {
  auto module = readModel(path, context_, status_);
  if (!module)
    return {};
  auto modules = runTargets(std::move(module), options_, times_);
  if (!modules) {
    status_ = std::move(modules).status().in(path);
    return {};
  }
  return std::move(*modules);
}

Result<artifact::ArtifactWriter> Session::artifact(const std::string &path) {
  Modules modules = phases(path);
  if (modules.empty())
    return status();
  auto writer = emitTargets(modules, options_, times_);
  if (!writer) {
    status_ = std::move(writer).status().in(path);
    return status();
  }
  return writer;
}

Result<artifact::ArtifactReader> Session::loaded(const std::string &path) {
  auto writer = artifact(path);
  if (!writer)
    return writer.status();
  auto bytes = writer->bytes();
  if (!bytes)
    return bytes.status();
  return artifact::ArtifactReader::fromMemory(std::as_bytes(std::span(*bytes)));
}

void CompileFlags::declare(OptionTable &table) {
  table.text("target", "KIND[:ARCH][+...]", options.target,
             "what to compile for: cpu, cuda, or both (cpu+cuda:sm_90)\n"
             "(default: this machine's processor)");
  table.flag("inference", options.inference,
             "no gradients: the program `evaluate` alone");
  table.text("loss", "NAME", options.loss,
             "the output to differentiate (default: 'loss')");
  table.text("optimizer", "NAME[:KEY=VALUE,...]", options.optimizer,
             "compile an optimizer in: sgd, momentum, adam, adamw");
  table.text("partition", "min-cut|default", options.partition,
             "what the forward saves for the backward (default: min-cut)");
  table.text(
      "memory-budget", "PART|BYTES", options.memoryBudget,
      "the most memory that a training step may take: from 0 (the least\n"
      "possible) to 1 (the fastest plan's), or bytes such as 6GiB");
  table.text("recompute", "REGEX", options.recompute,
             "never save what ops compute whose path (as h0.attn.matmul)\n"
             "the expression matches a part of: compute it again");
  table.text("save", "REGEX", options.save,
             "save what ops of such paths compute");
  table.integer("order", "1|2", order, 1, 2,
                "how often programs can be differentiated (default: 1)");
  table.text("dump-phases", "DIR", options.dumpPhases,
             "write the module of each phase to DIR/MODEL.NN.PHASE.mlir");
  table.flag("remarks", options.remarks,
             "say what is saved, recomputed and fused, and why");
  table.text("cubin", "auto|yes|no", options.cubin,
             "for cuda: assemble the PTX too, with nvJitLink or ptxas\n"
             "(default, auto: where one is found)");
  table.text("matmul-precision", "f32|tf32", options.matmulPrecision,
             "for cuda: tf32 lets the tensor cores multiply f32, of which\n"
             "they see 10 bits after the point (default: f32)");
  table.text("libraries", "auto|yes|no", options.libraries,
             "for cuda: which products and convolutions may be calls of\n"
             "cuBLASLt and cuDNN where a program runs (default, auto: those\n"
             "where that is expected to be faster; yes: all that can be)");
  table.flag("emulation", options.emulation,
             "for cuda: an image of the kernels for the device cuda-emu too");
  table.integer("threads", "N", threads, 1, 1024,
                "threads to compile with (default: all processors)");
}

Status CompileFlags::finish(CompileOptions &out) const {
  out = options;
  out.threads = static_cast<int>(threads.value_or(0));
  out.order = static_cast<int>(order.value_or(1));
  return checkOptions(out);
}
