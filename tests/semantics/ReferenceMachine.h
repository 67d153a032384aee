//===- ReferenceMachine.h - a program on the reference --------------------===//
//
// The forward is the captured program on real storage; the gradients are the
// joint's. See Harness.h.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TESTS_SEMANTICS_REFERENCEMACHINE_H
#define TANDEM_TESTS_SEMANTICS_REFERENCEMACHINE_H

#include "ir/reference/Evaluator.h"
#include "tests/semantics/Harness.h"

#include "mlir/IR/OwningOpRef.h"

#include <set>

namespace tandem::test {

class ReferenceMachine : public Machine {
public:
  ReferenceMachine(mlir::OwningOpRef<mlir::ModuleOp> graph,
                   mlir::OwningOpRef<mlir::ModuleOp> joint);

  void set(const std::string &name, const Numbers &numbers) override;
  void setStorage(const std::string &name, const Numbers &numbers,
                  DType dtype) override;
  void setView(const std::string &name, const std::string &of,
               const Shape &shape, const Shape &strides,
               int64_t offset) override;
  void setFreed(const std::string &name) override;
  void setLeaf(const std::string &) override {} // a rule of calls
  std::string forward() override;
  std::string backward(const NamedNumbers &cotangents,
                       const runtime::BackwardOptions &options) override;
  Numbers contents(const std::string &name) override;
  Shape shape(const std::string &name) override;
  Shape strides(const std::string &name) override;
  bool share(const std::string &a, const std::string &b) override;

private:
  using Value = std::optional<reference::Array>;

  /// Runs `func`; returns the diagnostics if that fails.
  std::string run(mlir::func::FuncOp func, const reference::Call &call,
                  reference::Outcome &outcome);
  const reference::Handle *handle(const std::string &name);

  mlir::OwningOpRef<mlir::ModuleOp> graphModule, jointModule;
  mlir::func::FuncOp graph, joint;
  /// What arguments and cotangents hold now, arguments held at the last
  /// forward, and the forward left in them. Nothing: freed.
  std::map<std::string, Value> now, atCall, afterForward;
  std::map<std::string, Numbers> storages;
  std::map<std::string, Shape> outputShapes;
  std::set<std::string> aliases; ///< arguments set by setView
  std::map<std::string, reference::Handle> handles; ///< after the last forward
};

} // namespace tandem::test

#endif
