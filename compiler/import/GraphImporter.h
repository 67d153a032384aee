//===- GraphImporter.h - the module of one JSON graph ---------------------===//
//
// As in the tracer everything is recorded as refs: a name names a handle, views
// share storage, other ops read their operands and make a ref of each result.
// What nobody writes becomes values at the end. Inside of a custom_vjp only the
// names of its region are known; so inside of branches and loops.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_IMPORT_GRAPHIMPORTER_H
#define TANDEM_COMPILER_IMPORT_GRAPHIMPORTER_H

#include "compiler/import/JsonPositions.h"
#include "compiler/import/JsonReader.h"
#include "ir/Ops.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"

namespace tandem {

class CustomRegions;
class FlowRegion;

class GraphImporter {
public:
  GraphImporter(const std::string &path, llvm::StringRef text,
                mlir::MLIRContext &context)
      : path(path), positions(std::string_view(text.data(), text.size())),
        builder(&context) {}

  mlir::OwningOpRef<mlir::ModuleOp> run(const Json &json);
  Problems problems;

private:
  using Attributes = llvm::SmallVector<mlir::NamedAttribute>;
  /// What the name of a value names; many names may name one.
  struct Handle {
    mlir::Value ref; ///< null if what defines it is wrong
  };
  using Names = std::map<std::string, size_t>; ///< positions in `handles`
  /// What the nodes stand in; a flow in a custom_vjp is a part of that.
  enum class RegionKind { None, Custom, Flow };
  bool inRegion() const { return regionKind != RegionKind::None; }
  /// For messages.
  std::string regionName() const {
    return regionKind == RegionKind::Custom ? "a custom_vjp"
                                            : "a branch or a loop";
  }

  // The document.
  mlir::Location location(const JsonPlace &place, llvm::StringRef name = {});
  mlir::Type elementType(const JsonPlace &place, llvm::StringRef name);
  mlir::RankedTensorType type(const JsonPlace &place);
  /// The `init` of a role; null, and a problem, if values of the element type
  /// cannot begin like that.
  mlir::DictionaryAttr init(const JsonPlace &place, RoleAttr role,
                            mlir::Type element);
  RoleAttr role(const JsonPlace &place, RoleKind kind, const std::string &name,
                mlir::RankedTensorType tensor);
  mlir::DictionaryAttr alias(const JsonPlace &place);
  void addValues(const JsonPlace &root, const char *list, RoleKind kind);
  void checkAliases(const JsonPlace &root);
  void addOutputs(const JsonPlace &root);

  // Names.
  void define(const JsonPlace &place, const std::string &name, mlir::Value ref);
  /// The handle that `place` names; null, and a problem unless there was one,
  /// if there is none.
  Handle *handle(const JsonPlace &place);

  // Nodes (JsonNodes.cpp).
  void addNodes(const JsonPlace &parent);
  void addNode(const JsonPlace &node);
  void addConstant(const JsonPlace &node);
  void addOp(const JsonPlace &node, const std::string &op);
  void addCall(const JsonPlace &node, const std::string &name);
  mlir::Operation *build(const JsonPlace &node, const std::string &op,
                         mlir::ValueRange operands, const Attributes &list,
                         llvm::ArrayRef<mlir::Type> types);
  bool resultTypes(const JsonPlace &node, const std::string &op,
                   mlir::ValueRange operands,
                   llvm::SmallVectorImpl<mlir::Type> &types);
  mlir::Attribute attribute(const JsonPlace &place, llvm::StringRef op,
                            llvm::StringRef name, mlir::ValueRange operands);
  Attributes attributes(const JsonPlace &node, llvm::StringRef op,
                        mlir::ValueRange operands);
  /// Gives the results their names; not `known`: what makes them is wrong.
  void defineResults(const JsonPlace &node, mlir::ValueRange results,
                     bool known = true);
  /// Where a node stands: its path, made of the modules around it, and place.
  mlir::Location nameOf(const JsonPlace &node, const std::string &op);
  /// Sets `no_grad`, `autocast`, `stream` and `checkpoint` while a node with
  /// these fields is added.
  class Mode;
  void setAutocast(const JsonPlace &place);
  Attributes tags();
  /// The value of a ref, read for a node.
  mlir::Value read(mlir::Location loc, mlir::Value ref);
  void tagResults(const JsonPlace &node, mlir::Operation *op,
                  mlir::ValueRange refs);

  // custom_vjp (JsonCustom.cpp).
  void addCustomVjp(const JsonPlace &node);
  bool addForward(const JsonPlace &place, CustomRegions &regions);
  bool addBackward(const JsonPlace &place, CustomRegions &regions);
  bool defineAll(const JsonPlace &parent, const char *list,
                 mlir::ValueRange refs);

  // Branches and loops (JsonFlow.cpp).
  void addIf(const JsonPlace &node);
  void addScan(const JsonPlace &node);
  void addWhile(const JsonPlace &node);
  bool addRegion(const JsonPlace &node, const char *field, FlowRegion &region);
  bool readAll(const JsonPlace &node, const char *list, mlir::Location loc,
               llvm::SmallVectorImpl<mlir::Value> &values);
  void defineFlow(const JsonPlace &node, mlir::FailureOr<mlir::Operation *> op);

  /// Turns diagnostics into problems, at the node that each is located at.
  class Listener;

  std::string path;
  JsonPositions positions;
  mlir::OpBuilder builder;
  mlir::func::FuncOp func;
  std::vector<Handle> handles;
  Names names;
  bool differentiates = true;
  mlir::Type autocast; ///< of the nodes; f32: off; null: nothing is said
  RegionKind regionKind = RegionKind::None;
  int64_t stream = -1;    ///< of the nodes; -1: none is said
  std::string checkpoint; ///< the region of the nodes; empty: none
  std::string modulePath; ///< of the nodes: "h0.attn."
};

/// Makes problems of the diagnostics while it lives.
class GraphImporter::Listener {
public:
  Listener(GraphImporter &importer, const JsonPlace &place);

private:
  mlir::ScopedDiagnosticHandler handler;
};

} // namespace tandem

#endif
