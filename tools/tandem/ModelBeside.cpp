//===- ModelBeside.cpp - what an artifact was compiled from ---------------===//
#include "tools/tandem/ModelBeside.h"
#include "runtime/artifact/ArtifactReader.h"

#include "llvm/Support/FileSystem.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::commands;

Result<link::Piece> commands::modelBeside(Session &session,
                                          const std::string &path) {
  auto reader = artifact::ArtifactReader::open(path);
  if (!reader)
    return std::move(reader).status();
  const artifact::Manifest &manifest = reader->manifest();
  link::Piece piece;
  piece.path = path;
  piece.model = manifest.model;
  StringRef name = path;
  name.consume_back(".tdm");
  std::string base = name.str();
  for (const char *extension : {".mlir", ".json"}) {
    std::string beside = base + extension;
    if (!llvm::sys::fs::exists(beside))
      continue;
    auto module = session.read(beside);
    if (!module)
      return session.status();
    if (!manifest.graph.empty() && !link::hasDigest(*module, manifest.graph)) {
      piece.why = "'" + path + "' was not compiled from '" + beside + "'";
      continue;
    }
    piece.module = std::move(module);
    return piece;
  }
  if (piece.why.empty())
    piece.why = "no model lies beside '" + path + "', as '" + base +
                ".mlir' or '" + base + ".json'";
  return piece;
}
