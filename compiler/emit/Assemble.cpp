//===- Assemble.cpp - PTX to machine code, with what is installed ---------===//
#include "compiler/emit/Assemble.h"
#include "compiler/emit/NvJitLink.h"
#include "compiler/emit/TemporaryFolder.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Program.h"

#include <cstdlib>

using namespace tandem;
using llvm::StringRef;

std::string tandem::findPtxas() {
  if (const char *only = std::getenv("TANDEM_PTXAS"))
    return llvm::sys::fs::can_execute(only) ? only : "";
  if (auto inPath = llvm::sys::findProgramByName("ptxas"))
    return *inPath;
  std::vector<std::string> folders;
  for (const char *variable : {"CUDA_HOME", "CUDA_PATH", "CUDA_ROOT"})
    if (const char *folder = std::getenv(variable); folder && *folder)
      folders.emplace_back(folder);
  folders.emplace_back("/usr/local/cuda");
  for (const std::string &folder : folders)
    if (std::string path = folder + "/bin/ptxas";
        llvm::sys::fs::can_execute(path))
      return path;
  return "";
}

Status tandem::checkNamedPtxas() {
  const char *only = std::getenv("TANDEM_PTXAS");
  if (!only || !*only || llvm::sys::fs::can_execute(only))
    return Status::success();
  return Status::usage("expected TANDEM_PTXAS to name a program, or to be "
                       "empty, but got '" +
                       std::string(only) + "'");
}

namespace {
/// One run of ptxas.
struct Run {
  bool isDone = false;
  std::string cubin, messages;
};
} // namespace

static Result<Run> runPtxas(const std::string &program, const std::string &ptx,
                            const std::string &arch) {
  auto folder = TemporaryFolder::create("tandem-ptxas");
  if (!folder)
    return folder.status();
  if (Status s = folder->write("kernels.ptx", ptx); !s)
    return s;
  std::string archOption = "-arch=" + arch;
  std::string input = folder->path("kernels.ptx");
  std::string output = folder->path("kernels.cubin");
  std::string messages = folder->path("messages");
  StringRef arguments[] = {program, archOption, "-O3", "-v",
                           input,   "-o",       output};
  std::optional<StringRef> streams[] = {StringRef(""), StringRef(messages),
                                        StringRef(messages)};
  std::string problem;
  int code = llvm::sys::ExecuteAndWait(program, arguments, std::nullopt,
                                       streams, 0, 0, &problem);
  if (code < 0)
    return Status::failed("cannot run '" + program + "': " + problem);
  Run run;
  if (auto text = folder->read("messages"))
    run.messages = *text;
  run.isDone = code == 0;
  if (run.isDone) {
    auto cubin = folder->read("kernels.cubin");
    if (!cubin)
      return cubin.status();
    run.cubin = std::move(*cubin);
  }
  return run;
}

/// The lines of what ptxas printed that say why it failed, as one.
static std::string errorsOf(StringRef messages) {
  std::string errors;
  llvm::SmallVector<StringRef> lines;
  messages.split(lines, '\n');
  for (StringRef line : lines)
    if (line.contains("error") || line.contains("fatal"))
      errors += (errors.empty() ? "" : "; ") + line.trim().str();
  return errors.empty() ? messages.trim().str() : errors;
}

static bool isTooOld(StringRef messages) {
  return messages.contains("Unsupported .version") ||
         messages.contains("not defined for option 'gpu-name'");
}

Result<Assembly> tandem::assemble(const std::string &ptx,
                                  const std::string &arch) {
  if (Status s = checkNamedPtxas(); !s)
    return s;
  Assembly assembly;
  auto tooOld = [&](const std::string &by, const std::string &why) {
    assembly.isTooOld = true;
    assembly.problem += (assembly.problem.empty() ? "" : "; ") + by +
                        " is too old for these kernels: " + why;
  };
  const NvJitLink *library =
      std::getenv("TANDEM_PTXAS") ? nullptr : NvJitLink::find();
  if (library) {
    NvJitLink::Outcome outcome = library->assemble(ptx, arch);
    if (!outcome.cubin.empty())
      return Assembly{std::move(outcome.cubin), library->name(), "", false};
    if (!outcome.isTooOld)
      return Status::failed(library->name() +
                            " refuses the PTX: " + errorsOf(outcome.log));
    tooOld(library->name(), errorsOf(outcome.log));
  }
  if (std::string program = findPtxas(); !program.empty()) {
    auto run = runPtxas(program, ptx, arch);
    if (!run)
      return run.status();
    if (run->isDone)
      return Assembly{std::move(run->cubin), program, "", false};
    if (!isTooOld(run->messages))
      return Status::failed("'" + program +
                            "' refuses the PTX: " + errorsOf(run->messages));
    tooOld("'" + program + "'", errorsOf(run->messages));
  }
  if (assembly.problem.empty())
    assembly.problem =
        "there is no assembler for PTX, neither libnvJitLink nor ptxas (looked "
        "for in PATH, CUDA_HOME, CUDA_PATH, CUDA_ROOT and /usr/local/cuda)";
  return assembly;
}

/// The number before `unit` in "0 bytes stack frame, 8 bytes spill stores,
/// ...".
static int64_t numberBefore(StringRef line, StringRef unit) {
  size_t end = line.find(unit);
  if (end == StringRef::npos)
    return 0;
  StringRef before = line.take_front(end).rtrim();
  size_t begin = before.find_last_not_of("0123456789");
  int64_t number = 0;
  before.substr(begin + 1).getAsInteger(10, number);
  return number;
}

Result<std::vector<KernelResources>>
tandem::resourcesOf(const std::string &ptx, const std::string &arch) {
  if (Status s = checkNamedPtxas(); !s)
    return s;
  std::string program = findPtxas();
  if (program.empty())
    return Status::unsupported("there is no ptxas to ask");
  auto run = runPtxas(program, ptx, arch);
  if (!run)
    return run.status();
  if (!run->isDone)
    return Status::failed("'" + program +
                          "' refuses the PTX: " + errorsOf(run->messages));
  // Functions that are no kernels have properties too, but no "Compiling".
  std::vector<KernelResources> kernels;
  llvm::SmallVector<StringRef> lines;
  StringRef(run->messages).split(lines, '\n');
  bool isKernel = false;
  llvm::SmallVector<StringRef> remarks; // they may stand before their kernel
  for (StringRef line : lines) {
    if (size_t at = line.find("(C7"); at != StringRef::npos)
      remarks.push_back(line.drop_front(at).rtrim());
    if (size_t at = line.find("Compiling entry function '");
        at != StringRef::npos) {
      StringRef rest = line.drop_front(at).split('\'').second;
      kernels.emplace_back().kernel = rest.split('\'').first.str();
    } else if (size_t at = line.find("Function properties for ");
               at != StringRef::npos) {
      StringRef name = line.drop_front(at).rsplit(' ').second.trim();
      isKernel = !kernels.empty() && name == kernels.back().kernel;
    } else if (line.contains("bytes stack frame") && isKernel) {
      KernelResources &kernel = kernels.back();
      kernel.stackBytes = numberBefore(line, " bytes stack frame");
      kernel.spillStoreBytes = numberBefore(line, " bytes spill stores");
      kernel.spillLoadBytes = numberBefore(line, " bytes spill loads");
    } else if (line.contains("Used ") && !kernels.empty()) {
      kernels.back().registers = numberBefore(line, " registers");
      kernels.back().sharedBytes = numberBefore(line, " bytes smem");
    }
  }
  for (KernelResources &kernel : kernels)
    for (StringRef remark : remarks)
      if (remark.contains("'" + kernel.kernel + "'"))
        kernel.remarks.push_back(remark.str());
  // ptxas's order is its own.
  llvm::sort(kernels, [&](const auto &a, const auto &b) {
    return ptx.find(".entry " + a.kernel + "(") <
           ptx.find(".entry " + b.kernel + "(");
  });
  return kernels;
}
