//===- Partitioned.h - what a partition chose, for tests ------------------===//
#ifndef TANDEM_TESTS_PARTITION_PARTITIONED_H
#define TANDEM_TESTS_PARTITION_PARTITIONED_H

#include "compiler/trace/Functions.h"

#include <functional>
#include <string>
#include <vector>

namespace tandem::test {

/// What crosses from forward to backward, and the work in both.
struct Partitioned {
  /// "NAME: TYPE" of each saved value, but for those that an output holds.
  std::vector<std::string> saved;
  /// Of `saved`.
  int64_t savedBytes = 0;
  /// Contractions of the joint, and of forward and backward together.
  int contractions = 0, contractionsAfter = 0;
  /// The ops of the backward that the forward has too, as the module's report
  /// says.
  std::vector<std::string> repeated;

  bool repeats(const std::string &op) const;
};

/// Compiles a traced program for `target` until it is divided. Fails the test
/// if that fails.
Partitioned partition(const std::function<void(Trace &)> &program,
                      const std::string &target = "cpu",
                      const std::string &kind = "min-cut");

} // namespace tandem::test

#endif
