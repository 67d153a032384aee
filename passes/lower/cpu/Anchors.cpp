//===- Anchors.cpp - the code of kernels around one op --------------------===//
#include "passes/lower/cpu/Methods.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower;
using namespace tandem::lower::cpu;

/// What `ask` says to the table of the kernel's anchor and what it sees.
template <typename Made>
static FailureOr<Made> askTable(
    KernelOp kernel, OpBuilder &b, KernelBody &body,
    llvm::function_ref<FailureOr<Made>(const AnchorMethods &, AnchorKernel &)>
        ask) {
  Operation *anchor = findAnchor(kernel);
  if (!anchor)
    return failure();
  const AnchorMethods *methods = methodsOf(anchor->getName());
  if (!methods)
    return anchor->emitError() << "unsupported: '" << anchor->getName()
                               << "' has no code for the cpu";
  Code code(b, kernel.getLoc());
  AnchorKernel parts(kernel, anchor, body, code);
  if (failed(parts.check()))
    return failure();
  FailureOr<Made> made = ask(*methods, parts);
  if (failed(made) || failed(parts.check()))
    return failure();
  return made;
}

FailureOr<Work> lower::cpu::emitAnchor(KernelOp kernel, OpBuilder &b,
                                       KernelBody &body) {
  return askTable<Work>(kernel, b, body,
                        [&](const AnchorMethods &table, AnchorKernel &parts) {
                          return emitByTable(kernel, table, parts);
                        });
}

FailureOr<ChosenMethod>
lower::cpu::chooseAnchor(KernelOp kernel, OpBuilder &b, KernelBody &body,
                         const MethodQuestion &question) {
  return askTable<ChosenMethod>(
      kernel, b, body, [&](const AnchorMethods &table, AnchorKernel &parts) {
        return chooseByTable(kernel, table, parts, question);
      });
}
