//===- Bugreport.cpp - the command `bugreport` ----------------------------===//
//
// Packs what somebody else needs to see a fault: versions, the machine, the
// model without its weights, its phases, and what the compiler said. Everything
// that may crash runs in a process of its own. Nothing leaves the machine.
//
//===----------------------------------------------------------------------===//
#include "tools/tandem/BugreportFiles.h"
#include "tools/tandem/CompileFlags.h"
#include "tools/tandem/CompilerCommands.h"

#include "runtime/io/Array.h"
#include "tools/commands/Interrupt.h"
#include "tools/commands/Print.h"
#include "tools/tandem/WriteText.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <cstdio>
#include <cstdlib>

extern char **environ;

using namespace tandem;
using namespace tandem::commands;
using mlir::StringRef;

namespace {

struct BugreportOptions {
  static constexpr std::string_view
      usage = "bugreport MODEL|X.tdm [options]",
      description =
          "Packs what is needed to find out why something goes wrong: "
          "versions, "
          "the machine, the model without its weights, the module of each "
          "phase, what the compiler says, and a reproducer if it fails. "
          "Nothing "
          "is sent anywhere; what is in the report is listed.";

  std::string path, output, command;
  bool withConstants = false;
  std::optional<int64_t> timeout;
  CompileFlags flags;
  std::vector<std::string> asked; ///< the options of `compile`, as given

  void declare(OptionTable &table) {
    table.positional("FILE", path, "a model, or an artifact (.tdm)");
    table.text("o", "F.tar.gz|DIR", output, "where the report goes")
        .byDefault("NAME.bugreport.tar.gz, here");
    table
        .text("command", "WORDS", command,
              "what went wrong, as 'train X.tdm --data x=@x.npy --steps=1': it "
              "is run too, and what it says is in the report")
        .example("version");
    table.flag(
        "with-constants", withConstants,
        "constants of more than 1 KiB as they are, and of an artifact all "
        "of it; without it they are zeros");
    table
        .integer("timeout", "SECONDS", timeout, 1, 86400,
                 "what takes longer is ended, with what it has started")
        .byDefault("600");
    table.groupOf("compile");
    flags.declare(table);
    // The report has dumps and a reproducer of its own, and what is dumped
    // keeps no kernels.
    llvm::erase_if(table.options(), [](const Option &option) {
      return option.name == "dump-phases" || option.name == "dump-passes" ||
             option.name == "reproducer" || option.name == "kernel-cache" ||
             option.name == "kernel-cache-size";
    });
    for (Option &option : table.options())
      if (option.folded && option.name != "force")
        option.notFor(".tdm", "an artifact");
  }

  int64_t seconds() const { return timeout.value_or(600); }
  bool isArtifact() const { return StringRef(path).ends_with(".tdm"); }
};

std::string defaultOutput(StringRef path) {
  return llvm::sys::path::stem(path).str() + ".bugreport.tar.gz";
}

bool isArchive(StringRef path) {
  return path.ends_with(".tar.gz") || path.ends_with(".tgz");
}

/// Variables that the compiler and the runtime read.
std::string environment() {
  std::string text;
  for (char **one = environ; *one; ++one)
    if (StringRef(*one).starts_with("TANDEM_"))
      text += std::string(*one) + "\n";
  return text.empty() ? "no variable TANDEM_* is set\n" : text;
}

class BugReport {
public:
  BugReport(const BugreportOptions &options, std::string folder)
      : options_(options), folder_(std::move(folder)) {}

  Status make();

private:
  std::string in(StringRef name) const { return folder_ + "/" + name.str(); }
  /// Adds what the tool prints when it is called with `words`; returns its exit
  /// code, or what a signal gave.
  Result<int> addRun(const std::vector<std::string> &words,
                     const std::string &file);
  Status addModel();
  void removeArtifact();
  Status addArtifact();
  Status addReadme();

  const BugreportOptions &options_;
  std::string folder_, said_;
};

Result<int> BugReport::addRun(const std::vector<std::string> &words,
                              const std::string &file) {
  auto outcome = runTandem(words, in(file), options_.seconds());
  if (!outcome)
    return outcome.status();
  std::string text = "tandem";
  for (const std::string &word : words)
    text += " " + word;
  said_ +=
      "  " + text + "\n    " + outcome->text + "; it printed " + file + "\n";
  return outcome->code;
}

/// A report has no weights: of a model in ONNX they lie beside its artifact.
void BugReport::removeArtifact() {
  llvm::sys::fs::remove(in("x.tdm"));
  llvm::sys::fs::remove(in("x.safetensors"));
}

Status BugReport::addModel() {
  const std::string copy = in("model.mlir");
  std::vector<std::string> compile = {"compile", options_.path, "-o",
                                      in("x.tdm")};
  compile.insert(compile.end(), options_.asked.begin(), options_.asked.end());
  compile.push_back("--reproducer=" + in("reproducer-of-given.mlir"));
  auto given = addRun(compile, "compile-given.txt");
  if (!given)
    return given.status();
  removeArtifact();
  if (!options_.withConstants)
    // It has the constants.
    llvm::sys::fs::remove(in("reproducer-of-given.mlir"));

  std::string notes;
  if (Status s = writeModel(options_.path, options_.flags, copy,
                            options_.withConstants, options_.seconds(), notes);
      !s)
    return s;
  said_ += notes;
  if (!llvm::sys::fs::exists(copy))
    return Status::success();
  // What is said of an imported model is in the module by now.
  std::vector<std::string> again = {"compile", copy, "-o", in("x.tdm")};
  for (const std::string &word : options_.asked) {
    StringRef name = StringRef(word).split('=').first;
    bool isImporters =
        name == "--dim" || name == "--shape" || name == "--value" ||
        name == "--freeze" || name == "--train" || name == "--keep-eval" ||
        name == "--input" || name == "--mixup" ||
        (name == "--loss" &&
         (isImported(options_.path) || StringRef(word).contains(':')));
    if (!isImporters)
      again.push_back(word);
  }
  again.push_back("--dump-phases=" + in("phases"));
  again.push_back("--reproducer=" + in("reproducer.mlir"));
  auto copied = addRun(again, "compile-model.txt");
  if (!copied)
    return copied.status();
  removeArtifact();
  if (*given != *copied)
    said_ += "  the two end differently: the fault may need what is left out "
             "(--with-constants)\n";
  return Status::success();
}

Status BugReport::addArtifact() {
  if (auto code = addRun({"inspect", options_.path, "--json"}, "inspect.txt");
      !code)
    return code.status();
  if (auto code = addRun({"bench", options_.path, "--warmup=0", "--steps=1"},
                         "bench.txt");
      !code)
    return code.status();
  if (!options_.withConstants) {
    said_ += "  the artifact is not in the report: it has the constants "
             "(--with-constants)\n";
    return Status::success();
  }
  if (std::error_code error =
          llvm::sys::fs::copy_file(options_.path, in("artifact.tdm")))
    return Status::failed("cannot copy " + io::inQuotes(options_.path) + ": " +
                          error.message());
  return Status::success();
}

Status BugReport::addReadme() {
  return writeText(
      in("README.txt"),
      "A report of 'tandem bugreport': what was run and how it ended.\n\n" +
          said_ +
          "\nversion.txt, doctor.txt: the program and the machine.\n"
          "environment.txt: variables that Tandem reads.\n" +
          (options_.isArtifact()
               ? "inspect.txt: the manifest of the artifact.\n"
               : "model.mlir: the model, in which constants of more than 1 KiB "
                 "are zeros unless it says otherwise.\n"
                 "phases/: its modules, which 'tandem compile' goes on from.\n"
                 "reproducer.mlir, if there is one: for 'tandem-opt "
                 "--run-reproducer'.\n") +
          "\nNames in the model, and of files and folders in messages, are as "
          "they were.\n");
}

Status BugReport::make() {
  for (std::string name : {"version", "doctor"})
    if (auto code = addRun({name}, name + ".txt"); !code)
      return code.status();
  if (Status s = writeText(in("environment.txt"), environment()); !s)
    return s;
  if (Status s = options_.isArtifact() ? addArtifact() : addModel(); !s)
    return s;
  if (!options_.command.empty())
    if (auto code = addRun(splitWords(options_.command), "command.txt"); !code)
      return code.status();
  return addReadme();
}

Status checkOutput(const std::string &output, bool force) {
  bool isFolder = llvm::sys::fs::is_directory(output);
  std::error_code error;
  bool isEmpty = isFolder && llvm::sys::fs::directory_iterator(output, error) ==
                                 llvm::sys::fs::directory_iterator();
  if (isArchive(output) && isFolder)
    return Status::usage("expected -o to name a file but got the folder " +
                         io::inQuotes(output));
  if (!llvm::sys::fs::exists(output) || isEmpty || force)
    return Status::success();
  return Status::usage("-o would replace " + io::inQuotes(output) +
                       "; choose another name, or say --force");
}

Status runBugreport(const BugreportOptions &options) {
  std::string output =
      options.output.empty() ? defaultOutput(options.path) : options.output;
  if (!llvm::sys::fs::exists(options.path))
    return Status::failed("cannot read " + io::inQuotes(options.path) +
                          ": no such file");
  if (Status s = checkOutput(output, options.flags.force); !s)
    return s;
  // All of it is made elsewhere, so that what stands in a folder that --force
  // names is no part of it, and an interrupted report leaves nothing.
  llvm::SmallString<128> unique;
  if (std::error_code error =
          llvm::sys::fs::createUniqueDirectory("tandem-bugreport", unique))
    return Status::failed("cannot make a temporary folder: " + error.message());
  const std::string folder = unique.str().str();
  llvm::scope_exit cleanup([&] { llvm::sys::fs::remove_directories(folder); });
  Interrupt interrupt;
  if (Status s = BugReport(options, folder).make(); !s)
    return s;
  auto files = filesIn(folder);
  if (!files)
    return files.status();
  if (Status s =
          isArchive(output)
              ? pack(folder, *files, output,
                     llvm::sys::path::stem(options.path).str() + ".bugreport")
              : copyFiles(folder, *files, output);
      !s)
    return s;
  for (const ReportFile &file : *files)
    std::printf("%-40s %10s\n", file.name.c_str(),
                bytesText(static_cast<int64_t>(file.bytes)).c_str());
  std::printf("wrote the report to %s; nothing was sent anywhere: look at it "
              "before you send it\n",
              io::inQuotes(output).c_str());
  return Status::success();
}

/// As commandOf makes it, with the options of `compile` as they are written.
Status runAsGiven(const Tool &tool, Words words) {
  BugreportOptions options;
  OptionTable table(BugreportOptions::usage, BugreportOptions::description);
  options.declare(table);
  Status status;
  if (!parseOrHelp(table, tool, words, status))
    return status;
  for (const Option &option : table.options())
    if (option.folded && option.given && option.name != "force")
      for (const std::string &value : option.values)
        options.asked.push_back(option.written() +
                                (option.takesValue() ? "=" + value : ""));
  return runBugreport(options);
}

} // namespace

Command commands::bugreportCommand() {
  Command command = commandOf<runBugreport>(
      "bugreport", "pack what is needed to find out why something fails");
  command.run = runAsGiven;
  return command;
}
