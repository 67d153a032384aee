//===- Comparison.h - what compiled functions give, against the oracle ----===//
//
// Each function evaluates what one phase made and returns what is wrong, "" if
// nothing is: a first line without numbers, then details.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TESTS_PROPERTY_COMPARISON_H
#define TANDEM_TESTS_PROPERTY_COMPARISON_H

#include "tests/property/Oracle.h"

#include "ir/reference/Evaluator.h"

namespace tandem::property {

class Comparison {
public:
  /// `values`: those of the arguments of `captured` at the call.
  Comparison(const Oracle &oracle, mlir::func::FuncOp captured,
             const std::vector<Array> &values);

  /// The graph without refs: outputs, updates, what shares storage.
  std::string graph(mlir::func::FuncOp func);
  /// The cotangents that the joint takes; keeps those that are given.
  std::string cotangents(mlir::func::FuncOp joint,
                         const std::map<std::string, Array> &given);
  /// The joint, once the oracle's backward has run.
  std::string joint(mlir::func::FuncOp func);
  /// forward, then backward on what it saved.
  std::string programs(mlir::ModuleOp module);

private:
  using Values = std::map<std::string, std::optional<Array>>;

  unsigned argumentOf(llvm::StringRef name) const;
  std::string handles(mlir::func::FuncOp func);
  std::string sharing(mlir::func::FuncOp func);
  std::string sharingOf(const Oracle::Output &output, RoleAttr role);
  /// Evaluates `func`; arguments come from `storages`, `found` (those that come
  /// in as the backward finds them), `saved` and the cotangents; results go to
  /// `results` by "kind name", backward updates as "update backward name".
  std::string evaluate(mlir::func::FuncOp func, Values &results);
  /// The outputs and storages after the forward.
  std::string forward(mlir::func::FuncOp func, const Values &results,
                      mlir::ArrayAttr aliases);
  std::string backward(const Values &results);
  void applyUpdates(const Values &results, bool isBackward);
  std::string same(const std::string &what, const Array &expected,
                   const Array &got) const;

  const Oracle &oracle;
  std::vector<std::string> names;
  std::vector<RoleAttr> roles;
  std::vector<Array> atCall;
  /// What the storages of the arguments hold when the forward is over.
  std::vector<Array> expectedForward;
  std::map<std::string, Array> storages, found, given;
  Values saved;
};

} // namespace tandem::property

#endif
