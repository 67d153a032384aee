//===- Failures.h - failures that were asked for --------------------------===//
#ifndef TANDEM_CUDA_EMULATOR_FAILURES_H
#define TANDEM_CUDA_EMULATOR_FAILURES_H

#include <array>
#include <cstdint>
#include <string_view>

namespace tandem::emulator {

class Failures {
public:
  /// What is counted until it fails.
  enum Kind {
    Allocate,
    Refuse,
    Launch,
    Lost,
    Module,
    Algorithm,
    Library,
    Fill,
    kKinds
  };

  /// Adds what a text of Control.h asks for, a list with commas; false if it
  /// is not understood.
  bool add(std::string_view text);
  void clear() { *this = Failures(); }

  /// Counts one of these; true if it is the one that fails.
  bool strikes(Kind kind) { return left[kind] && --left[kind] == 0; }

  int driverVersion = 0; ///< 0: as the machine has it
  int initResult = 0;    ///< what cuInit returns
  /// What the libraries say of themselves; 0: what they should be.
  int blasVersion = 0, dnnVersion = 0, ncclVersion = 0;

private:
  bool addOne(std::string_view text);

  std::array<uint64_t, kKinds> left = {}; ///< 0: never
};

} // namespace tandem::emulator

#endif
