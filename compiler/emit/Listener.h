//===- Listener.h - what LLVM says while it compiles kernels --------------===//
#ifndef TANDEM_COMPILER_EMIT_LISTENER_H
#define TANDEM_COMPILER_EMIT_LISTENER_H

#include "llvm/IR/DiagnosticHandler.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"

#include <string>

namespace tandem {

/// Keeps the errors that LLVM would print before it ends the process. Warnings
/// (a loop that stays as it is) name no place that a user has, and are dropped.
class Listener : public llvm::DiagnosticHandler {
public:
  explicit Listener(std::string &errors) : errors(errors) {}
  bool handleDiagnostics(const llvm::DiagnosticInfo &info) override {
    if (info.getSeverity() == llvm::DS_Error) {
      llvm::raw_string_ostream stream(errors);
      stream << (errors.empty() ? "" : "; ");
      llvm::DiagnosticPrinterRawOStream printer(stream);
      info.print(printer);
    }
    return true;
  }

private:
  std::string &errors;
};

} // namespace tandem

#endif
