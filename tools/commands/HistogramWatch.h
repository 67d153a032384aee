//===- HistogramWatch.h - histograms of some steps of a training ----------===//
//
// Parameters are there between steps. Gradients and activations are not: no
// step gives them. So in the steps that are looked at the batch runs through
// 'forward' and 'backward' before it runs through 'step', with the parameters
// and states that the step will find, and what these programs write is put
// back. Other steps, and what is trained, are as they would be.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_COMMANDS_HISTOGRAMWATCH_H
#define TANDEM_TOOLS_COMMANDS_HISTOGRAMWATCH_H

#include "runtime/model/Model.h"
#include "tools/commands/Histogram.h"

namespace tandem::commands {

/// Fails with Usage unless `text` is an extended regular expression.
Status checkHistograms(std::string_view text);

class HistogramWatch {
public:
  /// Those that are called "param/NAME", "grad/NAME" (of a parameter) and
  /// "activation/NAME" (of an output, or of what the forward saves) and of
  /// whose names `regex` matches a part. Fails with Usage where it matches
  /// none.
  static Result<HistogramWatch> of(const artifact::Manifest &manifest,
                                   const std::string &regex, int64_t every);

  const std::vector<std::string> &names() const { return names_; }
  /// Whether step `number`, which counts from 1, is looked at: the first, and
  /// those that `every` divides.
  bool isDue(int64_t number) const {
    return number == 1 || number % every_ == 0;
  }
  /// Of the step that is to come, with this batch.
  Result<NamedHistograms> look(runtime::Model &model,
                               std::span<const runtime::Argument> inputs) const;

private:
  bool isWatched(const std::string &name) const;

  int64_t every_ = 1;
  std::vector<std::string> names_; ///< sorted
  bool needsForward_ = false, needsBackward_ = false;
};

} // namespace tandem::commands

#endif
