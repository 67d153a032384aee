//===- FlowBody.h - regions of StableHLO that become regions --------------===//
//
// A region is translated into one that is not yet an op's. It uses values of
// the program around it as it likes; in the end these become its last
// arguments.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_IMPORT_STABLEHLO_FLOWBODY_H
#define TANDEM_COMPILER_IMPORT_STABLEHLO_FLOWBODY_H

#include "compiler/import/stablehlo/Node.h"

#include "llvm/ADT/SetVector.h"

namespace tandem::stablehlo {

class FlowBody {
public:
  using Values = mlir::FailureOr<llvm::SmallVector<mlir::Value>>;

  explicit FlowBody(Node &node) : node(node) { region.emplaceBlock(); }

  mlir::Value add(mlir::Type type) {
    return region.addArgument(type, node.loc());
  }
  /// Runs `make` with the builder in the region; it returns what is yielded.
  mlir::LogicalResult record(llvm::function_ref<Values()> make);
  /// Adds what the region uses of the program around it. Constants are copied
  /// into it instead.
  void collect(llvm::SetVector<mlir::Value> &used);
  /// Makes these values arguments, behind the others.
  void take(llvm::ArrayRef<mlir::Value> outside);

  mlir::Region region;
  llvm::SmallVector<mlir::Type> types; ///< of what is yielded

private:
  bool contains(mlir::Region *inner);
  Node &node;
};

} // namespace tandem::stablehlo

#endif
