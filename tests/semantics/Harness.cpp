//===- Harness.cpp - programs, compiled once, and assertions --------------===//
#include "tests/semantics/Harness.h"
#include "cuda/Register.h"

#include "ir/Dialect.h"
#include "tests/semantics/ReferenceMachine.h"
#include "tests/support/TestKernels.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>
#include <cstdio>
#include <unistd.h>

using namespace mlir;
using namespace tandem;
using namespace tandem::test;

namespace {

/// A program at the end of the phases that it went through.
struct Compiled {
  OwningOpRef<ModuleOp> module;
  std::string error; ///< "" if there is none
};

/// Makes contexts and handles rare: one for the process.
MLIRContext &theContext() {
  static MLIRContext *context = [] {
    DialectRegistry registry;
    registerCompiler(registry);
    auto *made = new MLIRContext(registry, MLIRContext::Threading::DISABLED);
    made->loadDialect<TandemDialect>();
    return made;
  }();
  return *context;
}

/// The artifacts that were written, by program; removed at the end.
struct ArtifactFiles {
  ~ArtifactFiles() {
    for (auto &[key, path] : files)
      std::remove(path.c_str());
  }
  std::map<std::string, std::string> files;
};

void print(Diagnostic &diagnostic, const char *severity, std::string &text) {
  llvm::raw_string_ostream out(text);
  Location loc = diagnostic.getLocation();
  while (auto named = dyn_cast<NameLoc>(loc))
    loc = named.getChildLoc();
  if (auto file = dyn_cast<FileLineColLoc>(loc))
    out << file.getFilename().getValue() << ':' << file.getLine() << ':'
        << file.getColumn() << ": ";
  out << severity << ": " << diagnostic.str() << '\n';
}

} // namespace

/// The captured program; or "" and its mistakes.
static std::string capture(const Source &source, bool isTraced,
                           std::string &mistakes) {
  if (!isTraced)
    return source.text;
  Trace trace("row");
  source.trace(trace);
  auto text = trace.finish();
  if (!text)
    mistakes = text.status().message();
  return text ? *text : "";
}

static Compiled compile(const Source &source, bool isTraced,
                        const CompileOptions &options) {
  Compiled result;
  std::string mistakes;
  std::string text = capture(source, isTraced, mistakes);
  if (!mistakes.empty()) {
    result.error = "capture\n" + mistakes;
    return result;
  }
  std::string diagnostics;
  ScopedDiagnosticHandler handler(&theContext(), [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() != DiagnosticSeverity::Error)
      return;
    print(diagnostic, "error", diagnostics);
    for (Diagnostic &note : diagnostic.getNotes())
      print(note, "note", diagnostics);
  });
  result.module = parseSourceString<ModuleOp>(text, &theContext(), "row.mlir");
  if (!result.module) {
    result.error = "capture\n" + diagnostics;
    return result;
  }
  std::vector<PhaseTime> times;
  Status status = adaptModel(*result.module, options);
  if (status)
    status = runPhases(*result.module, options, times);
  if (!status)
    result.error = status.message() + "\n" + diagnostics;
  return result;
}

static ArtifactFiles &artifacts() {
  static ArtifactFiles made;
  return made;
}

/// Writes an artifact for the program `key`; returns its path, or "".
static std::string write(Result<artifact::ArtifactWriter> writer,
                         const std::string &key, std::string &error) {
  auto &files = artifacts().files;
  std::string path = testing::TempDir() + "row-" + std::to_string(getpid()) +
                     "-" + std::to_string(files.size()) + ".tdm";
  Status status = writer ? writer->write(path) : writer.status();
  if (!status) {
    error = status.message();
    return "";
  }
  files[key] = path;
  return path;
}

/// The file of the artifact, compiled once for each program; or "".
static std::string artifactOf(const Source &source, bool isTraced,
                              const CompileOptions &options,
                              std::string &error) {
  std::string mistakes;
  std::string key =
      capture(source, isTraced, mistakes) + "\n" + options.partition + "\n" +
      options.loss + "\n" + options.optimizer + "\n" + options.clip + "\n" +
      options.lossScale + "\n" + options.gradientNoise + "\n" + options.target +
      "\n" + options.lrSchedule + "\n" + options.amp + "\n" + options.fp8 +
      "\n" + options.lora + "\n" + options.freeze + "\n" + options.mixup +
      "\n" + llvm::join(options.inputs, "\n") + "\n" +
      llvm::join(options.precision, " ") + "\n" + options.ema + "\n" +
      options.swa + "\n" + llvm::join(options.groups, "\n") + "\n" +
      (options.inference ? "i" : "") + (options.accumulate ? "a" : "") +
      (options.centralize ? "c" : "") + std::to_string(options.effort);
  auto &files = artifacts().files;
  if (auto found = files.find(key); found != files.end())
    return found->second;
  auto kernels = testKernels();
  CompileOptions kept = options;
  kept.kernels = kernels.get();
  Compiled compiled = compile(source, isTraced, kept);
  error = compiled.error;
  if (!error.empty())
    return "";
  std::vector<PhaseTime> times;
  return write(emitArtifact(*compiled.module, kept, times), key, error);
}

/// The file of the artifact of all sizes, or "".
static std::string artifactOfSizes(const std::vector<Source> &sources,
                                   bool isTraced, const CompileOptions &options,
                                   std::string &error) {
  auto kernels = testKernels();
  CompileOptions kept = options;
  kept.kernels = kernels.get();
  std::vector<SizeModules> sizes;
  for (const Source &source : sources) {
    Compiled compiled = compile(source, isTraced, kept);
    error = compiled.error;
    if (!error.empty())
      return "";
    SizeModules &size = sizes.emplace_back();
    size.name = "size " + std::to_string(sizes.size() - 1);
    size.modules.push_back(std::move(compiled.module));
  }
  std::vector<PhaseTime> times;
  return write(emitSizes(sizes, kept, times),
               "sizes " + std::to_string(artifacts().files.size()), error);
}

static CompileOptions withThreads(CompileOptions options) {
  options.threads = 1;
  return options;
}

//===----------------------------------------------------------------------===//
// RowTest
//===----------------------------------------------------------------------===//

void test::PrintTo(const Way &way, std::ostream *out) {
  *out << (way.isTraced ? "traced" : "text") << " on "
       << (way.runner == Runner::Reference ? "the reference"
           : way.runner == Runner::Cpu     ? "compiled code"
                                           : "cuda, emulated");
}

std::string test::nameOf(const testing::TestParamInfo<Way> &way) {
  return std::string(way.param.isTraced ? "Traced" : "Text") +
         (way.param.runner == Runner::Reference ? "Reference"
          : way.param.runner == Runner::Cpu     ? "Compiled"
                                                : "Cuda");
}

std::unique_ptr<Machine> RowTest::start(const Source &source,
                                        const CompileOptions &options) const {
  if (isCompiled())
    return compiled(source, options);
  CompileOptions toCapture = withThreads(options), toJoint = toCapture;
  toCapture.stopAfter = "capture";
  toJoint.stopAfter = "joint";
  Compiled graph = compile(source, isTraced(), toCapture);
  Compiled joint = compile(source, isTraced(), toJoint);
  if (!joint.error.empty()) {
    ADD_FAILURE() << joint.error;
    return nullptr;
  }
  return std::make_unique<ReferenceMachine>(std::move(graph.module),
                                            std::move(joint.module));
}

/// The options with the device's own; sets `device`.
static CompileOptions forDevice(const CompileOptions &options, bool isCuda,
                                runtime::Device &device) {
  CompileOptions some = withThreads(options);
  if (isCuda) {
    cuda::registerDevices();
    some.target = "cuda:sm_90";
    some.emulation = true;
    some.cubin = "no";
    device.kind = runtime::DeviceKind::CudaEmu;
  }
  return some;
}

std::unique_ptr<CompiledMachine>
RowTest::compiled(const Source &source, const CompileOptions &options) const {
  std::string error;
  runtime::Device device;
  CompileOptions some = forDevice(options, isCuda(), device);
  std::string file = artifactOf(source, isTraced(), some, error);
  if (file.empty()) {
    ADD_FAILURE() << error;
    return nullptr;
  }
  return CompiledMachine::load(file, device);
}

std::unique_ptr<CompiledMachine>
RowTest::compiledSizes(const std::vector<Source> &sources,
                       const CompileOptions &options,
                       std::string *error) const {
  std::string wrong;
  runtime::Device device;
  CompileOptions some = forDevice(options, isCuda(), device);
  std::string file = artifactOfSizes(sources, isTraced(), some, wrong);
  if (error)
    *error = wrong;
  if (!file.empty())
    return CompiledMachine::load(file, device);
  if (!error)
    ADD_FAILURE() << wrong;
  return nullptr;
}

std::string RowTest::printed(const Source &source, const std::string &phase,
                             const CompileOptions &options,
                             bool withPlaces) const {
  CompileOptions some = withThreads(options);
  some.stopAfter = phase;
  Compiled compiled = compile(source, isTraced(), some);
  if (!compiled.error.empty()) {
    ADD_FAILURE() << compiled.error;
    return "";
  }
  (*compiled.module)->removeAttr(kTargetAttr);
  std::string text;
  llvm::raw_string_ostream out(text);
  compiled.module->print(out,
                         mlir::OpPrintingFlags().enableDebugInfo(withPlaces));
  return text;
}

std::string RowTest::captured(const Source &source) const {
  std::string mistakes;
  std::string text = capture(source, isTraced(), mistakes);
  return text + mistakes;
}

std::string RowTest::errorOf(const Source &source,
                             const CompileOptions &options) const {
  return compile(source, isTraced(), withThreads(options)).error;
}

//===----------------------------------------------------------------------===//
// Assertions
//===----------------------------------------------------------------------===//

Numbers Machine::output(const std::string &name) const {
  auto found = outputs.find(name);
  if (found == outputs.end()) {
    ADD_FAILURE() << "there is no output '" << name << "'";
    return {};
  }
  return found->second;
}

std::optional<Numbers> Machine::gradient(const std::string &name) const {
  auto found = gradients.find(name);
  if (found == gradients.end())
    return std::nullopt;
  return found->second;
}

bool test::contains(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos;
}

int test::count(const std::string &text, const std::string &part) {
  int n = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at)
    ++n;
  return n;
}

static std::string toString(const Numbers &numbers) {
  std::string text = "{";
  for (double number : numbers)
    text += (text.size() > 1 ? ", " : "") + testing::PrintToString(number);
  return text + "}";
}

testing::AssertionResult test::areNear(const char *expression, const char *,
                                       const std::optional<Numbers> &actual,
                                       const Numbers &expected) {
  if (!actual)
    return testing::AssertionFailure()
           << expression << " is undefined, expected " << toString(expected);
  bool ok = actual->size() == expected.size();
  for (size_t i = 0; ok && i < expected.size(); ++i) {
    double difference = std::fabs((*actual)[i] - expected[i]);
    ok = difference <= 1e-5 * (1 + std::fabs(expected[i]));
  }
  if (ok)
    return testing::AssertionSuccess();
  return testing::AssertionFailure()
         << expression << " is " << toString(*actual) << ", expected "
         << toString(expected);
}

testing::AssertionResult test::hasPart(const char *, const char *,
                                       const std::string &text,
                                       const std::string &part) {
  if (contains(text, part))
    return testing::AssertionSuccess();
  return testing::AssertionFailure() << "expected '" << part << "' in:\n"
                                     << text;
}
