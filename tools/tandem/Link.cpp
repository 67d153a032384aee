//===- Link.cpp - the command `link` --------------------------------------===//
#include "compiler/link/Link.h"
#include "runtime/artifact/DeviceFiles.h"
#include "runtime/artifact/Text.h"
#include "runtime/io/Array.h"
#include "tools/commands/Print.h"
#include "tools/tandem/CompileFlags.h"
#include "tools/tandem/CompilerCommands.h"
#include "tools/tandem/ModelBeside.h"
#include "tools/tandem/Session.h"
#include "tools/tandem/WriteText.h"

#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdio>

using namespace mlir;
using namespace tandem;
using namespace tandem::commands;

namespace {
struct LinkOptions {
  static constexpr std::string_view
      usage = "link PIECE ... --graph=F.json -o X.tdm [options]",
      description =
          "Makes one artifact of compiled models that a program composed while "
          "it ran. F.json is the run-time graph, as tdm_graph_write_json "
          "writes it. The linked program gives the gradients of the "
          "composition, from one plan. Nodes that cannot be taken in stay "
          "nodes of the run-time graph; it says which, and why.";

  std::string first, graph, output, model;
  std::vector<std::string> pieces;
  CompileFlags flags;

  void declare(OptionTable &table) {
    table.positionals("PIECE", first, pieces,
                      "a model that the graph calls (.mlir or .json), or its "
                      "artifact, X.tdm, with X.mlir or X.json beside it");
    table
        .text("graph", "F.json", graph,
              "the run-time graph that tdm_graph_write_json wrote")
        .required();
    table.text("o", "X.tdm", output, "where to write the artifact");
    table.text("model", "F.mlir", model,
               "where to write the linked model, at the phase capture");
    table.atLeastOneOf({"o", "model"});
    table.groupOf("compile");
    flags.declare(table);
  }
};
} // namespace

static Result<link::Piece> readPiece(Session &session,
                                     const std::string &path) {
  if (StringRef(path).ends_with(".tdm"))
    return modelBeside(session, path);
  if (isImported(path))
    return Status::usage("'" + path +
                         "': expected a model in .mlir or .json; 'tandem "
                         "compile --stop-after=capture' makes one of it");
  link::Piece piece;
  piece.path = path;
  piece.module = session.read(path);
  if (!piece.module)
    return session.status();
  piece.model = piece.module.get().getName().value_or("").str();
  return piece;
}

static Result<link::GraphFile> readGraph(const std::string &path) {
  if (Status status = artifact::expectNoDevice(path); !status)
    return status;
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/true);
  if (!buffer)
    return Status::failed("cannot read '" + path +
                          "': " + buffer.getError().message());
  StringRef text = (*buffer)->getBuffer();
  return link::readGraphFile(std::string_view(text.data(), text.size()), path);
}

static Status writeModel(ModuleOp module, const std::string &path) {
  std::string text;
  llvm::raw_string_ostream out(text);
  module.print(out, OpPrintingFlags().enableDebugInfo());
  out << '\n';
  return writeText(path, text);
}

/// Says what was taken in, and what was not.
static void report(const link::Linked &linked, const std::string &graph) {
  std::string text;
  for (const std::string &program : linked.programs)
    text += (text.empty() ? "'" : ", '") + program + "'";
  if (linked.ops)
    text += " and " + std::to_string(linked.ops) +
            (linked.ops == 1 ? " op" : " ops");
  std::fprintf(stderr, "linked %s of %s\n", artifact::forScreen(text).c_str(),
               artifact::inQuotes(graph).c_str());
  for (const link::LinkedInput &input : linked.inputs)
    std::fprintf(stderr, "input %s is %s\n",
                 artifact::inQuotes(input.name).c_str(),
                 artifact::forScreen(input.from).c_str());
  for (const link::Left &left : linked.left)
    std::fprintf(stderr, "note: %s stays a node: %s\n",
                 artifact::forScreen(left.node).c_str(),
                 artifact::forScreen(left.why).c_str());
}

static Status runLink(const LinkOptions &command) {
  CompileOptions options;
  if (Status s = command.flags.finishWhole(options); !s)
    return s;
  Files files;
  command.flags.declare(files, command.graph);
  for (const std::string &piece : command.pieces)
    files.reads("the piece", piece);
  files.writes({"-o", command.output, {io::FileKind::Artifact}});
  files.writes({"--model", command.model, {io::FileKind::Module}});
  if (Status s = files.check(command.flags.force); !s)
    return s;

  Session session(options);
  auto graph = readGraph(command.graph);
  if (!graph)
    return std::move(graph).status();
  std::vector<link::Piece> pieces;
  for (const std::string &path : command.pieces) {
    auto piece = readPiece(session, path);
    if (!piece)
      return std::move(piece).status();
    pieces.push_back(std::move(*piece));
  }
  auto linked = link::linkGraph(*graph, pieces, session.context());
  if (!linked)
    return std::move(linked).status().in(command.graph);
  report(*linked, command.graph);
  if (!command.model.empty())
    if (Status s = writeModel(*linked->module, command.model); !s)
      return s;
  if (command.output.empty())
    return Status::success();
  auto writer = session.artifact(std::move(linked->module), command.graph);
  return writer ? writer->write(command.output) : std::move(writer).status();
}

Command commands::linkCommand() {
  return commandOf<runLink>(
      "link", "make one artifact of models that were composed at run time");
}
