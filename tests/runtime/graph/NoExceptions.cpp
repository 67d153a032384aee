//===- NoExceptions.cpp - graph.hpp without exceptions --------------------===//
//
// A program that is compiled with -fno-exceptions: gradients, hooks and
// functions, and errors of calls, of callbacks and of wrong results, which wait
// for takeError().
//
//===----------------------------------------------------------------------===//
#include "runtime/graph.hpp"

#include <cstdio>
#include <cstring>

#if defined(__cpp_exceptions)
#error "this file is compiled with -fno-exceptions"
#endif

namespace {

int failures = 0;

void expect(bool holds, const char *what) {
  if (holds)
    return;
  std::printf("FAILED: %s\n", what);
  ++failures;
}

/// The first error is taken, and it was this one.
void expectError(tdm_status status, const char *part) {
  tdm::Error error = tdm::takeError();
  expect(error.status == status && std::strstr(error.what(), part), part);
  expect(!tdm::takeError(), "it is taken once");
}

tdm::Tensor leaf(float value) {
  tdm::Tensor made = tdm::Tensor::zeros(TDM_F32, {});
  *made.data<float>() = value;
  made.setRequiresGrad();
  return made;
}

void testGradients() {
  tdm::Tensor w = leaf(3);
  int calls = 0;
  tdm::addHook(w, [&](tdm::Tensor &gradient) {
    ++calls;
    gradient = tdm::scale(gradient, 2);
  });
  tdm::Function square{"square",
                       [](tdm::Node &node, const tdm::TensorList &inputs,
                          tdm::TensorList &outputs) {
                         node.save(inputs[0]);
                         outputs[0] = tdm::mul(inputs[0], inputs[0]);
                       },
                       [](tdm::Node &node, const tdm::TensorList &gradients,
                          tdm::TensorList &results) {
                         results[0] = tdm::scale(
                             tdm::mul(gradients[0], node.saved(0)), 2);
                       }};
  tdm::backward({tdm::call(square, {w})[0]});
  expect(!tdm::takeError(), "no error");
  expect(*tdm::gradientOf(w).data<float>() == 12, "the gradient");
  expect(calls == 1, "the hook");
}

void testErrors() {
  tdm::Tensor w = leaf(3);
  // Of a call; what follows it does not replace it.
  tdm::Tensor wrong = tdm::mul(w, tdm::Tensor::zeros(TDM_F32, {2}));
  expect(!wrong.defined(), "a call that failed gives an empty handle");
  tdm::backward({wrong});
  expectError(TDM_USAGE, "'mul'");
  // Of a hook, which ends the backward; an error from before stays first.
  bool fails = true;
  tdm::addHook(w, [&](tdm::Tensor &) {
    if (fails)
      tdm::fail(tdm::Error(TDM_UNSUPPORTED, "of the hook"));
  });
  tdm::Tensor y = tdm::scale(w, 2);
  tdm::backward({y}, {}, TDM_RETAIN_GRAPH);
  expectError(TDM_UNSUPPORTED, "of the hook");
  expect(!tdm::gradientOf(w).defined(), "nothing was collected");
  tdm::mul(w, tdm::Tensor::zeros(TDM_F32, {2}));
  tdm::backward({y}, {}, TDM_RETAIN_GRAPH);
  expectError(TDM_USAGE, "'mul'");
  // Of a call in a hook, and of a function that gives a wrong number.
  fails = false;
  tdm::Tensor two = tdm::call(
      {"two",
       [](tdm::Node &, const tdm::TensorList &inputs,
          tdm::TensorList &outputs) { outputs[0] = tdm::scale(inputs[0], 1); },
       [](tdm::Node &, const tdm::TensorList &, tdm::TensorList &results) {
         results.resize(2);
       }},
      {w})[0];
  tdm::backward({two});
  expectError(TDM_FAILED, "expected 1 tensors but got 2");
  tdm::backward({y});
  expect(!tdm::takeError(), "the engine goes on");
  expect(*tdm::gradientOf(w).data<float>() == 2, "the gradient");
  // Of a model.
  tdm::Model model("there-is-no-such-file.tdm");
  expect(!model.get(), "a model that is not there");
  expect(static_cast<bool>(tdm::takeError()), "its error");
}

} // namespace

int main() {
  testGradients();
  testErrors();
  return failures ? 1 : 0;
}
