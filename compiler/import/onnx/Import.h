//===- Import.h - from an ONNX model to a captured module -----------------===//
//
// The way in for ONNX: plain data (OnnxFile.h) and what the user says about it
// become a module of phase `capture`, and the initial values of its parameters
// and states. What is wrong or not supported is listed completely.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_IMPORT_ONNX_IMPORT_H
#define TANDEM_COMPILER_IMPORT_ONNX_IMPORT_H

#include "compiler/import/onnx/Graph.h"
#include "runtime/artifact/Status.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <set>

namespace tandem::onnx {

struct ImportOptions {
  std::map<std::string, int64_t> dims; ///< sizes of symbolic dimensions
  std::map<std::string, std::vector<int64_t>> shapes; ///< of inputs
  std::map<std::string, TensorPtr> values;            ///< inputs that are known
  /// `KIND:OUTPUT,LABELS`: gives the graph a loss; `NAME`: an output of it is
  /// one; empty: none. With a loss weights are trained, and batch norm and
  /// dropout do what they do in training.
  std::string loss;
  std::string freeze, train; ///< extended regular expressions; empty: nobody's
  bool keepEval = false;
  bool inputGradients = false; ///< float inputs require grad
};

struct Problem {
  std::string where; ///< "node 'conv1' (Conv)"
  std::string text;
  bool isUnsupported = false; ///< the model is right, but Tandem cannot do it
  bool isUsage = false;       ///< an option is wrong
};

/// Checks what can be checked without a model: that expressions are some.
Status checkOptions(const ImportOptions &options);

struct Import {
  /// `where: text`, a line each; code Usage if one is about an option,
  /// Unsupported if all problems are.
  Status status() const;

  mlir::OwningOpRef<mlir::ModuleOp> module; ///< null if there are problems
  std::vector<Problem> problems;
  /// What the user should know of a model without problems: what is trained,
  /// and what was decided for him.
  std::vector<std::string> notes;
  /// Initial values by the names of parameters and states.
  std::map<std::string, TensorPtr> weights;
  /// Inputs of the graph that have to be given as values when compiling.
  std::set<std::string> neededValues;
  /// How often the graph has each operator ("Conv", "com.x.Foo").
  std::map<std::string, int64_t> operators;
};

/// `--loss=KIND:OUTPUT,LABELS`.
struct LossSpec {
  std::string kind, output, labels;
};

/// Parses it; Usage if it is not of that form, or the kind is not known.
Result<LossSpec> parseLoss(const std::string &text);

/// Returns the kinds of losses, and what each takes of OUTPUT and LABELS.
std::vector<std::pair<std::string, std::string>> lossKinds();

Import importModel(const Model &model, const std::string &path,
                   const ImportOptions &options, mlir::MLIRContext &context);

} // namespace tandem::onnx

#endif
