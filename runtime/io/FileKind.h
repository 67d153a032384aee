//===- FileKind.h - what a file is, by what is in it ----------------------===//
//
// Tells the kinds of files that the commands read and write apart, so that none
// is replaced by one of another kind. Looks at the beginning alone (of a
// safetensors file at the header), and never at the name.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_IO_FILEKIND_H
#define TANDEM_RUNTIME_IO_FILEKIND_H

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::io {

enum class FileKind : uint8_t {
  Missing,
  Special, ///< a device, a pipe, a folder: nothing that can be replaced
  Empty,   ///< or all zeros, as a loss of power leaves it
  Artifact,
  Checkpoint,      ///< safetensors that `train --save` wrote
  InitialValues,   ///< safetensors that `compile` wrote beside an artifact
  Safetensors,     ///< any other
  CheckpointIndex, ///< of a checkpoint in several files
  TensorIndex,     ///< any other index of safetensors files
  Npy,
  Npz,
  Onnx,
  Module, ///< MLIR that a phase of the compiler wrote
  Mlir,   ///< any other: somebody's source
  Graph,  ///< a model in JSON
  Log,    ///< lines of JSON of a training
  Profile,
  BudgetCurve,
  Schedules, ///< what --tune keeps
  Svg,
  Report, ///< a page of what was compiled
  Csv,
  Options,   ///< of a training, that it resolved
  Signature, ///< 64 bytes that are no text
  Other
};

FileKind fileKind(const std::string &path);

/// True for a safetensors file, whoever wrote it.
bool isSafetensors(FileKind kind);
/// True for an index of such files, whoever wrote it.
bool isIndex(FileKind kind);

/// Returns "an artifact", "a checkpoint", ...
std::string_view describe(FileKind kind);

/// The keys of a safetensors file's metadata by which its origin is known.
inline constexpr const char *checkpointKey = "tandem.epoch",
                            *initialValuesKey = "tandem.initial_values";

/// What a file of resolved options begins with.
inline constexpr std::string_view resolvedOptions =
    "# resolved options of tandem ";

/// What the page of a report begins with.
inline constexpr std::string_view reportBegin =
    "<!doctype html>\n<!-- A report of tandem ";

/// Returns the names of the arrays in an .npz or .safetensors file; none if it
/// cannot be read.
std::vector<std::string> arraysIn(const std::string &path);

} // namespace tandem::io

#endif
