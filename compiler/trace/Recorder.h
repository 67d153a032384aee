//===- Recorder.h - the module behind a trace -----------------------------===//
//
// Everything is recorded as refs: each op reads its operands and makes a ref of
// each result, views are views of refs, in-place ops write. At the end the refs
// that nobody writes become plain values (DemoteRefs), so that what is left of
// refs in a captured module is what is mutated.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_TRACE_RECORDER_H
#define TANDEM_COMPILER_TRACE_RECORDER_H

#include "compiler/trace/Trace.h"
#include "ir/Ops.h"
#include "ir/Signature.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace tandem::trace {

class Recorder {
public:
  explicit Recorder(const std::string &name);

  /// Records the op `tandem.<op>` on the values of `operands`; returns a tensor
  /// per result (invalid ones after a mistake).
  std::vector<Tensor> record(llvm::StringRef op,
                             llvm::ArrayRef<Tensor> operands,
                             llvm::ArrayRef<mlir::NamedAttribute> attributes,
                             Where where, mlir::Type resultType = {});
  /// The same for a view: of the ref itself.
  Tensor recordView(llvm::StringRef op, const Tensor &source,
                    llvm::ArrayRef<mlir::NamedAttribute> attributes,
                    Where where);
  void recordWrite(const Tensor &target, const Tensor &value, Where where);

  Tensor addArgument(RoleAttr role, mlir::RankedTensorType type, Where where);
  void addOutput(const std::string &name, const Tensor &tensor, Where where);
  Tensor addConstant(mlir::RankedTensorType type, double number, Where where);

  /// A mistake of the program; returns an invalid tensor.
  Tensor mistake(Where where, const llvm::Twine &message);
  /// True if all are valid and of this recorder; otherwise, unless one is
  /// invalid because of an earlier mistake, that is a mistake.
  bool usable(llvm::ArrayRef<Tensor> tensors, Where where);

  RefType typeOf(const Tensor &tensor) const;
  mlir::Type elementType(DType dtype);
  std::string qualified(const std::string &name) const;
  mlir::Builder attributes() { return mlir::Builder(&context); }

  Result<std::string> finish();

  std::vector<std::string> path; ///< names of the open module scopes
  int noGradDepth = 0;

private:
  mlir::Location location(Where where, llvm::StringRef op = {});
  Tensor add(mlir::Value ref);

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::func::FuncOp func;
  mlir::OpBuilder builder;
  std::vector<mlir::Value> values; ///< refs, by tensor id
  std::vector<std::pair<RoleAttr, mlir::Value>> outputs;
  std::vector<std::string> mistakes;
  bool finished = false;
};

/// Returns the one recorder of the operands; null if there is none.
Recorder *recorderOf(llvm::ArrayRef<Tensor> tensors);

/// Turns the refs of `func` that nobody writes into values.
void demoteRefs(mlir::func::FuncOp func);

} // namespace tandem::trace

#endif
