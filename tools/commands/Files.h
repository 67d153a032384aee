//===- Files.h - no output replaces what it should not --------------------===//
//
// A command says which files it reads and which it writes; `check`, before any
// work, refuses what would be lost: an output over an input, over another
// output, or over a file of another kind than the output's. Files are compared
// by device and inode, and those that do not exist yet by their canonical path,
// so that links and spellings do not matter. --force allows all but two outputs
// in one file. Devices and pipes may be anything.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_COMMANDS_FILES_H
#define TANDEM_TOOLS_COMMANDS_FILES_H

#include "runtime/artifact/Status.h"
#include "runtime/io/Argument.h"
#include "runtime/io/FileKind.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::commands {

/// A file that a command writes.
struct OutputPath {
  std::string who;  ///< the option, as messages name it: "--save"
  std::string path; ///< empty: there is none, and nothing is checked
  /// What may be replaced, beside an empty file.
  std::vector<io::FileKind> replaces;
  /// The option whose file this one goes on with, and may replace.
  std::string goesOnWith = {};
  /// Written where it lies, and not replaced whole.
  bool inPlace = false;
};

class Files {
public:
  /// `who`, an option or argument, reads `path` (empty: no file).
  void reads(std::string who, const std::string &path);
  /// The files of NAME=@FILE arguments of `option`.
  void readsArguments(const std::string &option,
                      const std::vector<std::string> &texts);

  void writes(OutputPath output);
  /// Beside its output `path` (empty: none), `who` replaces and removes files
  /// called as its kept checkpoints are (Kept.h), but none that is read by
  /// `goesOnWith`.
  void keeps(std::string who, const std::string &path, std::string goesOnWith);
  /// NAME=@FILE arguments: arrays, each in a file or in an archive. With a
  /// member an array is added to its archive, else the archive is replaced.
  void writesArguments(const std::string &option,
                       const std::vector<std::string> &texts);
  /// Files of new names are made in `folder` (empty: none).
  void writesNewFiles(const std::string &folder);
  /// Modules of phases or passes, FOLDER/MODEL.NN.PHASE.mlir (empty: none).
  void writesDumps(std::string who, const std::string &folder);

  /// Fails with Usage, naming all that would be lost, or that --force has no
  /// effect: there is no output, and `isForced` says that it has no other use;
  /// or, if an output cannot be written, with the reason.
  Status check(bool force, bool isForced = false) const;

  /// The paths that were said to be read, written, and made files in.
  std::vector<std::string> inputs() const;
  std::vector<std::string> outputs() const;
  const std::vector<std::string> &outputFolders() const { return folders_; }

private:
  struct Input {
    std::string who, path, id;
    std::string member = {}; ///< of an archive
    bool isArray = false;    ///< read as NAME=@FILE
  };
  struct Output : OutputPath {
    std::string id;
    /// Where the file is an archive of arrays: those that are written.
    std::vector<std::string> members;
    std::optional<io::FileKind> archive;
    bool adds = false; ///< to the arrays that are there
  };

  void checkKind(const Output &output, std::vector<std::string> &lost) const;
  void checkArchive(const Output &output, std::vector<std::string> &lost) const;
  struct Dumps {
    std::string who, folder;
  };
  void checkDumps(const Dumps &dumps, std::vector<std::string> &lost) const;
  struct Kept {
    std::string who, path, goesOnWith;
  };
  void checkKept(const Kept &kept, std::vector<std::string> &lost,
                 std::vector<std::string> &problems) const;

  std::vector<Input> inputs_;
  std::vector<Output> outputs_;
  std::vector<Dumps> dumps_;
  std::vector<Kept> kept_;
  std::vector<std::string> folders_;
};

} // namespace tandem::commands

#endif
