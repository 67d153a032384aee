//===- FlowRegion.h - branches and loops from recorded regions ------------===//
//
// What the tracer and the importers share. A region is recorded as a block of
// its own with everything in refs: arguments are values with a `make_ref` of
// each, results are refs. Here it gets its terminator, refs that are not
// written become values, and the op around it is made.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_CAPTURE_FLOWREGION_H
#define TANDEM_COMPILER_CAPTURE_FLOWREGION_H

#include "ir/Ops.h"

#include <memory>

namespace tandem {

class FlowRegion {
public:
  /// `what` names the region in messages: "the body of 'scan'".
  FlowRegion(std::string what, mlir::Location loc, mlir::TypeRange arguments);

  /// The block that is recorded into, with the builder at its end.
  mlir::Block &block() { return region->front(); }
  /// Returns refs of the arguments.
  llvm::SmallVector<mlir::Value> begin(mlir::OpBuilder &builder);
  /// `results` are refs. False, with a diagnostic, if an argument is written:
  /// it is a value, and nobody outside would see it.
  bool end(mlir::OpBuilder &builder, llvm::ArrayRef<mlir::Value> results);

  /// The types of the results.
  mlir::TypeRange yielded() const { return types; }
  /// Moves the recorded region to where it belongs.
  void moveTo(mlir::Region &target) { target.takeBody(*region); }
  const std::string &str() const { return what; }

private:
  std::string what;
  mlir::Location loc;
  std::unique_ptr<mlir::Region> region;
  llvm::SmallVector<mlir::Type> types;
};

/// What a scan is made of, but for its body.
struct ScanParts {
  int64_t length = 0;
  bool reverse = false;
  mlir::Value trips; ///< null: `length`
  llvm::SmallVector<mlir::Value> carries, inputs, constants;

  /// The types of the body's arguments. Fails, with a diagnostic at `loc`,
  /// where an input has no `length` slices.
  mlir::FailureOr<llvm::SmallVector<mlir::Type>>
  argumentTypes(mlir::Location loc) const;
};

// Each makes the op, with the discardable attributes `tags`, and verifies it.
mlir::FailureOr<mlir::Operation *>
buildIf(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value condition,
        mlir::ValueRange inputs, FlowRegion &then, FlowRegion &otherwise,
        llvm::ArrayRef<mlir::NamedAttribute> tags);
mlir::FailureOr<mlir::Operation *>
buildScan(mlir::OpBuilder &builder, mlir::Location loc, const ScanParts &parts,
          FlowRegion &body, llvm::ArrayRef<mlir::NamedAttribute> tags);
mlir::FailureOr<mlir::Operation *>
buildWhile(mlir::OpBuilder &builder, mlir::Location loc,
           mlir::ValueRange carries, mlir::ValueRange constants,
           FlowRegion &condition, FlowRegion &body,
           llvm::ArrayRef<mlir::NamedAttribute> tags);

} // namespace tandem

#endif
