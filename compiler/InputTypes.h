//===- InputTypes.h - "x:u8,scale=1/255,mean=0.5,std=0.25" ----------------===//
//
// `--input`: an input of floats arrives in another type, as the bytes of an
// image do, and the program makes the floats of it that the model takes. Data
// files of bytes are fed as they are; nothing is converted on the host.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_INPUTTYPES_H
#define TANDEM_COMPILER_INPUTTYPES_H

#include "runtime/artifact/Status.h"

#include "mlir/IR/BuiltinOps.h"

#include <string>
#include <vector>

namespace tandem {

/// What an input is given as: x = (given * factor / divisor - mean) / std, in
/// f32 at least, and then in the model's type.
struct InputSpec {
  std::string input;
  std::string type; ///< as in the manifest: "u8"
  double factor = 1, divisor = 1;
  /// One for all elements, or one for each index along `axis`; empty: none.
  std::vector<double> mean, std;
  int64_t axis = 1;
};

/// Parses `NAME:TYPE[,scale=N|N/N][,mean=N|[N,...]][,std=...][,axis=N]`.
Result<InputSpec> parseInputSpec(const std::string &text);

/// Gives inputs of a module at `capture` other types. Fails with Usage where a
/// spec does not fit the module, and lists everything that is wrong.
Status changeInputs(mlir::ModuleOp module,
                    const std::vector<std::string> &specs);

} // namespace tandem

#endif
