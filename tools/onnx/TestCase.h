//===- TestCase.h - one case of ONNX's backend tests ----------------------===//
//
// A case is a folder: model.onnx and test_data_set_*/{input,output}_*.pb. It is
// compiled for the processor that runs this, and run on each data set. Inputs
// on which shapes depend are bound to the data's values when compiling, as a
// user does with --value; nothing else of the data is seen by the compiler.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_ONNX_TESTCASE_H
#define TANDEM_TOOLS_ONNX_TESTCASE_H

#include "compiler/Compile.h"
#include "compiler/import/onnx/Import.h"

namespace tandem::onnx {

struct Outcome {
  /// Excluded: there is nothing to check (of gradients).
  enum class Kind { Passed, Failed, Unsupported, Excluded } kind = Kind::Failed;
  std::string op;     ///< of the node that is the reason, if it is one
  std::string reason; ///< empty if it passed
};

/// How far a number may be off: |a - b| <= absolute + relative * |b|. ONNX's
/// own runner has these. Of types of 16 bits, whose steps are about as large,
/// it may be two steps.
struct Tolerance {
  double relative = 1e-3, absolute = 1e-7;
};

/// Runs the case in `folder`.
Outcome runTestCase(const std::string &folder, const Tolerance &tolerance);

/// One data set: values by the names of inputs and outputs.
struct DataSet {
  std::map<std::string, TensorPtr> inputs, outputs;
};
/// The model of the case in `folder` and its data sets, at least one.
struct TestCase {
  Model model;
  std::string path;
  std::vector<DataSet> sets;
};
Result<TestCase> readTestCase(const std::string &folder);

/// Imports the model for one of its data sets: sizes that it leaves open, and
/// values that decide shapes, are the data's.
Import importFor(const TestCase &one, const DataSet &data,
                 ImportOptions &options, mlir::MLIRContext &context);

/// How an import with problems ends.
Outcome outcomeOf(const Import &import);

/// The difference of two tensors, as text; empty if there is none that counts.
std::string differenceOf(const TensorData &got, const TensorData &expected,
                         const Tolerance &tolerance);

} // namespace tandem::onnx

#endif
