//===- WriteText.cpp - a file of text, whole or not at all ----------------===//
#include "tools/tandem/WriteText.h"

#include "runtime/artifact/AtomicFile.h"

namespace tandem {

Status commands::writeText(const std::string &path, const std::string &text) {
  auto file = artifact::AtomicFile::create(path);
  if (!file)
    return file.status();
  Status status = file->write(text.data(), text.size());
  return status ? file->commit() : status;
}

} // namespace tandem
