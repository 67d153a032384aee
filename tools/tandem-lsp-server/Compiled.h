//===- Compiled.h - what the compiler makes of a file, for an editor ------===//
#ifndef TANDEM_TOOLS_LSP_COMPILED_H
#define TANDEM_TOOLS_LSP_COMPILED_H

#include "llvm/Support/JSON.h"
#include "llvm/Support/Program.h"

#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace tandem::editor {

/// Compiles files by `tandem inspect --json`, one at a time, in a process of
/// its own: neither a crash nor a large model gets in the way of the editor.
/// Several threads may call it.
class Compiled {
public:
  /// `tandem` is the program's path.
  explicit Compiled(std::string tandem);
  Compiled(const Compiled &) = delete;
  ~Compiled() { end(); }

  /// Compiles nothing from here on, and ends what is being compiled.
  void end();
  /// What `inspect` gets with each file, as `--optimizer=adamw`.
  void setOptions(std::vector<std::string> options);

  /// Returns what is to be said of the op at `line` and `column` (from 1) in
  /// the file, as markdown. `text` is what the editor has of it: that a file
  /// has to be saved first, or is being compiled, is said, too.
  std::string describe(const std::string &file, const std::string &text,
                       unsigned line, unsigned column);

private:
  struct Facts {
    std::string text;  ///< of the file that was compiled
    std::string error; ///< why there are none
    llvm::json::Value json = nullptr;
  };

  void serve();
  Facts compile(const std::string &file);
  int wait(const llvm::sys::ProcessInfo &process, std::string &reason);

  const std::string tandem;
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::string> options;
  std::map<std::string, Facts> known;
  std::string wanted; ///< the file that is compiled next
  bool isOver = false;
  std::thread thread;
};

/// Returns what `inspect --json` says of the op at this place of a model, as
/// markdown; empty where it says nothing.
std::string describeOp(const llvm::json::Value &inspected, unsigned line,
                       unsigned column);

} // namespace tandem::editor

#endif
