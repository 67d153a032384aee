//===- MethodRows.h - what the tables of methods say, for tests -----------===//
#ifndef TANDEM_TESTS_LOWER_ANCHOR_METHODROWS_H
#define TANDEM_TESTS_LOWER_ANCHOR_METHODROWS_H

#include "passes/lower/common/ExplainMethods.h"

#include "mlir/IR/BuiltinOps.h"

#include <string>
#include <vector>

namespace tandem::test {

/// The target of a CPU as the text of its attribute; `vectorBits` of 0 are the
/// host's widest.
std::string cpuTarget(int vectorBits = 512);
std::string cudaTarget(const std::string &arch,
                       const std::string &precision = "f32");

/// Sets the module's target, but for what it says of one itself.
void setTarget(mlir::ModuleOp module, const std::string &target);

/// What the tables of `target` say of the kernel of `text`.
lower::ExplainedKernel explained(const std::string &text,
                                 const std::string &target = cpuTarget());

/// The name of the method that is chosen; empty if there is none.
std::string chosen(const lower::ExplainedKernel &kernel);
std::vector<std::string> possible(const lower::ExplainedKernel &kernel);
/// The reason against a method; empty if it is chosen, "no row" if it is none.
std::string against(const lower::ExplainedKernel &kernel,
                    const std::string &method);

/// The kernel of `text` with the attribute `schedule`.
std::string scheduled(std::string text, const std::string &schedule);
/// The kernel with the whole schedule that the table makes of what
/// `#tandem.schedule` says, as far as the sizes reach; without one where its
/// method does not compute the kernel.
std::string wished(const std::string &text, const std::string &schedule,
                   const std::string &target = cpuTarget());
/// That of a method.
std::string byMethod(const std::string &text, const std::string &method);

} // namespace tandem::test

#endif
