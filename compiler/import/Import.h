//===- Import.h - what importers are asked for, and what they give --------===//
//
// The options and the result of every importer of a foreign format: what the
// user says of a model, and a module of phase `capture` with the initial values
// of its parameters and states. What is wrong or not supported is listed
// completely.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_IMPORT_IMPORT_H
#define TANDEM_COMPILER_IMPORT_IMPORT_H

#include "compiler/import/TensorData.h"
#include "runtime/artifact/Status.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <map>
#include <set>
#include <string_view>

namespace tandem {

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
  /// What it is compiled for, where a file has a program for several.
  std::string platform = "cpu";
};

struct ImportProblem {
  std::string where; ///< "node 'conv1' (Conv)"
  std::string text;
  bool isUnsupported = false; ///< the model is right, but Tandem cannot do it
  bool isUsage = false;       ///< an option is wrong
};

/// Suffixes of the files that importers read ("m.onnx", an ONNX model; "m.pt2",
/// an archive of torch.export), separated by '|'.
inline constexpr std::string_view kImported = ".onnx|.pt2";
/// True for a file that one of them reads, with what ImportOptions say.
bool isImported(std::string_view path);

/// Checks what can be checked without a model: that expressions are some.
Status checkOptions(const ImportOptions &options);

struct Import {
  /// `where: text`, a line each; code Usage if one is about an option,
  /// Unsupported if all problems are.
  Status status() const;

  mlir::OwningOpRef<mlir::ModuleOp> module; ///< null if there are problems
  std::vector<ImportProblem> problems;
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

} // namespace tandem

#endif
