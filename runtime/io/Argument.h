//===- Argument.h - NAME=VALUE on a command line --------------------------===//
//
// What `--input`, `--data` and `--output` take: NAME=@FILE.npy,
// NAME=@FILE.npz[:MEMBER], NAME=@FILE.safetensors[:TENSOR],
// NAME=@FILE.csv[:COLUMNS], or, to read, a scalar written out: NAME=3.5,
// tokens, folders of images, tars of samples, and tables of Parquet and Arrow.
// Without a member an .npz or .safetensors file gives its array NAME, or its
// only one; a table its column NAME, or all.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_IO_ARGUMENT_H
#define TANDEM_RUNTIME_IO_ARGUMENT_H

#include "runtime/io/Npz.h"

namespace tandem::io {

/// A NAME=VALUE argument, taken apart.
struct Argument {
  /// Tokens: numbers one behind the other, of the type that `member` says.
  /// Images: a folder, of which `member` says what becomes of them. Tar: the
  /// files of one ending, which `member` begins with, in tars. Table: columns
  /// of Parquet and Arrow files.
  enum class Kind {
    Scalar,
    Npy,
    Npz,
    Safetensors,
    Csv,
    Tokens,
    Images,
    Tar,
    Table
  };
  std::string name;
  Kind kind = Kind::Scalar;
  std::string text;   ///< the scalar, or the path
  std::string member; ///< may be empty

  /// Returns the paths that it names: of tars and tables one for each of
  /// {000..003} and {a,b} in `text`, in this order.
  std::vector<std::string> paths() const;
  /// Returns what the user wrote after '=', in quotes.
  std::string where() const;
};

/// Returns where the name of NAME=VALUE ends: at the '=' before a file's '@',
/// for a name may have one too, else at the first; npos if there is none.
size_t endOfName(std::string_view text);

/// Takes `text` apart; fails with Usage if it has no '=', an empty name or
/// value, or a file whose extension is none of these.
Result<Argument> parseArgument(std::string_view text);

/// True for a file whose name says that it is Parquet or Arrow.
bool isTableName(std::string_view path);

/// Reads the array that a file argument names; a scalar becomes `scalarType`.
/// Messages begin with `where()`. `check` is asked before a member of an
/// archive is unpacked.
Result<Array> readArgument(const Argument &argument, artifact::DType scalarType,
                           const ArrayCheck &check = {});

/// Fails with Usage if an array cannot be written where `argument` says: if it
/// is a scalar, or a member of an .npz archive whose name, as a path, would
/// leave the folder that the archive is unpacked into.
Status checkPlace(const Argument &argument);

/// A result and the place where it goes.
struct OutputFile {
  Argument argument;
  ArrayView array;
};

/// Writes each array where its argument says; those for one file go into it
/// together. An archive is replaced, but where an argument names a member of it
/// the other arrays that it holds stay. Fails with Usage, before anything is
/// written, if `checkPlace` does or two name the same place.
Status writeArguments(std::span<const OutputFile> outputs);

} // namespace tandem::io

#endif
