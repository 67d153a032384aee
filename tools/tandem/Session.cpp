//===- Session.cpp - one use of the compiler by a command -----------------===//
#include "tools/tandem/Session.h"
#include "compiler/Phases.h"
#include "compiler/capture/GraphDigest.h"
#include "compiler/emit/KernelCache.h"
#include "compiler/import/Losses.h"
#include "compiler/import/onnx/Import.h"
#include "compiler/import/onnx/OnnxFile.h"
#include "compiler/import/stablehlo/Import.h"
#include "compiler/import/torch/Archive.h"
#include "compiler/import/torch/Summary.h"
#include "compiler/tune/ScheduleCache.h"
#include "ir/Pipeline.h"
#include "ir/Where.h"
#include "runtime/artifact/DeviceFiles.h"
#include "runtime/artifact/Text.h"
#include "tools/commands/Print.h"
#include "tools/onnx/Summary.h"
#include "tools/onnx/Tensors.h"
#include "tools/tandem/Tuning.h"

#include "mlir/IR/Location.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
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
    : reproducer_(options.reproducerFile), options_(options),
      context_(registry(), MLIRContext::Threading::DISABLED) {
  unsigned threads = options.threads > 0
                         ? static_cast<unsigned>(options.threads)
                         : std::thread::hardware_concurrency();
  if (threads > 1) {
    threads_ = std::make_unique<CompileThreads>(threads);
    context_.setThreadPool(*threads_);
  }
  options_.reproducer = &reproducer_;
  options_.freeze = options_.import.freeze;
  context_.printOpOnDiagnostic(false);
  context_.getDiagEngine().registerHandler(
      [this](Diagnostic &diagnostic) { print(diagnostic); });
  openKernels();
  if (options_.tune) {
    tuning_ = std::make_unique<Tuning>();
    tuning_->attach(options_);
  }
}

Session::~Session() {
  if (kernels_)
    kernels_->trim();
}

void Session::openKernels() {
  const std::string &asked = options_.kernelCache;
  std::string folder = asked.empty() ? defaultKernelCache() : asked;
  if (folder == "off" || !options_.stopAfter.empty() ||
      !options_.dumpPhases.empty() || !options_.dumpPasses.empty())
    return;
  const std::string &size = options_.kernelCacheSize;
  kernels_ = std::make_unique<KernelCache>(
      folder, size.empty() ? uint64_t(1) << 30 : *cacheBytes(size));
  // Of a folder that nobody named it is said with the times of passes alone.
  if (!asked.empty() && !kernels_->problem().empty())
    warn("no kernels are kept: " + kernels_->problem());
  options_.kernels = kernels_.get();
}

/// A part of a line on the screen.
static std::string inLine(StringRef text) {
  std::string made;
  for (char c : artifact::forScreen(text))
    made += c == '\n' ? "\\x0a" : c == '\t' ? "\\x09" : std::string(1, c);
  return made;
}

/// Writes "FILE:LINE:COLUMN: " for the first place in the file of a location,
/// and what was being derived there.
static void printPlace(llvm::raw_ostream &out, Location loc) {
  if (std::string place = placeOf(loc); !place.empty()) {
    out << inLine(place) << ": ";
  } else if (auto name = dyn_cast<NameLoc>(loc)) {
    printPlace(out, name.getChildLoc());
    out << "in '" << inLine(name.getName().getValue()) << "': ";
  } else if (auto call = dyn_cast<CallSiteLoc>(loc)) {
    printPlace(out, call.getCallee());
  } else if (auto fused = dyn_cast<FusedLoc>(loc)) {
    if (!fused.getLocations().empty())
      printPlace(out, fused.getLocations().front());
  }
}

void Session::print(Diagnostic &diagnostic) {
  if (isSilent_ && diagnostic.getSeverity() == DiagnosticSeverity::Remark)
    return;
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
    // An option that the model needs and does not have, or that does not fit
    // it, found by passes: "expected --loss=NAME ...", "--fp8: 'w' matches
    // ...".
    std::string text = diagnostic.str();
    if (StringRef(text).starts_with("expected --") ||
        StringRef(text).starts_with("--"))
      ++misused_;
  }
}

Status Session::status() const {
  if (status_ || errors_ == 0)
    return status_;
  if (misused_ == errors_)
    return Status::usage("the options do not fit the model, as was said of "
                         "each above");
  if (unsupported_ < errors_)
    return status_;
  return Status::unsupported(status_.message());
}

/// A .mlir is in Tandem's dialect or in StableHLO's.
static bool isStablehlo(const std::string &path) {
  if (stablehlo::isExportedFile(path))
    return true;
  // What has no end is refused when it is read.
  if (!StringRef(path).ends_with(".mlir") || !artifact::expectNoDevice(path))
    return false;
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/true);
  return buffer && stablehlo::isModule((*buffer)->getBuffer());
}

ImportOptions Session::importOptions(const std::string &path) {
  ImportOptions import = options_.import;
  // "cuda" of "cuda:sm_90a+sm_80".
  if (size_t end = options_.target.find_first_of(":+");
      !options_.target.empty())
    import.platform = options_.target.substr(0, end);
  bool isOnnx = StringRef(path).ends_with(".onnx");
  bool isTorch = StringRef(path).ends_with(".pt2");
  if (!isOnnx && !isTorch && !isStablehlo(path)) {
    // CompileFlags has refused the rest of what is for other formats.
    if (!import.train.empty())
      status_ = Status::usage("--train is for models of other formats, but '" +
                              path + "' is in Tandem's dialect");
    else if (parseLoss(options_.loss))
      status_ = Status::usage("--loss=KIND:OUTPUT,LABELS is for models of "
                              "other formats, but '" +
                              path + "' is in Tandem's dialect");
    return import;
  }
  options_.freeze.clear(); // It is the importer's.
  if (StringRef(options_.loss).contains(':'))
    loss_ = std::exchange(options_.loss, "");
  // An output that is the loss is differentiated by name.
  import.loss = loss_.empty() ? options_.loss : loss_;
  if (isOnnx)
    status_ = onnx::readValues(path, options_.importValues, import.values);
  // Only PyTorch says itself what is trained.
  const char *needsLoss = !import.freeze.empty()  ? "--freeze"
                          : !import.train.empty() ? "--train"
                          : import.keepEval       ? "--keep-eval"
                                                  : nullptr;
  if (status_ && needsLoss && !isTorch && import.loss.empty())
    status_ = Status::usage(std::string(needsLoss) +
                            " needs --loss: without one nothing of a model in "
                            "ONNX or StableHLO is trained");
  return import;
}

OwningOpRef<ModuleOp> Session::read(const std::string &path) {
  ImportOptions import = importOptions(path);
  if (!status_)
    return {};
  auto module = readModel(path, context_, status_, import, &weights_);
  if (!module)
    return module;
  status_ = adaptModel(*module, options_);
  return status_ ? std::move(module) : OwningOpRef<ModuleOp>();
}

std::string Session::summary(const std::string &path) {
  ImportOptions options = importOptions(path);
  if (!status_)
    return {};
  auto model = onnx::readModelFile(path);
  status_ = model.status();
  if (!model)
    return {};
  Import import = onnx::importModel(*model, path, options, context_);
  // The problems are in the text.
  if (Status s = import.status(); !s)
    status_ = Status(s.code(), "'" + path + "' cannot be compiled as it is");
  return onnx::summaryOf(*model, import);
}

std::string Session::sizesSummary(const std::string &path) {
  const ImportOptions &import = options_.import;
  if (!StringRef(path).ends_with(".pt2") || !import.dims.empty() ||
      !import.shapes.empty())
    return {};
  auto program = torch::readArchive(path);
  status_ = program.status();
  if (!program)
    return {};
  auto open = torch::openDimensions(*program, import);
  return open.empty() ? "" : torch::summaryOf(*program, open);
}

Modules Session::phases(const std::string &path) {
  auto module = read(path);
  return module ? phases(std::move(module), path) : Modules();
}

/// What is left of the options for a module after `plan`, which has its target
/// and what the phases before made of all others.
static CompileOptions afterPlan(const CompileOptions &options) {
  CompileOptions rest;
  rest.remarks = options.remarks;
  rest.threads = options.threads;
  rest.effort = options.effort;
  rest.kernels = options.kernels;
  rest.variants = options.variants;
  rest.dumpPhases = options.dumpPhases;
  rest.dumpPasses = options.dumpPasses;
  rest.cubin = options.cubin;
  rest.emulation = options.emulation;
  rest.matmulPrecision = options.matmulPrecision;
  rest.fastMath = options.fastMath;
  rest.libraries = options.libraries;
  rest.winograd = options.winograd;
  rest.timing = options.timing;
  rest.passes = options.passes;
  rest.reproducer = options.reproducer;
  rest.reproducerFile = options.reproducerFile;
  return rest;
}

Result<Modules> Session::planned(OwningOpRef<ModuleOp> module) {
  CompileOptions first = options_;
  first.stopAfter = "plan";
  auto modules = runTargets(std::move(module), first, times_);
  if (!modules)
    return modules;
  whenPlanned(*modules);
  CompileOptions rest = afterPlan(options_);
  for (auto &one : *modules)
    if (Status s = runPhases(*one, rest, times_); !s)
      return s;
  // Stages know each other by what they are after all phases.
  if (modules->size() > 1 && Pipeline::of(*modules->front())) {
    auto digest = Builder(&context_).getStringAttr(digestOf(*modules));
    for (auto &one : *modules)
      setPipelineField(*one, pipeline::kDigest, digest);
  }
  return modules;
}

Modules Session::phases(OwningOpRef<ModuleOp> module, const std::string &path) {
  // Dumps of several targets have their names from phases that run as one.
  bool areDumped = StringRef(options_.target).contains('+') &&
                   !(options_.dumpPhases + options_.dumpPasses).empty();
  bool stops = whenPlanned && options_.stopAfter.empty() && !areDumped &&
               phaseNumber(phaseOf(*module)) <= phaseNumber("plan");
  auto modules = stops ? planned(std::move(module))
                       : runTargets(std::move(module), options_, times_);
  if (tuning_)
    tuning_->finish();
  if (!modules) {
    status_ = std::move(modules).status().in(path);
    return {};
  }
  return std::move(*modules);
}

Result<artifact::ArtifactWriter> Session::artifact(const std::string &path) {
  auto module = read(path);
  if (!module)
    return status();
  return artifact(std::move(module), path);
}

/// A variant is a file of the model, or sizes of its symbolic dimensions.
static bool isFile(StringRef variant) { return !variant.contains('='); }

Result<artifact::ArtifactWriter> Session::ofSizes(const std::string &path) {
  std::vector<SizeModules> sizes;
  auto add = [&](StringRef name, const std::string &file) {
    Modules modules = phases(file);
    if (modules.empty())
      return false;
    sizes.push_back({name.str(), std::move(modules)});
    return true;
  };
  const std::vector<std::string> &variants = options_.variants;
  // Of files the model is the first.
  if (isFile(variants.front()) && !add(llvm::sys::path::stem(path), path))
    return status();
  const std::map<std::string, int64_t> given = options_.import.dims;
  for (const std::string &variant : variants) {
    if (isFile(variant)) {
      if (!add(llvm::sys::path::stem(variant), variant))
        return status();
      continue;
    }
    options_.import.dims = given;
    for (StringRef dim : llvm::split(variant, ',')) {
      auto [name, size] = dim.rsplit('=');
      (void)size.getAsInteger(10, options_.import.dims[name.str()]);
    }
    if (!add(variant, path))
      return status();
  }
  auto writer = emitSizes(sizes, options_, times_);
  if (!writer) {
    status_ = std::move(writer).status().in(path);
    return status();
  }
  return writer;
}

Result<std::vector<artifact::ArtifactWriter>>
Session::artifacts(const std::string &path) {
  if (!options_.variants.empty()) {
    auto writer = ofSizes(path);
    if (!writer)
      return writer.status();
    std::vector<artifact::ArtifactWriter> one;
    one.push_back(*std::move(writer));
    return one;
  }
  Modules modules = phases(path);
  if (modules.empty())
    return status();
  if (whenLowered)
    if (Status s = whenLowered(modules); !s) {
      status_ = std::move(s).in(path);
      return status();
    }
  std::vector<artifact::ArtifactWriter> writers;
  bool areStages = Pipeline::of(*modules.front()).has_value();
  auto add = [&](Result<artifact::ArtifactWriter> writer) {
    if (writer)
      writers.push_back(*std::move(writer));
    else
      status_ = std::move(writer).status().in(path);
    return status_.ok();
  };
  if (!areStages && !add(emitTargets(modules, options_, times_)))
    return status();
  // Of a stage that was read back by itself; with others it fits none.
  if (areStages && !modules.front()
                        ->getOperation()
                        ->getAttrOfType<DictionaryAttr>(kPipelineAttr)
                        .contains(pipeline::kDigest))
    setPipelineField(*modules.front(), pipeline::kDigest,
                     Builder(&context_).getStringAttr(digestOf(modules)));
  for (size_t i = 0; areStages && i < modules.size(); ++i)
    if (!add(emitArtifact(*modules[i], options_, times_)))
      return status();
  return writers;
}

Result<artifact::ArtifactWriter> Session::artifact(OwningOpRef<ModuleOp> module,
                                                   const std::string &path) {
  Modules modules = phases(std::move(module), path);
  if (modules.empty())
    return status();
  if (whenLowered)
    if (Status s = whenLowered(modules); !s) {
      status_ = std::move(s).in(path);
      return status();
    }
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
