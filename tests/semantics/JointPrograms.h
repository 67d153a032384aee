//===- JointPrograms.h - programs that are differentiated -----------------===//
//
// What the tests of the rows J share: the text of programs of two-element
// tensors, and a custom_vjp of one input whose two regions are given.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TESTS_SEMANTICS_JOINTPROGRAMS_H
#define TANDEM_TESTS_SEMANTICS_JOINTPROGRAMS_H

#include "compiler/trace/CustomVjp.h"
#include "tests/semantics/Harness.h"

namespace tandem::test::joint {

inline const char *const kTwo = "tensor<2xf32>";

inline std::string role(const std::string &text) {
  return " {tandem.role = #tandem.role<" + text + ">}";
}
inline std::string argument(const std::string &name, const std::string &text,
                            const std::string &type = kTwo) {
  return name + ": " + type + role(text);
}
inline std::string output(const std::string &name,
                          const std::string &type = kTwo) {
  return type + role("output \"" + name + "\"");
}
/// A program of two-element tensors; `body` ends with what is returned.
inline std::string graph(const std::string &arguments,
                         const std::string &results, const std::string &body) {
  return R"(module attributes {tandem.phase = "capture"} { func.func @graph()" +
         arguments + ") -> (" + results + ") {\n" + body + "}}";
}
inline const std::string kX = argument("%x", "input \"x\" {requires_grad}");
inline const std::string kW =
    argument("%w", "param \"w\" {requires_grad, init = {kind = \"constant\", "
                   "value = 1.0}}");

inline Tensor input(Trace &t, const std::string &name = "x") {
  return t.input(name, {2}, DType::F32, {.requiresGrad = true});
}
inline Tensor param(Trace &t, const std::string &name = "w") {
  return t.parameter(name, {2}, Init::constant(1));
}

/// A custom op of one input and one result whose two regions are functions.
inline Tensor
custom(const Tensor &x, std::function<Tensor(const Tensor &)> forward,
       std::function<Tensor(const Tensor &dy, const Tensor &x)> backward,
       CustomVjpOptions options = {}) {
  return customVjp(
      "f", {x}, {},
      [forward](const Tensors &in, const Tensors &, Saver &saver) -> Tensors {
        saver.save(in[0]);
        return {forward(in[0])};
      },
      [backward](const Tensors &saved, const Tensors &dy, const Tensors &)
          -> Tensors { return {backward(dy[0], saved[0])}; },
      options)[0];
}
inline std::string custom(const std::string &result, const std::string &x,
                          const std::string &forward,
                          const std::string &backward,
                          const std::string &attributes = "") {
  return result + " = tandem.custom_vjp \"f\" (" + x + R"() forward {
      ^bb0(%a: tensor<2xf32>):
        )" +
         forward +
         R"(
        tandem.yield %y, %a : tensor<2xf32>, tensor<2xf32>
    } backward {
      ^bb0(%a: tensor<2xf32>, %dy: tensor<2xf32>):
        )" +
         backward + "\n} " + attributes +
         " : (tensor<2xf32>), () -> tensor<2xf32>\n";
}

} // namespace tandem::test::joint

#endif
