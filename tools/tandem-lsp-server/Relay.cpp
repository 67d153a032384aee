//===- Relay.cpp - between an editor and MLIR's language server -----------===//
#include "tools/tandem-lsp-server/Relay.h"

#include "tools/tandem-lsp-server/Compiled.h"
#include "tools/tandem-lsp-server/Document.h"
#include "tools/tandem-lsp-server/Syntax.h"

#include "llvm/Support/LSP/Transport.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <map>
#include <mutex>
#include <thread>
#include <unistd.h>

namespace lsp = llvm::lsp;
using llvm::StringRef;
using llvm::json::Array;
using llvm::json::Object;
using llvm::json::Value;

namespace tandem::editor {
namespace {

std::string textOf(const Value &value) {
  std::string text;
  llvm::raw_string_ostream(text) << value;
  return text;
}

template <typename T> std::optional<T> read(const Value *value) {
  T read;
  llvm::json::Path::Root root;
  if (!value || !fromJSON(*value, read, root))
    return {};
  return read;
}

/// A list of one place, which keeps no reference to `uri`.
Value locations(const lsp::URIForFile &uri, lsp::Range range) {
  return Array{Object{{"uri", uri.uri().str()}, {"range", toJSON(range)}}};
}

/// Writes a message with its header.
void send(int to, StringRef message) {
  std::string whole = "Content-Length: " + std::to_string(message.size()) +
                      "\r\n\r\n" + message.str();
  StringRef rest = whole;
  while (!rest.empty()) {
    ssize_t written = ::write(to, rest.data(), rest.size());
    if (written < 0 && errno != EINTR)
      return; // nobody reads it any more
    rest = rest.drop_front(size_t(std::max<ssize_t>(written, 0)));
  }
}

class Relay {
public:
  Relay(const mlir::DialectRegistry &registry, std::string tandem)
      : registry(registry), compiled(std::move(tandem)) {}

  /// Looks at a message of the editor, and returns what goes to the server.
  std::string note(std::string message);
  /// Ends what is being compiled.
  void end() { compiled.end(); }
  /// Returns what goes to the editor instead of the server's `message`.
  std::string answer(std::string message);

private:
  /// What was asked of a place in a document.
  struct Question {
    bool isHover;
    lsp::URIForFile uri;
    lsp::Position position;
  };

  /// A text as the editor has it, and what the server has of it.
  struct Text {
    std::string text;
    /// Of parts that the server has not, by versions of which it has not yet
    /// said anything, and the last one of which it did.
    std::map<int64_t, Array> errors;
    bool isPartial = false; ///< there are such in the last version
  };

  /// Returns whether the server has to get `given` for all of the text.
  bool check(const std::string &file, int64_t version, std::string &given);
  void noteOpened(Object &params);
  void noteChange(Object &params);
  void noteQuestion(const Object &message, StringRef method);
  std::optional<Question> questionOf(const Object &message);
  void addErrors(Object &params);
  std::string textIn(const std::string &file);
  Value hover(const Question &question, Value result);
  Value definition(const Question &question, Value result);

  const mlir::DialectRegistry &registry;
  Compiled compiled;
  std::mutex mutex;
  std::map<std::string, Text> texts;         ///< by the file
  std::map<std::string, Question> questions; ///< by the id
};

bool Relay::check(const std::string &file, int64_t version,
                  std::string &given) {
  std::string text = textIn(file);
  Syntax syntax = Syntax::of(text, registry);
  std::lock_guard lock(mutex);
  Text &known = texts[file];
  bool wasPartial = std::exchange(known.isPartial, !syntax.errors.empty());
  known.errors.insert_or_assign(version, std::move(syntax.errors));
  given = std::move(syntax.text);
  return wasPartial || known.isPartial;
}

void Relay::noteOpened(Object &params) {
  auto opened = read<lsp::TextDocumentItem>(params.get("textDocument"));
  if (!opened)
    return;
  std::string file = opened->uri.file().str(), given;
  {
    std::lock_guard lock(mutex);
    texts[file].text = opened->text;
  }
  if (check(file, opened->version, given))
    (*params.getObject("textDocument"))["text"] = given;
}

std::string Relay::note(std::string message) {
  auto json = llvm::json::parse(message);
  if (!json) {
    llvm::consumeError(json.takeError()); // the server says it
    return message;
  }
  Object *root = json->getAsObject();
  Object *params = root ? root->getObject("params") : nullptr;
  auto method = root ? root->getString("method") : std::nullopt;
  if (!params || !method)
    return message;
  if (*method == "initialize") {
    std::vector<std::string> options;
    if (const Object *given = params->getObject("initializationOptions"))
      if (const Object *ours = given->getObject("tandem"))
        if (const Array *list = ours->getArray("options"))
          for (const Value &option : *list)
            if (auto text = option.getAsString())
              options.push_back(text->str());
    compiled.setOptions(std::move(options));
  } else if (*method == "textDocument/didOpen") {
    noteOpened(*params);
    return textOf(*json);
  } else if (*method == "textDocument/didClose") {
    if (auto closed =
            read<lsp::TextDocumentIdentifier>(params->get("textDocument"))) {
      std::lock_guard lock(mutex);
      texts.erase(closed->uri.file().str());
    }
  } else if (*method == "textDocument/didChange") {
    noteChange(*params);
    return textOf(*json);
  } else if (*method == "textDocument/hover" ||
             *method == "textDocument/definition") {
    noteQuestion(*root, *method);
  }
  return message;
}

void Relay::noteChange(Object &params) {
  Value copy = Object(params);
  auto change = read<lsp::DidChangeTextDocumentParams>(&copy);
  if (!change)
    return;
  std::string file = change->textDocument.uri.file().str(), given;
  {
    std::lock_guard lock(mutex);
    std::string &text = texts[file].text;
    if (failed(lsp::TextDocumentContentChangeEvent::applyTo(
            change->contentChanges, text)))
      text.clear();
  }
  if (check(file, change->textDocument.version, given))
    params["contentChanges"] = Array{Object{{"text", given}}};
}

std::string Relay::textIn(const std::string &file) {
  std::lock_guard lock(mutex);
  return texts[file].text;
}

/// Adds what the server cannot know to its diagnostics of a text.
void Relay::addErrors(Object &params) {
  auto uri = read<lsp::URIForFile>(params.get("uri"));
  Array *diagnostics = params.getArray("diagnostics");
  if (!uri || !diagnostics)
    return;
  std::lock_guard lock(mutex);
  auto found = texts.find(uri->file().str());
  if (found == texts.end())
    return;
  // An editor may have sent the next version before the server is done.
  std::map<int64_t, Array> &errors = found->second.errors;
  int64_t version = params.getInteger("version").value_or(0);
  errors.erase(errors.begin(), errors.lower_bound(version));
  if (auto of = errors.find(version); of != errors.end())
    for (const Value &error : of->second)
      diagnostics->push_back(error);
}

void Relay::noteQuestion(const Object &message, StringRef method) {
  auto asked = read<lsp::TextDocumentPositionParams>(message.get("params"));
  const Value *id = message.get("id");
  if (!asked || !id)
    return;
  std::lock_guard lock(mutex);
  questions.insert_or_assign(textOf(*id), Question{method.ends_with("hover"),
                                                   asked->textDocument.uri,
                                                   asked->position});
}

std::optional<Relay::Question> Relay::questionOf(const Object &message) {
  const Value *id = message.get("id");
  if (!id || message.get("method"))
    return {};
  std::lock_guard lock(mutex);
  auto found = questions.find(textOf(*id));
  if (found == questions.end())
    return {};
  Question question = found->second;
  questions.erase(found);
  return question;
}

std::string Relay::answer(std::string message) {
  auto json = llvm::json::parse(message);
  if (!json) {
    llvm::consumeError(json.takeError());
    return message;
  }
  Object *root = json->getAsObject();
  Object *params = root ? root->getObject("params") : nullptr;
  if (params && root->getString("method") ==
                    StringRef("textDocument/publishDiagnostics")) {
    addErrors(*params);
    return textOf(*json);
  }
  auto question = root ? questionOf(*root) : std::nullopt;
  Value *result = root ? root->get("result") : nullptr;
  if (!question || !result)
    return message;
  *result = question->isHover ? hover(*question, std::move(*result))
                              : definition(*question, std::move(*result));
  return textOf(*json);
}

Value Relay::hover(const Question &question, Value result) {
  std::string file = question.uri.file().str(), text = textIn(file);
  auto document = Document::parse(text, registry);
  mlir::Operation *op = document ? document->opAt(question.position) : nullptr;
  if (!op || op->getName().getDialectNamespace() != "tandem")
    return result;
  std::string said;
  llvm::raw_string_ostream out(said);
  out << "**Tandem**\n\n";
  if (mlir::Operation *forward = document->forwardOf(op))
    out << "- part of the gradient of `" << forward->getName() << "` in line "
        << document->nameOf(forward).start.line + 1 << "\n";
  if (auto gradient = document->gradientOf(op); !gradient.empty()) {
    out << "- its gradient is computed by ";
    llvm::interleaveComma(gradient, out, [&](mlir::Operation *part) {
      out << "`" << part->getName().stripDialect() << "` (line "
          << document->nameOf(part).start.line + 1 << ")";
    });
    out << "\n";
  }
  lsp::Range name = document->nameOf(op);
  out << compiled.describe(file, text, unsigned(name.start.line) + 1,
                           unsigned(name.start.character) + 1);
  // MLIR's own text comes first, if it has one.
  if (Object *whole = result.getAsObject())
    if (Object *contents = whole->getObject("contents"))
      if (auto value = contents->getString("value")) {
        (*contents)["value"] = value->str() + "\n\n---\n\n" + said;
        return result;
      }
  return Object{{"contents", Object{{"kind", "markdown"}, {"value", said}}},
                {"range", toJSON(name)}};
}

Value Relay::definition(const Question &question, Value result) {
  if (const Array *found = result.getAsArray(); found && !found->empty())
    return result;
  std::string text = textIn(question.uri.file().str());
  auto document = Document::parse(text, registry);
  mlir::Operation *op = document ? document->opAt(question.position) : nullptr;
  if (!op)
    return result;
  if (mlir::Operation *forward = document->forwardOf(op))
    return locations(question.uri, document->nameOf(forward));
  std::optional<Place> place = placeInModel(op);
  if (!place)
    return result;
  llvm::SmallString<128> path(place->file);
  if (!llvm::sys::path::is_absolute(path)) {
    path = llvm::sys::path::parent_path(question.uri.file());
    llvm::sys::path::append(path, place->file);
  }
  auto uri = lsp::URIForFile::fromFile(path);
  if (!uri) {
    llvm::consumeError(uri.takeError());
    return result;
  }
  lsp::Position start(int(place->line) - 1,
                      std::max(int(place->column) - 1, 0));
  return locations(*uri, lsp::Range(start));
}

} // namespace

void relay(const mlir::DialectRegistry &registry, const std::string &self,
           std::FILE *fromEditor, int toServer, std::FILE *fromServer,
           int toEditor) {
  llvm::SmallString<128> tandem(llvm::sys::path::parent_path(self));
  llvm::sys::path::append(tandem, "tandem");
  // Never taken apart: the thread below may be in it when the process ends.
  auto *relay = new Relay(registry, std::string(tandem));
  std::thread([relay, fromEditor, toServer] {
    lsp::JSONTransportInputOverFile messages(fromEditor);
    std::string message;
    while (!messages.isEndOfInput() && !messages.hasError())
      if (succeeded(messages.readMessage(message))) {
        send(toServer, relay->note(std::move(message)));
      }
    ::close(toServer);
  }).detach();
  lsp::JSONTransportInputOverFile answers(fromServer);
  std::string message;
  while (!answers.isEndOfInput() && !answers.hasError())
    if (succeeded(answers.readMessage(message)))
      send(toEditor, relay->answer(message));
  relay->end();
}

} // namespace tandem::editor
