//===- GraphFunctionalizer.h - storage becomes values, roles say the rest -===//
//
// What a program did to the storage of an argument becomes a result with the
// role `update`; what it did to the argument's handle becomes properties of the
// argument's role; outputs that share storage with an argument or with each
// other say so in theirs. Arguments come in (Arguments.cpp), the ops between
// are the Functionalizer's, and roles and aliases are what is left at the end
// (Roles.cpp, Aliases.cpp).
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_FUNCTIONALIZE_GRAPHFUNCTIONALIZER_H
#define TANDEM_PASSES_FUNCTIONALIZE_GRAPHFUNCTIONALIZER_H

#include "passes/functionalize/Functionalizer.h"

#include "ir/Where.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tandem {

/// Makes a graph function with refs one without.
class GraphFunctionalizer {
public:
  explicit GraphFunctionalizer(mlir::func::FuncOp func)
      : func(func), block(func.getBody().front()), functionalizer(block),
        builder(functionalizer.builder) {}

  mlir::LogicalResult run();

private:
  /// A ref argument, the value that it came in with, and its role.
  struct Argument {
    mlir::Value ref;
    mlir::BlockArgument value;
    RoleAttr role;
    View *view; ///< what it showed at first
    unsigned index;

    std::string str() const { return nameOfArgument(role, index); }
  };
  struct Result {
    mlir::Value value;
    RoleAttr role;
    View *view; ///< null: a value
  };

  std::string nameOf(const Result &result) const {
    return nameOfResult(result.role, &result - results.data());
  }
  mlir::LogicalResult replaceArguments();
  mlir::LogicalResult bindAliases();
  mlir::LogicalResult bindShared(StorageState *storage);
  mlir::LogicalResult bindGroup(const StorageState *storage,
                                llvm::ArrayRef<Argument *> group);
  mlir::LogicalResult checkAliases();
  mlir::LogicalResult describeHandles();
  mlir::LogicalResult addOutputs();
  mlir::LogicalResult describeSharing();
  mlir::LogicalResult checkStrides(const Result &result, const View *base,
                                   const std::string &name);
  void addUpdates();
  mlir::LogicalResult checkPrivateStates();
  void finish();

  mlir::DictionaryAttr aliasOf(llvm::StringRef kind, mlir::StringAttr name,
                               const View *base, const View *view);
  Argument *argumentOf(const StorageState *storage);

  mlir::func::FuncOp func;
  mlir::Block &block;
  Functionalizer functionalizer;
  mlir::OpBuilder &builder;
  llvm::SmallVector<Argument> arguments;
  llvm::SmallVector<Result> results;
};

} // namespace tandem

#endif
