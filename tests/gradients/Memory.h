//===- Memory.h - values between programs ---------------------------------===//
//
// Values by role and name: what one program gives, the next takes.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TESTS_GRADIENTS_MEMORY_H
#define TANDEM_TESTS_GRADIENTS_MEMORY_H

#include "ir/Signature.h"
#include "ir/reference/Evaluator.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

namespace tandem::test {

class Memory {
public:
  reference::Array &at(RoleAttr role) { return values[key(role)]; }
  reference::Array &at(RoleKind kind, mlir::MLIRContext *context,
                       llvm::StringRef name) {
    return at(RoleAttr::get(context, kind, name));
  }
  bool has(RoleAttr role) const { return values.count(key(role)) != 0; }
  void forget(RoleAttr role) { values.erase(key(role)); }

  /// Numbers for the arguments of `func` that are not there yet. What the
  /// backward finds is what the argument holds.
  void draw(mlir::func::FuncOp func) {
    for (auto [i, type] : llvm::enumerate(func.getArgumentTypes())) {
      RoleAttr role = roleOfArgument(func, i);
      if (has(role))
        continue;
      if (role.has("pass")) {
        at(role) = at(role.without("pass"));
        continue;
      }
      auto tensor = mlir::cast<mlir::RankedTensorType>(type);
      reference::Array &value = at(role);
      value = reference::Array(tensor);
      // The same for a value in whichever order values are drawn.
      uint64_t state = 1;
      for (char c : role.str())
        state = state * 1099511628211u + static_cast<unsigned char>(c);
      for (double &x : value.data) {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        double unit = static_cast<double>(state >> 11) * 0x1p-53;
        x = mlir::isa<mlir::FloatType>(tensor.getElementType())
                ? 0.2 + unit
                : std::floor(4 * unit);
      }
    }
  }
  void run(mlir::func::FuncOp func) {
    llvm::SmallVector<reference::Array> arguments;
    for (unsigned i = 0; i < func.getNumArguments(); ++i) {
      ASSERT_TRUE(has(roleOfArgument(func, i)))
          << roleOfArgument(func, i).str() << " of " << func.getName().str();
      arguments.push_back(at(roleOfArgument(func, i)));
    }
    auto results = reference::evaluate(func, arguments);
    ASSERT_TRUE(mlir::succeeded(results));
    for (unsigned i = 0; i < func.getNumResults(); ++i)
      at(roleOfResult(func, i)) = (*results)[i];
  }

private:
  static std::string key(RoleAttr role) {
    return stringifyRoleKind(role.getKind()).str() + " " +
           role.getName().str() + (role.has("pass") ? " in the backward" : "");
  }
  std::map<std::string, reference::Array> values;
};

} // namespace tandem::test

#endif
