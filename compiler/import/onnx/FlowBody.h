//===- FlowBody.h - graphs of ONNX that become regions --------------------===//
//
// A graph of If, Loop or Scan is translated into a region that is not yet an
// op's. It uses values of the program around it as it likes; in the end these
// become its last arguments.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_IMPORT_ONNX_FLOWBODY_H
#define TANDEM_COMPILER_IMPORT_ONNX_FLOWBODY_H

#include "compiler/import/onnx/Translator.h"
#include "ir/Ops.h"

#include "llvm/ADT/SetVector.h"

namespace tandem::onnx {

/// Known loops of so many iterations at most are written out.
inline constexpr int64_t mostWrittenOut = 64;

/// A graph that is translated into a region.
class Body {
public:
  explicit Body(Node &node) : node(node) { region.emplaceBlock(); }

  mlir::Value add(mlir::Type type) {
    return region.addArgument(type, node.loc());
  }
  /// Runs `make` with the builder in the region; it returns what is yielded.
  mlir::LogicalResult
  record(llvm::function_ref<mlir::FailureOr<llvm::SmallVector<mlir::Value>>()>
             make) {
    mlir::OpBuilder::InsertionGuard guard(node.builder());
    node.builder().setInsertionPointToEnd(&region.front());
    auto made = make();
    if (mlir::failed(made))
      return mlir::failure();
    types = llvm::to_vector(mlir::ValueRange(*made).getTypes());
    YieldOp::create(node.builder(), node.loc(), *made);
    return mlir::success();
  }
  /// Adds what the region uses of the program around it.
  void collect(llvm::SetVector<mlir::Value> &used) {
    region.walk([&](mlir::Operation *op) {
      for (mlir::Value operand : op->getOperands())
        if (!contains(operand.getParentRegion()))
          used.insert(operand);
    });
  }
  /// Makes these values arguments, behind the others.
  void take(llvm::ArrayRef<mlir::Value> outside) {
    for (mlir::Value value : outside) {
      mlir::Value inside = add(value.getType());
      value.replaceUsesWithIf(inside, [&](mlir::OpOperand &use) {
        return contains(use.getOwner()->getParentRegion());
      });
    }
  }

  mlir::Region region;
  llvm::SmallVector<mlir::Type> types;

private:
  /// As Region::isAncestor, among regions of which some have no op yet.
  bool contains(mlir::Region *inner) {
    while (inner && inner != &region) {
      mlir::Operation *op = inner->getParentOp();
      inner = op ? op->getParentRegion() : nullptr;
    }
    return inner;
  }
  Node &node;
};

/// The data as tensors. Fails, and an error was given, if one is none.
mlir::FailureOr<llvm::SmallVector<mlir::Value>>
valuesOf(Node &node, llvm::ArrayRef<Datum> data);

/// Stacks tensors of one type along a new dimension 0; null, and an error was
/// given, if they have several.
mlir::Value stackOf(Node &node, llvm::ArrayRef<mlir::Value> slices);

/// Slice `i` along dimension 0.
mlir::Value sliceOf(Node &node, mlir::Value whole, int64_t i);

/// The type of a stack of `length` such tensors; null, and an error was given,
/// if there is none.
mlir::Type stackType(Node &node, mlir::Type slice, int64_t length);

} // namespace tandem::onnx

#endif
