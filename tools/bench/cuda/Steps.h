//===- Steps.h - programs one after the other, each with a time limit -----===//
//
// What gpu-check runs. A file of steps has a line for each:
//
//   [!|?]KIND/NAME SECONDS WORD...
//
// which is a command and how long it may take. `!`: without it the others make
// no sense, so that they are left out where it fails. `?`: of use where it
// works (a tool of the vendor, PyTorch), and no failure where it does not. In
// the words @device stands for the device and @out for the folder of logs.
// Empty lines and those that begin with # count for nothing.
//
// Results are lines of JSON (docs/schemas/gpu-check.schema.json), written when
// a step has ended, so that those of a run that is cut count.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_BENCH_CUDA_STEPS_H
#define TANDEM_TOOLS_BENCH_CUDA_STEPS_H

#include "runtime/artifact/Status.h"

#include <string>
#include <string_view>
#include <vector>

namespace tandem::gpu {

struct Step {
  enum class Need { Plain, First, Optional };
  Need need = Need::Plain;
  std::string name;
  double limit = 0; ///< seconds
  std::vector<std::string> words;
};

/// Reads the text of a file of steps; a message names each line that is wrong.
Result<std::vector<Step>> parseSteps(std::string_view text);

/// How a program ended.
struct Ended {
  enum class How { Exit, Signal, TimeOut, Missing } how = How::Exit;
  int code = 0; ///< that of the exit, or the signal's number
  double seconds = 0;
  bool isStuck = false; ///< it was killed and did not end
};

/// Runs a program with its outputs in files, for at most `limit` seconds. Then
/// it is killed with all that it started.
Ended runProgram(const std::vector<std::string> &words, double limit,
                 const std::string &outputFile, const std::string &errorFile);

struct StepsOptions {
  std::string device, file; ///< results are appended to `file`
  double minutes = 8;
  std::string only; ///< steps whose names this expression finds; empty: all
};

/// Runs the steps of the file `steps` in the current folder. Fails where a step
/// did that is not optional.
Status runSteps(const StepsOptions &options);

} // namespace tandem::gpu

#endif
