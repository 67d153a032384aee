//===- BackwardPrograms.h - programs whose backward writes ----------------===//
//
// What the tests of the rows B share: the text of a program over x, which
// requires grad, and a custom_vjp whose backward writes its cotangent into a
// ref.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TESTS_SEMANTICS_BACKWARDPROGRAMS_H
#define TANDEM_TESTS_SEMANTICS_BACKWARDPROGRAMS_H

#include "compiler/trace/CustomVjp.h"
#include "tests/semantics/Harness.h"

namespace tandem::test::backward {

/// The signature of a program over x, which requires grad, and more arguments.
inline std::string
graph(const std::string &arguments, const std::string &body,
      const std::string &results =
          R"(tensor<2xf32> {tandem.role = #tandem.role<output "o">})") {
  return R"(module attributes {tandem.phase = "capture"} {
    func.func @graph()" +
         arguments + ") -> (" + results + ") {" + body + "}}";
}

inline const std::string kX =
    R"(%x: tensor<2xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>})";
inline const std::string kXRef =
    R"(%x: !tandem.ref<2xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>})";
inline const std::string kS =
    R"(%s: !tandem.ref<2xf32> {tandem.role = #tandem.role<state "s" {init = {kind = "constant", value = 0.0}}>})";

/// o = x x, whose backward writes its cotangent into the ref.
inline std::string squareInto(const std::string &x, const std::string &ref,
                              const std::string &name = "%o") {
  return name + " = tandem.custom_vjp \"square\" (" + x + ") refs(" + ref +
         R"() forward {
      ^bb0(%a: tensor<2xf32>, %r: !tandem.ref<2xf32>):
        %y = tandem.mul %a, %a : tensor<2xf32>
        tandem.yield %y, %a : tensor<2xf32>, tensor<2xf32>
    } backward {
      ^bb0(%a: tensor<2xf32>, %dy: tensor<2xf32>, %r: !tandem.ref<2xf32>):
        tandem.write %dy into %r : tensor<2xf32>, !tandem.ref<2xf32>
        %two = tandem.add %a, %a : tensor<2xf32>
        %dx = tandem.mul %dy, %two : tensor<2xf32>
        tandem.yield %dx : tensor<2xf32>
    } {backward_writes = array<i64: 0>} : (tensor<2xf32>), (!tandem.ref<2xf32>) -> tensor<2xf32>
)";
}

inline Tensor input(Trace &t, const std::string &name = "x") {
  return t.input(name, {2}, DType::F32, {.requiresGrad = true});
}

inline Tensor squareInto(const Tensor &x, const Tensor &ref) {
  return customVjp(
      "square", {x}, {ref},
      [](const Tensors &in, const Tensors &, Saver &saver) -> Tensors {
        saver.save(in[0]);
        return {in[0] * in[0]};
      },
      [](const Tensors &saved, const Tensors &dy,
         const Tensors &refs) -> Tensors {
        refs[0].copy_(dy[0]);
        return {dy[0] * (saved[0] + saved[0])};
      })[0];
}

/// B02: the input that requires grad is written.
inline Source inputWritten() {
  static const std::string text =
      graph(kXRef, "%v = tandem.read %x : !tandem.ref<2xf32>\n" +
                       squareInto("%v", "%x") + "return %o : tensor<2xf32>");
  return {text.c_str(), [](Trace &t) {
            Tensor x = input(t);
            t.output("o", squareInto(x, x));
          }};
}

} // namespace tandem::test::backward

#endif
