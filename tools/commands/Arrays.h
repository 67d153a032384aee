//===- Arrays.h - the arrays of a command line ----------------------------===//
//
// NAME=@FILE arguments, read as they are in the files, and the rules by which
// their numbers become those of the model (`--cast`). What is many batches long
// stays in its own type and is converted batch by batch.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_COMMANDS_ARRAYS_H
#define TANDEM_TOOLS_COMMANDS_ARRAYS_H

#include "runtime/io/Cast.h"
#include "runtime/io/File.h"
#include "tools/commands/Inputs.h"

namespace tandem::commands {

/// The rules of `--cast=[NAME=]RULE`.
class Casts {
public:
  void declare(OptionTable &options);
  /// Reads what was given, for the inputs of `manifest`. Fails with Usage,
  /// naming every rule that is wrong.
  Status parse(const artifact::Manifest &manifest);
  /// Returns the rule for `name`: its own, else the one without a name.
  io::Cast of(std::string_view name) const;

private:
  std::vector<std::string> texts_;
  std::vector<std::pair<std::string, io::Cast>> rules_;
};

class RowSource;

struct NamedArray {
  std::string name;
  io::Array array;
  io::Cast cast = {};
  std::string file = {}; ///< empty: it is of none
  /// Of a file that is mapped, and not read: its elements, in place of those of
  /// `array`, and what keeps them.
  io::Bytes mapped = {};
  std::shared_ptr<const void> memory = {};
  /// Of labels that are folders: what each number is.
  std::vector<std::string> classes = {};
  /// Of what is neither in memory nor mapped, and has no view: makes its rows.
  std::shared_ptr<const RowSource> rows = {};
  /// Of rows of tars: a sum of their samples' names.
  std::optional<uint32_t> samples = {};

  io::ArrayView view() const {
    return memory ? io::ArrayView(array.dtype, array.shape, mapped)
                  : io::ArrayView(array);
  }
  /// Of a mapped file: gives the memory back that reading it took; and has the
  /// system read `count` bytes from `first` on while something else is done.
  void release() const;
  void readAhead(int64_t first, int64_t count) const;
  /// Makes `piece` the elements behind it, or the first ones where it is empty,
  /// and returns whether there are any. Of a mapped file they are some, and
  /// what was read before is released.
  bool nextPiece(io::Bytes &piece) const;
  /// Returns the number of a piece's first element.
  int64_t firstOf(io::Bytes piece) const {
    return (piece.data() - view().bytes.data()) /
           artifact::byteSize(array.dtype);
  }
};

/// Reads arguments of the option `option` ("--data") as they are; scalars in
/// the type of the model's value of their name. A table whose rows have as many
/// columns as the value's rows have elements gets their shape. All problems are
/// reported at once.
Result<std::vector<NamedArray>>
readArrays(const std::vector<std::string> &texts, const std::string &option,
           const artifact::Manifest &manifest, const Casts &casts = {});

/// The same as tensors of the types of the model's values; what has no value
/// stays as it is.
Result<std::vector<NamedTensor>>
readTensors(const std::vector<std::string> &texts, const std::string &option,
            const artifact::Manifest &manifest, const Casts &casts = {});

/// Returns what is wrong with the numbers of an array, or of its piece from
/// element `first` on, for the model's value: they cannot be converted, or are
/// no labels or indices that it takes. Adds to `notes`, if there are none, what
/// the user should know.
Status checkNumbers(const io::ArrayView &array, const artifact::Value &value,
                    const io::Cast &cast, std::vector<std::string> &notes,
                    int64_t first = 0);

} // namespace tandem::commands

#endif
