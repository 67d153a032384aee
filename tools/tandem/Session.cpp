//===- Session.cpp - one use of the compiler by a command -----------------===//
#include "tools/tandem/Session.h"
#include "compiler/import/onnx/OnnxFile.h"
#include "compiler/tune/ScheduleCache.h"
#include "runtime/artifact/Text.h"
#include "tools/onnx/Summary.h"
#include "tools/onnx/Tensors.h"
#include "tools/tandem/Tuning.h"

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
  if (options_.tune) {
    tuning_ = std::make_unique<Tuning>();
    tuning_->attach(options_);
  }
}

Session::~Session() = default;

/// Writes "FILE:LINE:COLUMN: " for the first place in the file of a location,
/// and what was being derived there.
static void printPlace(llvm::raw_ostream &out, Location loc) {
  if (auto file = dyn_cast<FileLineColLoc>(loc)) {
    out << artifact::forScreen(file.getFilename().getValue()) << ':'
        << file.getLine() << ':' << file.getColumn() << ": ";
  } else if (auto name = dyn_cast<NameLoc>(loc)) {
    printPlace(out, name.getChildLoc());
    out << "in '" << artifact::forScreen(name.getName().getValue()) << "': ";
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
    llvm::errs() << artifact::forScreen(d.str()) << '\n';
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

onnx::ImportOptions Session::importOptions(const std::string &path) {
  onnx::ImportOptions import = options_.onnx;
  bool isOnnx = StringRef(path).ends_with(".onnx");
  bool isAsked = !import.dims.empty() || !import.shapes.empty() ||
                 !options_.onnxValues.empty() || !import.freeze.empty() ||
                 !import.train.empty() || import.keepEval;
  if (isOnnx) {
    if (StringRef(options_.loss).contains(':'))
      loss_ = std::exchange(options_.loss, "");
    import.loss = loss_;
    status_ = onnx::readValues(path, options_.onnxValues, import.values);
  } else if (isAsked) {
    status_ = Status::usage("--dim, --shape, --value, --freeze, --train and "
                            "--keep-eval are for models in ONNX");
  }
  return import;
}

OwningOpRef<ModuleOp> Session::read(const std::string &path) {
  onnx::ImportOptions import = importOptions(path);
  if (!status_)
    return {};
  return readModel(path, context_, status_, import, &weights_);
}

std::string Session::summary(const std::string &path) {
  onnx::ImportOptions options = importOptions(path);
  if (!status_)
    return {};
  auto model = onnx::readModelFile(path);
  status_ = model.status();
  if (!model)
    return {};
  onnx::Import import = onnx::importModel(*model, path, options, context_);
  // The problems are in the text.
  if (Status s = import.status(); !s)
    status_ = Status(s.code(), "'" + path + "' cannot be compiled as it is");
  return onnx::summaryOf(*model, import);
}

Modules Session::phases(const std::string &path) {
  auto module = read(path);
  if (!module)
    return {};
  auto modules = runTargets(std::move(module), options_, times_);
  if (tuning_)
    tuning_->finish();
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

/// Reads `--tune=SECONDS` and what goes with it.
static Status readTune(const std::string &seconds, CompileOptions &out) {
  if (seconds.empty())
    return out.tuneCache.empty()
               ? Status::success()
               : Status::usage("--tune-cache has no effect without --tune");
  double number = 0;
  if (StringRef(seconds).getAsDouble(number) || !(number >= 0) || number > 1e6)
    return Status::usage("expected --tune to be 0 to 1000000 seconds, but "
                         "got '" +
                         seconds + "'");
  out.tune = number;
  if (out.tuneCache.empty())
    out.tuneCache = defaultCachePath();
  return Status::success();
}

void CompileFlags::declare(OptionTable &table) {
  table.text(
      "target", "KIND[:ARCH][+...]", options.target,
      "what to compile for: cpu, cuda, or both (cpu+cuda:sm_90), and for\n"
      "several processors (cpu:x86-64-v3+x86-64-v4), of which the best\n"
      "is chosen when the artifact is loaded (default: this machine's\n"
      "processor)");
  table.flag("inference", options.inference,
             "no gradients: the program `evaluate` alone");
  table.flag("prepare", options.prepare,
             "with --inference: compute what follows from parameters and\n"
             "states alone once, and again where they were set; memory grows\n"
             "by it, and nobody may write them but through the model");
  table.text("loss", "NAME", options.loss,
             "the output to differentiate (default: 'loss'); of a model in\n"
             "ONNX also KIND:OUTPUT,LABELS, which gives it that loss, and an\n"
             "input LABELS: cross_entropy, nll, mse, l1, huber,\n"
             "bce_with_logits, kl");
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
  table.text("offload", "REGEX", options.offload,
             "save it in the host's memory, where the target is a GPU");
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
  table.text("winograd", "auto|no", options.winograd,
             "for cpu: no forbids Winograd's method for convolutions of 3x3,\n"
             "whose results are a little less exact (default, auto: where\n"
             "that is expected to be faster)");
  table.flag("fast-math", options.fastMath,
             "for cpu: exp, tanh and sigmoid of f32 in fewer steps (off by up\n"
             "to 2e-6 of the result, without denormal ones), and products\n"
             "and sums rounded as one");
  table.text("tune", "SECONDS", tune,
             "for cpu: compile and measure other schedules of products and\n"
             "convolutions on this machine for so long, and use those that\n"
             "are faster (0: those alone that were found before)");
  table.text(
      "tune-cache", "F.json", options.tuneCache,
      "where --tune keeps what it finds (default: tandem/schedules.json\n"
      "in the user's folder for caches)");
  table.flag("emulation", options.emulation,
             "for cuda: an image of the kernels for the device cuda-emu too");
  table.list("dim", "NAME=N", dims, "ONNX: the size of a symbolic dimension");
  table.list("shape", "INPUT=AxBxC", shapes, "ONNX: the shape of an input");
  table.list("value", "INPUT=FILE|N|[N,...]", options.onnxValues,
             "ONNX: the value of an input that decides a shape (.npy, .pb, or\n"
             "written down); it is no input of the programs then");
  table.text("freeze", "REGEX", options.onnx.freeze,
             "ONNX: initializers that are not trained");
  table.text(
      "train", "REGEX", options.onnx.train,
      "ONNX: initializers that are trained, and no others (default with\n"
      "a loss: floats with a dimension and more than one element)");
  table.flag("keep-eval", options.onnx.keepEval,
             "ONNX: with a loss, leave BatchNormalization and Dropout as in\n"
             "inference");
  table.integer("threads", "N", threads, 1, 1024,
                "threads to compile with (default: all processors)");
}

Status CompileFlags::finish(CompileOptions &out) const {
  out = options;
  out.threads = static_cast<int>(threads.value_or(0));
  out.order = static_cast<int>(order.value_or(1));
  for (const std::string &text : dims) {
    auto [name, size] = StringRef(text).rsplit('=');
    int64_t number = 0;
    if (name.empty() || size.getAsInteger(10, number) || number < 0)
      return Status::usage("expected --dim=NAME=N, but got '" + text + "'");
    out.onnx.dims[name.str()] = number;
  }
  for (const std::string &text : shapes) {
    auto [name, list] = StringRef(text).rsplit('=');
    SmallVector<StringRef> sizes;
    list.split(sizes, 'x', /*MaxSplit=*/-1, /*KeepEmpty=*/!list.empty());
    std::vector<int64_t> &shape = out.onnx.shapes[name.str()];
    shape.clear();
    bool isFine = !name.empty();
    for (StringRef size : sizes)
      isFine &=
          !size.getAsInteger(10, shape.emplace_back()) && shape.back() >= 0;
    if (!isFine)
      return Status::usage("expected --shape=INPUT=AxBxC, but got '" + text +
                           "'");
  }
  if (Status s = readTune(tune, out); !s)
    return s;
  return checkOptions(out);
}
