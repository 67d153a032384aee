//===- CallPrograms.h - programs for rows that only calls have ------------===//
#ifndef TANDEM_TESTS_SEMANTICS_CALLPROGRAMS_H
#define TANDEM_TESTS_SEMANTICS_CALLPROGRAMS_H

#include "tests/semantics/Harness.h"

#include <numeric>

namespace tandem::test::calls {

/// x += x, and o = sin(x); the write is visible, in no_grad, or detached.
inline Source doubling(const char *kind, std::string &text) {
  std::string mode = kind;
  text = R"(
    module attributes {tandem.phase = "capture"} {
      func.func @graph(%x: !tandem.ref<2xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>})
          -> (tensor<2xf32> {tandem.role = #tandem.role<output "o">}) {
        %d = DETACH
        %0 = tandem.read %d MODE : !tandem.ref<2xf32>
        %1 = tandem.add %0, %0 MODE : tensor<2xf32>
        tandem.write %1 into %d MODE : tensor<2xf32>, !tandem.ref<2xf32>
        %2 = tandem.read %x : !tandem.ref<2xf32>
        %o = tandem.sin %2 : tensor<2xf32>
        return %o : tensor<2xf32>
      }
    })";
  auto replace = [&](const std::string &from, const std::string &to) {
    for (size_t at = text.find(from); at != std::string::npos;
         at = text.find(from))
      text.replace(at, from.size(), to);
  };
  replace("DETACH", mode == "detached"
                        ? "tandem.detach %x : !tandem.ref<2xf32>"
                        : "tandem.reshape %x to [2] : !tandem.ref<2xf32> -> "
                          "!tandem.ref<2xf32>");
  replace("MODE", mode == "no_grad" ? "{tandem.no_grad}" : "");
  return {text.c_str(), [=](Trace &t) {
            Tensor x = t.input("x", {2}, DType::F32, {.requiresGrad = true});
            if (mode == "no_grad") {
              NoGradScope scope = t.noGrad();
              x.add_(x);
            } else if (mode == "detached") {
              x.detach().add_(x.detach());
            } else {
              x.add_(x);
            }
            t.output("o", sin(x));
          }};
}

/// o = x * x, which keeps x for its backward.
inline const Source squaring{R"(
    module attributes {tandem.phase = "capture"} {
      func.func @graph(%x: tensor<2xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>})
          -> (tensor<2xf32> {tandem.role = #tandem.role<output "o">}) {
        %o = tandem.mul %x, %x : tensor<2xf32>
        return %o : tensor<2xf32>
      }
    })",
                             [](Trace &t) {
                               Tensor x = t.input("x", {2}, DType::F32,
                                                  {.requiresGrad = true});
                               t.output("o", x * x);
                             }};

/// 0, 1, ..., n - 1.
inline Numbers upTo(int64_t n) {
  Numbers numbers(n);
  std::iota(numbers.begin(), numbers.end(), 0.0);
  return numbers;
}

/// A07: x is written, and y is declared to be the same memory.
inline Source declaredAliasOfAWrittenInput() {
  return {R"(
    module attributes {tandem.phase = "capture"} {
      func.func @graph(%x: !tandem.ref<2xf32> {tandem.role = #tandem.role<input "x">},
                       %y: !tandem.ref<2xf32> {tandem.role = #tandem.role<input "y" {alias = {of = "x", views = []}}>})
          -> (tensor<2xf32> {tandem.role = #tandem.role<output "o">}) {
        %0 = tandem.read %x : !tandem.ref<2xf32>
        %1 = tandem.add %0, %0 : tensor<2xf32>
        tandem.write %1 into %x : tensor<2xf32>, !tandem.ref<2xf32>
        %2 = tandem.read %y : !tandem.ref<2xf32>
        %o = tandem.mul %2, %2 : tensor<2xf32>
        return %o : tensor<2xf32>
      }
    })",
          [](Trace &t) {
            Tensor x = t.input("x", {2});
            Tensor y =
                t.alias("y", "x", [](const Tensor &base) { return base; });
            x.add_(x);
            t.output("o", y * y);
          }};
}

} // namespace tandem::test::calls

#endif
