//===- Function.h - functions of the user as nodes ------------------------===//
//
// A function has a forward, which may save values and write inputs, and a
// backward. Saved values are checked by version when they are used, and freed
// with the last backward, once no thread runs the node. Backwards of one node
// do not run side by side, but for one that runs a backward of its own.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_GRAPH_FUNCTION_H
#define TANDEM_RUNTIME_GRAPH_FUNCTION_H

#include "runtime/graph/Node.h"
#include "runtime/graph/Saved.h"
#include "runtime/model/HookMutex.h"

namespace tandem::graph {

class Function;

struct FunctionSpec {
  using Values = std::vector<Value>;

  std::string name;
  /// Sets the outputs, with grad mode off; may write inputs that it declares.
  std::function<Status(Function &node, Values &inputs, Values &outputs)>
      forward;
  /// Takes a gradient for each output, then for each input that is written.
  std::function<Status(Function &node, Gradients &inputs, Gradients &outputs)>
      backward;
  std::function<void(Function &node)> announce; ///< may be empty
  bool isOnceDifferentiable = false;
  bool materializes = false; ///< undefined gradients are zeros
  bool isDeterministic = true;
  Traits traits;
};

class Function : public Node {
public:
  explicit Function(FunctionSpec spec) : spec(std::move(spec)) {}
  ~Function() override;

  /// Calls the forward; makes a node if grad mode is on and an input has
  /// history. Inputs that it wrote get a new one.
  static Status apply(FunctionSpec spec, std::vector<Value> &inputs,
                      std::vector<Value> &outputs);

  std::string name() const override { return spec.name; }
  bool isCallers() const override { return true; }
  Status run(Gradients &inputs, Gradients &outputs,
             const RunMode &mode) override;
  void announceRelease() override;
  void release() override;
  int64_t savedBytes() const override;
  Result<std::vector<Value>> savedValues() override;
  Status swapSaved(std::vector<Value> &values) override;
  Traits traits() const override { return spec.traits; }
  Described described() const override { return Described("function"); }
  bool isDeterministic() const override { return spec.isDeterministic; }

  // Of a forward.
  Status save(Value value);
  Status declareWrite(size_t input);
  Status declareNotDifferentiable(size_t output);
  /// Keeps what was saved, as it is now.
  Status keep(std::span<const Value> outputs);
  /// Returns saved value `index`.
  Result<Value> saved(size_t index);

private:
  Status checkInForward() const;
  Status lead(std::vector<Value> &inputs, std::vector<Value> &outputs);
  Status runBackward(Gradients &inputs, Gradients &outputs,
                     const RunMode &mode);
  Status materialize(Gradients &inputs) const;

  FunctionSpec spec;
  runtime::HookMutex calls; ///< held by who runs the backward (CallbackLock.h)
  SavedValues kept;
  std::vector<Value> pending;                ///< in a forward: to be saved
  const std::vector<Value> *given = nullptr; ///< in a forward: the inputs
  size_t outputCount = 0;                    ///< in a forward
  bool checksLeaves = false; ///< in a forward: they may not be written
  std::vector<size_t> written, notDifferentiable;
};

/// Calls `forward` with grad mode off, and again in the backward. It makes
/// outputs of inputs; leaves that it uses beside them collect their gradients.
/// An error if it makes outputs of other types, shapes or devices then.
Status checkpoint(std::string name,
                  std::function<Status(std::vector<Value> &inputs,
                                       std::vector<Value> &outputs)>
                      forward,
                  std::vector<Value> &inputs, std::vector<Value> &outputs);

} // namespace tandem::graph

#endif
