//===- Anchors.cpp - the code of kernels around one op --------------------===//
#include "passes/lower/cuda/Methods.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower::cuda;

bool lower::cuda::hasCudaLowering(OperationName op) {
  AnchorFamily family = familyOf(op);
  return family == AnchorFamily::Matmul ||
         family == AnchorFamily::Convolution || methodsOf(family);
}

/// What `ask` says to the table of the kernel's family and what it sees.
/// Products share a table (Methods.h), and tell it where their factors lie.
template <typename Made, typename Ask>
static FailureOr<Made> askFamily(AnchorKernel &kernel, ThreadCode &code,
                                 Ask ask) {
  AnchorFamily family = familyOf(kernel.anchor->getName());
  if (const AnchorMethods *methods = methodsOf(family)) {
    AroundAnchor parts{kernel, code};
    return ask(*methods, parts);
  }
  FailureOr<Made> made = Made(); // of no elements
  auto askProducts = [&](ProductKernel &product) {
    made = ask(productMethods(), product);
  };
  if (family == AnchorFamily::Matmul)
    withMatmul(kernel, code, askProducts);
  else
    withConvolution(kernel, code, askProducts);
  return made;
}

template <typename Made, typename Ask>
static FailureOr<Made> askTable(KernelOp kernel, ThreadCode &code,
                                KernelBody &body, Ask ask) {
  Operation *anchor = findAnchor(kernel);
  if (!anchor)
    return failure();
  if (!hasCudaLowering(anchor->getName()))
    return anchor->emitError()
           << "unsupported: '" << anchor->getName() << "' has no code for cuda";
  AnchorKernel parts(kernel, anchor, body, code);
  if (parts.companion)
    return anchor->emitError()
           << "unsupported: a kernel of both gradients of attention has no "
              "code for cuda";
  if (failed(parts.check()))
    return failure();
  FailureOr<Made> made = askFamily<Made>(parts, code, ask);
  if (failed(made) || failed(parts.check()))
    return failure();
  return made;
}

FailureOr<LaunchShape>
lower::cuda::emitAnchor(KernelOp kernel, ThreadCode &code, KernelBody &body) {
  return askTable<LaunchShape>(kernel, code, body,
                               [&](const auto &table, auto &subject) {
                                 return emitByTable(kernel, table, subject);
                               });
}

FailureOr<ChosenMethod>
lower::cuda::chooseAnchor(KernelOp kernel, ThreadCode &code, KernelBody &body,
                          const MethodQuestion &question) {
  return askTable<ChosenMethod>(
      kernel, code, body, [&](const auto &table, auto &subject) {
        return chooseByTable(kernel, table, subject, question);
      });
}
