//===- Document.cpp - a text of the dialect, and what its ops say ---------===//
#include "tools/tandem-lsp-server/Document.h"

#include "ir/ParseText.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Location.h"

using namespace mlir;

namespace lsp = llvm::lsp;

namespace tandem::editor {
namespace {

/// The name of texts that come from an editor.
constexpr llvm::StringLiteral kUnnamed = "<editor>";

/// "grad of matmul" around the location of a product: its kind and location.
struct Gradient {
  StringRef of; ///< empty of ops of the forward
  Location location;
};

Gradient gradientAt(Operation *op) {
  Gradient found{"", op->getLoc()};
  op->getLoc()->walk([&](Location location) {
    auto name = dyn_cast<NameLoc>(location);
    StringRef text = name ? name.getName().getValue() : "";
    if (!text.consume_front("grad of "))
      return WalkResult::advance();
    found = {text.split(' ').first, name.getChildLoc()};
    return WalkResult::interrupt();
  });
  return found;
}

bool contains(llvm::SourceMgr &sources, SMRange range, lsp::Position position) {
  return range.isValid() && lsp::Range(sources, range).contains(position);
}

} // namespace

std::unique_ptr<Document> Document::parse(StringRef text,
                                          const DialectRegistry &registry) {
  std::unique_ptr<Document> document(new Document);
  document->context =
      std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
  ScopedDiagnosticHandler silent(document->context.get(),
                                 [](Diagnostic &) { return success(); });
  document->sources.AddNewSourceBuffer(
      llvm::MemoryBuffer::getMemBufferCopy(text, kUnnamed), SMLoc());
  Block parsed;
  const auto *buffer =
      document->sources.getMemoryBuffer(document->sources.getMainFileID());
  if (failed(parseText(document->sources, parsed, document->state,
                       *document->context)) ||
      buffer->getBufferSize() == 0)
    return nullptr;
  // One owner for all that stands at the top.
  OpBuilder builder(document->context.get());
  OperationState top(UnknownLoc::get(document->context.get()),
                     "builtin.module");
  top.addRegion()->push_back(new Block);
  document->module = Operation::create(top);
  Block &body = document->module->getRegion(0).front();
  body.getOperations().splice(body.end(), parsed.getOperations());
  return document;
}

Operation *Document::opAt(lsp::Position position) const {
  for (const AsmParserState::OperationDefinition &definition :
       state.getOpDefs()) {
    if (contains(sources, definition.loc, position))
      return definition.op;
    for (const auto &group : definition.resultGroups)
      if (contains(sources, group.definition.loc, position))
        return definition.op;
  }
  return nullptr;
}

lsp::Range Document::nameOf(Operation *op) const {
  const AsmParserState::OperationDefinition *definition = state.getOpDef(op);
  return definition ? lsp::Range(sources, definition->loc) : lsp::Range();
}

Operation *Document::forwardOf(Operation *op) const {
  Gradient gradient = gradientAt(op);
  if (gradient.of.empty())
    return nullptr;
  for (const AsmParserState::OperationDefinition &other : state.getOpDefs())
    if (other.op->getLoc() == gradient.location &&
        other.op->getName().stripDialect() == gradient.of)
      return other.op;
  return nullptr;
}

llvm::SmallVector<Operation *> Document::gradientOf(Operation *op) const {
  llvm::SmallVector<Operation *> ops;
  for (const AsmParserState::OperationDefinition &other : state.getOpDefs()) {
    Gradient gradient = gradientAt(other.op);
    if (gradient.location == op->getLoc() &&
        gradient.of == op->getName().stripDialect())
      ops.push_back(other.op);
  }
  return ops;
}

std::optional<Place> placeInModel(Operation *op) {
  std::optional<Place> place;
  op->getLoc()->walk([&](Location location) {
    auto file = dyn_cast<FileLineColLoc>(location);
    if (!file || file.getFilename() == kUnnamed || file.getLine() == 0)
      return WalkResult::advance();
    place = Place{file.getFilename().str(), file.getLine(), file.getColumn()};
    return WalkResult::interrupt();
  });
  return place;
}

} // namespace tandem::editor
