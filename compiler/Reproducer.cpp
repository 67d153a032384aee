//===- Reproducer.cpp - what was being compiled when it went wrong --------===//
#include "compiler/Reproducer.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

#include <vector>

using namespace mlir;
using namespace tandem;

/// The name of the pass that runs on this thread. The registry owns it.
static thread_local StringRef running;

namespace {

/// Knows which pass runs, and which one failed first.
class Watch : public PassInstrumentation {
public:
  Watch(std::string &failed) : failed_(failed) {}

  void runBeforePass(Pass *pass, Operation *) final {
    running = pass->getArgument();
  }
  void runAfterPass(Pass *, Operation *) final { running = {}; }
  void runAfterPassFailed(Pass *pass, Operation *) final {
    running = {};
    // What holds the passes of functions fails after them, and has no name.
    if (failed_.empty())
      failed_ = pass->getArgument().str();
  }

private:
  std::string &failed_;
};

} // namespace

static std::string nameOf(StringRef pass) {
  pass.consume_front("tandem-");
  return "the pass '" + pass.str() + "'";
}

std::string Reproducer::whatRuns() {
  return running.empty() ? std::string() : nameOf(running);
}

void Reproducer::begin(ModuleOp module, PassManager &passes, StringRef phase) {
  module_ = module.clone();
  emitted_ = {};
  passes_ = &passes;
  phase_ = phase.str();
}

void Reproducer::beginEmit(ModuleOp module) {
  module_ = {};
  emitted_ = module;
  passes_ = nullptr;
  phase_ = "emit";
}

void Reproducer::end() {
  module_ = {};
  emitted_ = {};
  passes_ = nullptr;
}

Result<std::string> Reproducer::write() {
  if (!isActive())
    return Status::failed("nothing is being compiled");
  std::string path = path_;
  if (path.empty()) {
    llvm::SmallString<128> unique;
    if (std::error_code error = llvm::sys::fs::createTemporaryFile(
            "tandem-" + phase_, "mlir", unique))
      return Status::failed("cannot make a file for a reproducer: " +
                            error.message());
    path = unique.str().str();
  }
  if (emitted_) {
    std::error_code error;
    llvm::raw_fd_ostream out(path, error);
    if (error)
      return Status::failed("cannot write '" + path + "': " + error.message());
    emitted_.print(out, OpPrintingFlags().enableDebugInfo());
    return "the module is in '" + path + "': 'tandem compile " + path +
           " -o x.tdm' repeats it";
  }
  std::string said = makeReproducer(
      passes_->getOpAnchorName(),
      llvm::make_range(passes_->begin(), passes_->end()), *module_, path,
      /*disableThreads=*/true, /*verifyPasses=*/true);
  if (!StringRef(said).contains("generated"))
    return Status::failed("cannot write a reproducer: " + said);
  return "a reproducer is in '" + path + "': 'tandem-opt --run-reproducer " +
         path + "' repeats it";
}

std::string Reproducer::firstToBreak() {
  if (!module_ || !passes_)
    return "";
  OwningOpRef<ModuleOp> copy(module_->clone());
  ScopedDiagnosticHandler silence(copy->getContext(),
                                  [](Diagnostic &) { return success(); });
  broke_.clear();
  passes_->addInstrumentation(std::make_unique<Watch>(broke_));
  (void)passes_->run(*copy);
  return broke_;
}

/// True for passes that only check: what they refuse is no model's fault, since
/// a module that was read is checked before.
static bool isVerifier(StringRef pass) {
  return pass == "tandem-enter-phase" || pass == "tandem-leave-phase" ||
         pass == "tandem-check-plan";
}

static constexpr const char *kInvalid = "left a module that is not valid";

/// Says why the compiler is at fault; empty where the model is: a pass refused
/// it with an error of its own (`said` are all errors). What it left then need
/// not be valid, since nobody goes on from it.
static std::string faultOf(ModuleOp module, StringRef failed,
                           ArrayRef<std::string> said) {
  // A pass that ends well and leaves a module that is not valid fails too, with
  // the verifier's errors alone.
  std::vector<std::string> ofVerifier;
  ScopedDiagnosticHandler keep(module.getContext(), [&](Diagnostic &error) {
    ofVerifier.push_back(error.str());
    return success();
  });
  bool isValid = succeeded(verify(module));
  if (isVerifier(failed))
    return isValid ? "refused what the passes before it made" : kInvalid;
  bool refused = llvm::any_of(said, [&](const std::string &error) {
    return !llvm::is_contained(ofVerifier, error);
  });
  if (refused)
    return "";
  return isValid ? "failed without a word" : kInvalid;
}

Status tandem::runPasses(ModuleOp module, PassManager &passes, StringRef phase,
                         Reproducer *reproducer) {
  std::string failedPass;
  passes.addInstrumentation(std::make_unique<Watch>(failedPass));
  std::vector<std::string> said;
  LogicalResult result = success();
  {
    ScopedDiagnosticHandler handler(
        module.getContext(), [&](Diagnostic &diagnostic) {
          if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
            said.push_back(diagnostic.str());
          return failure(); // others show it
        });
    result = passes.run(module);
  }
  std::string message = "phase '" + phase.str() + "' failed";
  std::string fault;
  if (failed(result))
    fault = faultOf(module, failedPass, said);
  // The verifier may not have run behind those before.
  if (fault == kInvalid)
    failedPass = reproducer ? reproducer->firstToBreak() : std::string();
  if (!fault.empty()) {
    message = "phase '" + phase.str() +
              "': " + (failedPass.empty() ? "a pass" : nameOf(failedPass)) +
              " " + fault +
              ", which is a fault of the compiler, or of whoever edited the "
              "module";
    if (reproducer) {
      auto said = reproducer->write();
      message += "; " + (said ? *said : said.status().message());
    }
  }
  return succeeded(result) ? Status::success() : Status::failed(message);
}
