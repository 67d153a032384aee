//===- Expected.h - the cases that are known not to pass ------------------===//
//
// The list in tests/onnx/expected.txt: a reason that begins in the first
// column, and below it, indented, the cases that it is about ("node/test_x",
// or "node/test_x*" for all that begin so). Lines that begin with # say
// nothing.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_ONNX_EXPECTED_H
#define TANDEM_TOOLS_ONNX_EXPECTED_H

#include "runtime/artifact/Status.h"

#include <string>
#include <vector>

namespace tandem::onnx {

class Expected {
public:
  struct Reason {
    std::string text;
    std::vector<std::string> cases;
  };
  static Result<Expected> read(const std::string &path);

  /// The reason why `name` need not pass; null if there is none.
  const Reason *find(const std::string &name) const;
  const std::vector<Reason> &reasons() const { return reasons_; }

private:
  std::vector<Reason> reasons_;
};

} // namespace tandem::onnx

#endif
