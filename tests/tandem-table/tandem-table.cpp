//===- tandem-table.cpp - prints support.md, functions.md, core-aten.md ---===//
#include "compiler/functions/Function.h"
#include "compiler/import/onnx/Translator.h"
#include "tests/tandem-table/CoreAten.h"
#include "tests/tandem-table/OpTable.h"
#include "tools/onnx/Expected.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include <set>

static const char kHead[] =
    R"(<!-- Printed by tandem-table; `ninja -C build docs` writes it. -->

# What each op has

| column | |
|---|---|
| class | what engines decide by |
| gradient | `rule`: in its record; `decomposes`: that of the ops that it means; `none`: cut; `refused`: an error on the way to a gradient; `functionalized`: gone before; `joint`: gone after |
| reference | evaluation in double: `generic` follows from the op's interfaces, `own` is written for it; `evaluator`: part of whole-function evaluation |
| cpu, cuda | `loops`: in kernels of loop nests; `anchor`: a kernel around it; `decomposes`: as other ops; `functionalized`, `joint`: gone before; `expanded`: written out before there are kernels; `loop`: a kernel that runs those of the region; `unsupported`: a located error |
| rows | gradient checks in `tests/gradients` |

| op | class | gradient | reference | cpu | cuda | rows |
|---|---|---|---|---|---|---|
)";

static const char kFunctionsHead[] =
    R"(<!-- Printed by tandem-table; `ninja -C build docs` writes it. -->

# Functions

What models can call beside the [ops](ops.md): a function builds ops. In JSON graphs it is a node like an op
(`{"op": "leaky_relu", "inputs": ["x"], "attributes": {"negative_slope": 0.2}, "outputs": ["y"]}`), in traced programs
`call("leaky_relu", {x}, {{"negative_slope", 0.2}})[0]`. `x?` may be left out, `xs...` is any number of operands, attributes
stand with their defaults; names and meanings are PyTorch's where it has them.
)";

static void printFunctions() {
  llvm::outs() << kFunctionsHead;
  std::set<std::string> families;
  for (const auto &[name, function] : tandem::FunctionTable::get().all())
    families.insert(function.family);
  for (const std::string &family : families) {
    llvm::outs() << "\n## " << family << "\n\n| | |\n|---|---|\n";
    for (const auto &[name, function] : tandem::FunctionTable::get().all())
      if (function.family == family)
        llvm::outs() << "| `" << function.signature << "` | "
                     << function.meaning << " |\n";
  }
}

static const char kOnnxHead[] = R"(
# ONNX

Operators that are understood, of version 1 of their domain on unless a version stands there:
)";

static const char kCasesHead[] = R"(

Of ONNX's backend tests (`tools/onnx-conformance`) these cases need not pass:
)";

static const char kNewerCasesHead[] = R"(
Of the node tests of ONNX 1.23 (`tools/onnx/write-node-tests`) these need not pass:
)";

/// The cases of ONNX's tests that need not pass; false after a mistake.
static bool printCases(const char *head, const std::string &path) {
  auto expected = tandem::onnx::Expected::read(path);
  if (!expected) {
    llvm::errs() << expected.status().message() << '\n';
    return false;
  }
  llvm::outs() << head << "\n| cases | why |\n|---|---|\n";
  for (const auto &reason : expected->reasons()) {
    llvm::outs() << "| ";
    const char *separator = "";
    for (const std::string &one : reason.cases) {
      llvm::outs() << separator << '`' << one << '`';
      separator = ", ";
    }
    llvm::outs() << " | " << reason.text << " |\n";
  }
  return true;
}

/// The operators of ONNX.
static void printOnnx() {
  llvm::outs() << kOnnxHead;
  std::string domain = "?";
  for (const auto &[name, entry] : tandem::onnx::opTable().all()) {
    bool isFirst = name.first != domain;
    if (isFirst)
      llvm::outs() << (domain == "?" ? "\n`" : "\n\n`")
                   << (name.first.empty() ? "ai.onnx" : name.first) << "`:";
    domain = name.first;
    llvm::outs() << (isFirst ? "\n" : ",\n") << name.second;
    if (entry.first > 1)
      llvm::outs() << " (" << entry.first << ")";
  }
}

int main(int argc, char **argv) {
  if (argc == 2 && llvm::StringRef(argv[1]) == "--functions") {
    printFunctions();
    return 0;
  }
  if (argc == 4 && llvm::StringRef(argv[1]) == "--core-aten")
    return tandem::printCoreAten(argv[2], argv[3]) ? 0 : 1;
  mlir::MLIRContext context;
  llvm::outs() << kHead;
  for (const tandem::OpSupport &op : tandem::opTable(context)) {
    auto text = [](const std::string &field) {
      return field.empty() ? std::string("missing") : field;
    };
    llvm::outs() << llvm::formatv(
        "| `{0}` | {1} | {2} | {3} | {4} | {5} | {6} |\n", op.name,
        text(op.opClass), text(op.gradient), text(op.reference), text(op.cpu),
        text(op.cuda), op.gradientRows);
  }
  if (argc != 3)
    return 0;
  printOnnx();
  return printCases(kCasesHead, argv[1]) && printCases(kNewerCasesHead, argv[2])
             ? 0
             : 1;
}
