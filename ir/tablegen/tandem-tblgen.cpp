//===- tandem-tblgen.cpp - what is called by the names of pointwise ops
//----===//
//
// Writes ops/PointwiseFunctions.h.inc from ops/Elementwise.td: for each record
// that is a UnaryOp or a BinaryOp a line for each list that the op is in. Who
// includes the file defines the macros that it wants; the others are empty.
//
//     TANDEM_UNARY(exp, ExpOp, "exp")    y = exp(x) of formulas and of traces
//     TANDEM_BINARY(pow, PowOp, "pow")
//     TANDEM_UNARY_SCALAR(exp)           scalar::exp(b, loc, x), which its
//     TANDEM_BINARY_SCALAR(pow)          `scalar` names
//     TANDEM_UNARY_ONNX("Exp", "exp")    the operator of ONNX, and the mnemonic
//     TANDEM_BINARY_ONNX("Add", "add")
//
// usage: tandem-tblgen FILE.td OUT INCLUDE-FOLDER...
//
//===----------------------------------------------------------------------===//
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/TableGen/Parser.h"
#include "llvm/TableGen/Record.h"

#include <string>
#include <vector>

using namespace llvm;

/// The lines of the records of class `kind` ("Unary").
static void writeLists(raw_ostream &os, const RecordKeeper &records,
                       StringRef kind) {
  std::string macro = "TANDEM_" + kind.upper();
  for (const Record *op :
       records.getAllDerivedDefinitions((kind + "Op").str())) {
    StringRef mnemonic = op->getValueAsString("opName");
    std::string function = convertToCamelFromSnakeCase(mnemonic);
    if (op->getValueAsBit("hasFunction"))
      os << macro << "(" << function << ", " << op->getName() << ", \""
         << mnemonic << "\")\n";
    if (op->getValueAsString("scalarCode")
            .starts_with("scalar::" + function + "("))
      os << macro << "_SCALAR(" << function << ")\n";
    if (StringRef onnx = op->getValueAsString("onnx"); !onnx.empty())
      os << macro << "_ONNX(\"" << onnx << "\", \"" << mnemonic << "\")\n";
  }
}

static std::string pointwiseFunctions(const RecordKeeper &records) {
  static constexpr const char *macros[][2] = {
      {"UNARY", "(FUNCTION, OP, MNEMONIC)"},
      {"BINARY", "(FUNCTION, OP, MNEMONIC)"},
      {"UNARY_SCALAR", "(FUNCTION)"},
      {"BINARY_SCALAR", "(FUNCTION)"},
      {"UNARY_ONNX", "(OPERATOR, MNEMONIC)"},
      {"BINARY_ONNX", "(OPERATOR, MNEMONIC)"}};
  std::string text;
  raw_string_ostream os(text);
  os << "// Written by tandem-tblgen from ir/ops/Elementwise.td.\n";
  for (auto [name, parameters] : macros)
    os << "#ifndef TANDEM_" << name << "\n#define TANDEM_" << name << parameters
       << "\n#endif\n";
  writeLists(os, records, "Unary");
  writeLists(os, records, "Binary");
  for (auto [name, parameters] : macros)
    os << "#undef TANDEM_" << name << "\n";
  return text;
}

/// Leaves a file that has the text already as it is, so that nothing that
/// includes it is compiled again.
static bool writeFile(StringRef path, StringRef text) {
  auto old = MemoryBuffer::getFile(path);
  if (old && (*old)->getBuffer() == text)
    return true;
  std::error_code error;
  raw_fd_ostream file(path, error);
  file << text;
  file.close();
  if (!error)
    error = file.error();
  if (error)
    errs() << path << ": " << error.message() << "\n";
  return !error;
}

int main(int argc, char **argv) {
  if (argc < 3) {
    errs() << "usage: tandem-tblgen FILE.td OUT INCLUDE-FOLDER...\n";
    return 2;
  }
  auto file = MemoryBuffer::getFile(argv[1]);
  if (!file) {
    errs() << argv[1] << ": " << file.getError().message() << "\n";
    return 1;
  }
  SourceMgr sources;
  sources.setIncludeDirs(std::vector<std::string>(argv + 3, argv + argc));
  sources.AddNewSourceBuffer(std::move(*file), SMLoc());
  RecordKeeper records;
  if (TableGenParseFile(sources, records))
    return 1;
  return writeFile(argv[2], pointwiseFunctions(records)) ? 0 : 1;
}
