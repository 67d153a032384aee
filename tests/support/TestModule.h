//===- TestModule.h - IR from text, for tests in C++ ----------------------===//
//
// A context with the dialects of a model, a module parsed into it, and the
// diagnostics that were emitted since.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TESTS_SUPPORT_TESTMODULE_H
#define TANDEM_TESTS_SUPPORT_TESTMODULE_H

#include "ir/Dialect.h"
#include "ir/reference/Array.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"

#include <string>

namespace tandem::test {

class TestModule {
public:
  TestModule()
      : handler(&context, [this](mlir::Diagnostic &diagnostic) {
          diagnostics += diagnostic.str() + "\n";
          return mlir::success();
        }) {
    context.disableMultithreading();
    context.loadDialect<TandemDialect, mlir::func::FuncDialect>();
  }
  explicit TestModule(llvm::StringRef text) : TestModule() { parse(text); }

  /// True if `text` is a valid module, which `module` then is.
  bool parse(llvm::StringRef text) {
    module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    return static_cast<bool>(module);
  }
  mlir::func::FuncOp function(llvm::StringRef name) {
    return module->lookupSymbol<mlir::func::FuncOp>(name);
  }
  std::string print() {
    std::string text;
    llvm::raw_string_ostream stream(text);
    module->print(stream);
    return text;
  }

  mlir::MLIRContext context;
  std::string diagnostics;
  mlir::ScopedDiagnosticHandler handler;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

/// An array of `shape` with these elements, row-major.
inline reference::Array array(llvm::ArrayRef<int64_t> shape,
                              std::vector<double> elements) {
  reference::Array result(shape);
  result.data = std::move(elements);
  return result;
}

} // namespace tandem::test

#endif
