//===- Syntax.cpp - syntax errors of a text that an editor has ------------===//
#include "tools/tandem-lsp-server/Syntax.h"

#include "ir/ParseText.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Location.h"
#include "mlir/Support/ToolUtilities.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ConvertUTF.h"
#include "llvm/Support/LSP/Protocol.h"

using namespace mlir;

namespace lsp = llvm::lsp;

namespace tandem::editor {
namespace {

/// The word at a place of a part, which begins at line `before` of the text.
lsp::Range rangeAt(Location location, StringRef part, int before) {
  auto place = location->findInstanceOf<FileLineColLoc>();
  if (!place || place.getLine() == 0)
    return lsp::Range(lsp::Position(before, 0));
  StringRef rest = part;
  for (unsigned line = 1; line < place.getLine(); ++line)
    rest = rest.split('\n').second;
  size_t column = place.getColumn() ? place.getColumn() - 1 : 0;
  StringRef line = rest.split('\n').first;
  // In the units of LSP, which are those of UTF-16.
  auto unitsTo = [&](size_t end) {
    llvm::SmallVector<llvm::UTF16> units;
    StringRef before = line.take_front(end);
    return llvm::convertUTF8ToUTF16String(before, units) ? units.size() : end;
  };
  size_t end = column;
  while (end < line.size() &&
         (llvm::isAlnum(line[end]) || StringRef("_.$%").contains(line[end])))
    ++end;
  int number = before + static_cast<int>(place.getLine()) - 1;
  end = std::max(end, column + 1);
  return {lsp::Position(number, static_cast<int>(unitsTo(column))),
          lsp::Position(number, static_cast<int>(unitsTo(end)))};
}

/// The errors of a part.
llvm::json::Array errorsOf(StringRef part, int before,
                           const DialectRegistry &registry) {
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  llvm::json::Array errors;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &said) {
    if (said.getSeverity() != DiagnosticSeverity::Error)
      return success();
    lsp::Diagnostic error;
    error.range = rangeAt(said.getLocation(), part, before);
    error.severity = lsp::DiagnosticSeverity::Error;
    error.source = "mlir";
    error.message = said.str();
    for (Diagnostic &note : said.getNotes())
      error.message += "\n" + note.str();
    errors.push_back(toJSON(error));
    return success();
  });
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBufferCopy(part),
                             SMLoc());
  Block block;
  AsmParserState parsed;
  bool isRight = succeeded(parseText(sources, block, parsed, context));
  return isRight ? llvm::json::Array() : std::move(errors);
}

} // namespace

Syntax Syntax::of(StringRef text, const DialectRegistry &registry) {
  Syntax syntax;
  syntax.text = text.str();
  llvm::SmallVector<StringRef> parts;
  text.split(parts, kDefaultSplitMarker);
  for (StringRef part : parts) {
    size_t begin = static_cast<size_t>(part.begin() - text.begin());
    int before = static_cast<int>(text.take_front(begin).count('\n'));
    llvm::json::Array errors = errorsOf(part, before, registry);
    if (errors.empty())
      continue;
    for (size_t i = begin; i < begin + part.size(); ++i)
      if (text[i] != '\n' && text[i] != '\r')
        syntax.text[i] = ' ';
    for (llvm::json::Value &error : errors)
      syntax.errors.push_back(std::move(error));
  }
  return syntax;
}

} // namespace tandem::editor
