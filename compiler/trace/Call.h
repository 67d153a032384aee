//===- Call.h - calls of functions by name --------------------------------===//
//
// What docs/functions.md lists, for traced programs:
//
//     Tensor y = call("leaky_relu", {x}, {{"negative_slope", 0.1}})[0];
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_TRACE_CALL_H
#define TANDEM_COMPILER_TRACE_CALL_H

#include "compiler/trace/Tensor.h"

#include <string>
#include <variant>

namespace tandem {

/// A number, a flag, a text or a list of numbers.
class AttributeValue {
public:
  using Kinds = std::variant<bool, int64_t, double, std::string, Shape,
                             std::vector<double>>;
  AttributeValue(bool value) : value(value) {}
  AttributeValue(int value) : value(int64_t(value)) {}
  AttributeValue(int64_t value) : value(value) {}
  AttributeValue(double value) : value(value) {}
  AttributeValue(const char *value) : value(std::string(value)) {}
  AttributeValue(std::string value) : value(std::move(value)) {}
  AttributeValue(Shape value) : value(std::move(value)) {}
  AttributeValue(std::vector<double> value) : value(std::move(value)) {}

  Kinds value;
};

struct NamedValue {
  std::string name;
  AttributeValue value;
};

/// Calls `function`; a default Tensor is an operand that is left out. After a
/// mistake the results are invalid tensors, more than any function has.
std::vector<Tensor> call(const std::string &function,
                         const std::vector<Tensor> &operands,
                         const std::vector<NamedValue> &attributes = {},
                         Where where = Where::current());

} // namespace tandem

#endif
