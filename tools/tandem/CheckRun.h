//===- CheckRun.h - what compiled code gives, for 'check' -----------------===//
#ifndef TANDEM_TOOLS_TANDEM_CHECKRUN_H
#define TANDEM_TOOLS_TANDEM_CHECKRUN_H

#include "runtime/model/Model.h"
#include "tools/tandem/CheckLaws.h"

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace tandem {

/// What the programs of a model gave, in the host's memory.
struct CompiledValues {
  std::map<std::string, runtime::Tensor> outputs, gradients;
  /// The outputs of the whole step, and what it left of params and states; both
  /// empty if the model has none.
  std::map<std::string, runtime::Tensor> stepOutputs, stepValues;
};

/// Runs forward and backward with cotangents of ones, and the step of another
/// model that `load` makes: the forward may change states.
Result<CompiledValues>
runCompiled(const std::function<Result<runtime::Model>()> &load,
            const std::vector<std::pair<std::string, runtime::Tensor>> &inputs);

/// Returns the inputs, of which those that `arrays` has are these.
Result<std::vector<std::pair<std::string, runtime::Tensor>>>
withArrays(const std::vector<std::pair<std::string, runtime::Tensor>> &inputs,
           const NamedArrays &arrays);

/// Runs forward and backward with these cotangents, and returns the gradients.
Result<std::map<std::string, runtime::Tensor>>
runBackward(const std::function<Result<runtime::Model>()> &load,
            const std::vector<std::pair<std::string, runtime::Tensor>> &inputs,
            const NamedArrays &cotangents);

/// Does what runCompiled() does on the emulated GPU in several orders
/// (EmulatedOrders.h), and returns what they gave in the first one. Differs if
/// another one has other bits.
Result<CompiledValues>
runInOrders(const std::function<Result<runtime::Model>()> &load,
            const std::vector<std::pair<std::string, runtime::Tensor>> &inputs);

} // namespace tandem

#endif
