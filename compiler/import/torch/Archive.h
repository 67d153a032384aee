//===- Archive.h - the files of a torch.export archive --------------------===//
//
// Reads what torch.export.save writes: a zip file with a graph in JSON and the
// weights beside it. Both layouts are known: that of PyTorch 2.8 and later
// (`models/model.json`, `data/weights/...`), and the one before
// (`serialized_exported_program.json`), whose weights are files of torch.save.
// No pickle is run (SavedTensors.h).
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_IMPORT_TORCH_ARCHIVE_H
#define TANDEM_COMPILER_IMPORT_TORCH_ARCHIVE_H

#include "compiler/import/torch/Program.h"
#include "runtime/artifact/Status.h"

namespace tandem::torch {

/// Reads an archive. Whatever is wrong with its form is in the status.
Result<Program> readArchive(const std::string &path);

/// Reads the JSON of a program; `path` is for messages.
Result<Program> readProgram(std::string_view json, const std::string &path);

} // namespace tandem::torch

#endif
