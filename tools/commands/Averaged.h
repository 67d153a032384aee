//===- Averaged.h - averages in the place of parameters -------------------===//
#ifndef TANDEM_TOOLS_COMMANDS_AVERAGED_H
#define TANDEM_TOOLS_COMMANDS_AVERAGED_H

#include "tools/commands/Inputs.h"

namespace tandem::commands {

/// While it lives, parameters that have an average are that; then they have the
/// bits that they had.
class Averaged {
public:
  /// Fails with Usage where the model has no averages `average`.
  static Status check(const runtime::Model &model, const std::string &average);
  /// The model outlives it.
  static Result<Averaged> of(runtime::Model &model, const std::string &average);
  Averaged(Averaged &&other) noexcept
      : model_(other.model_), kept_(std::move(other.kept_)) {
    other.kept_.clear();
  }
  ~Averaged() { std::ignore = restore(); }

  /// Returns whether no update has made an average yet.
  bool none() const { return kept_.empty(); }
  Status restore();

private:
  explicit Averaged(runtime::Model &model) : model_(model) {}

  runtime::Model &model_;
  std::vector<NamedTensor> kept_;
};

} // namespace tandem::commands

#endif
