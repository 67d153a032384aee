//===- ApiNodes.h - what tests of the graph's public API share ------------===//
//
// Leaves, and functions that note when they run. Everything is made through
// graph.hpp.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TESTS_RUNTIME_GRAPH_APINODES_H
#define TANDEM_TESTS_RUNTIME_GRAPH_APINODES_H

#include "runtime/graph.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>

namespace tdm::testing {

using Log = std::vector<std::string>;
using Floats = std::vector<float>;

inline Tensor tensor(const Floats &values, std::vector<int64_t> shape) {
  Tensor made = Tensor::zeros(TDM_F32, shape);
  check(tdm_tensor_write(made.get(), values.data(),
                         values.size() * sizeof(float)));
  return made;
}
inline Tensor scalar(float value) { return tensor({value}, {}); }
inline Tensor numbers(const Floats &values) {
  return tensor(values, {static_cast<int64_t>(values.size())});
}
inline Tensor leaf(const Floats &values) {
  return numbers(values).setRequiresGrad(true);
}
inline Tensor leaf(float value) { return scalar(value).setRequiresGrad(true); }

inline Floats valuesOf(const Tensor &tensor) {
  if (!tensor.defined())
    return {};
  Floats values(static_cast<size_t>(tdm_tensor_elements(tensor.get())));
  check(tdm_tensor_read(tensor.get(), values.data(),
                        values.size() * sizeof(float)));
  return values;
}
inline Floats gradient(const Tensor &of) { return valuesOf(gradientOf(of)); }

/// The message of what `fn` throws, or "".
template <typename Fn> std::string messageOf(Fn fn) {
  try {
    fn();
    return "";
  } catch (const Error &error) {
    return error.what();
  }
}
inline void expectMessage(const std::string &message, const std::string &part) {
  EXPECT_NE(message.find(part), std::string::npos) << message;
}

/// The backward of what gives its gradient to all its inputs.
inline void passOn(Node &, const TensorList &gradients, TensorList &results) {
  for (Tensor &result : results)
    result = gradients[0];
}

/// A function that notes its name when its backward runs, and gives its
/// gradient to all its inputs.
inline Function noting(Log &log, const std::string &name) {
  return {name,
          [](Node &, const TensorList &inputs, TensorList &outputs) {
            outputs[0] = inputs.empty() ? scalar(1) : scale(inputs[0], 1);
          },
          [&log, name](Node &node, const TensorList &gradients,
                       TensorList &results) {
            log.push_back(name);
            passOn(node, gradients, results);
          }};
}
inline Tensor noted(Log &log, const std::string &name,
                    const TensorList &inputs) {
  return call(noting(log, name), inputs)[0];
}

} // namespace tdm::testing

#endif
