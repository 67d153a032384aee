//===- Log.h - training as lines of JSON, or as a table -------------------===//
//
// One object a line, for each step and each evaluation. A resumed training
// continues the file. Where the file's name ends in .csv, the same as a table,
// whose columns of evaluations are called `eval.NAME`; what a line does not
// have is empty.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_COMMANDS_LOG_H
#define TANDEM_TOOLS_COMMANDS_LOG_H

#include "tools/commands/AppendedFile.h"
#include "tools/commands/Evaluation.h"
#include "tools/commands/EventFile.h"
#include "tools/commands/Histogram.h"

namespace tandem::commands {

class Log {
public:
  /// What becomes of what the file holds: lines are appended, or it goes with
  /// the first line (a training that fails before that leaves the log of
  /// another as it was), into a copy called PATH.N, N the first number that is
  /// free, or away.
  enum class Then { Append, Keep, Replace };

  /// `rate` is the learning rate, if it is known; `metrics` are the numbers of
  /// an evaluation, the columns of a table.
  Status open(const std::string &path, Then then, std::optional<double> rate,
              const std::vector<std::string> &metrics = {});

  /// Writes events of TensorBoard as well, or alone, as EventFile::open says.
  Status openEvents(const std::string &folder,
                    std::optional<int64_t> goesOnAfter) {
    return events_.open(folder, goesOnAfter);
  }

  /// The learning rate of the steps from here on.
  void setRate(std::optional<double> rate);

  /// `epoch` counts from 1; `steps` and `seconds` are all until now, the latter
  /// of this call; `more` are other fields, each after a comma. Without an open
  /// file nothing happens.
  void step(int64_t epoch, int64_t steps, const runtime::Tensor &loss,
            double seconds, const std::string &more = "");
  void evaluation(int64_t epoch, int64_t steps, const Evaluation &evaluation,
                  double seconds);
  /// In a table there are none.
  void histograms(int64_t epoch, int64_t steps,
                  const NamedHistograms &histograms, double seconds);

  /// All lines outlive a loss of power: a checkpoint is never ahead of its log.
  /// Where that fails a file is closed, and what comes after goes to nothing.
  Status sync();
  /// Fails too if sync() has failed before.
  Status close();

private:
  void writeEvents(const std::string &text);
  /// Writes `text`, an object, and a newline.
  void line(const std::string &text);
  void append(const std::string &text);
  /// The cells of an object.
  std::string cellsOf(const std::string &text) const;
  Status checkColumns() const;
  /// Copies what the file holds; false, and the file has failed, if that did.
  bool keep();

  std::string path_, rate_;
  std::vector<std::string> columns_; ///< of a table; none: lines of JSON
  AppendedFile file_;
  EventFile events_;
  Then then_ = Then::Append;
  bool isBegun_ = false; ///< a table's first line was looked for
};

/// Returns a name as JSON: printable, since the manifest was validated.
std::string jsonText(const std::string &name);
/// Of what is not finite null.
std::string jsonNumber(double value);

/// Returns the numbers of a line of JSON: those of an evaluation are called
/// "eval.NAME", and null is NaN. Of what is no such line, none.
std::vector<Scalar> scalarsOf(std::string_view line);

/// Cuts what a kill or a loss of power left of the last lines. Returns whether
/// there was any.
bool cutTornLine(const std::string &path);

/// Returns the step of the last line of a log that has one; nothing, if there
/// is no such file or line.
std::optional<int64_t> lastStepOf(const std::string &path);

} // namespace tandem::commands

#endif
