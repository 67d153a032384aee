//===- Cases.h - single kernels, of each kind and type --------------------===//
//
// A case is a small model, its outputs and the gradients of its inputs. Its
// expected results are those of the same model in f64, on the CPU, from inputs
// that were rounded to the case's type.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_BENCH_CUDA_CASES_H
#define TANDEM_TOOLS_BENCH_CUDA_CASES_H

#include "compiler/trace/Trace.h"

#include <string>
#include <vector>

namespace tandem::gpu {

/// Records a case with elements of one type.
class CaseTrace {
public:
  CaseTrace(Trace &trace, DType type) : trace(trace), type(type) {}

  Tensor input(const std::string &name, Shape shape);
  Tensor indices(const std::string &name, Shape shape, int64_t high);
  void output(const std::string &name, const Tensor &tensor) {
    trace.output(name, tensor);
  }
  /// Outputs `y` and a loss: `y` by a gradient that is an input too.
  void differentiate(const Tensor &y);

  Trace &trace;
  DType type;
};

/// What products are made of.
enum class Products {
  Chosen, ///< as the compiler chooses
  Wgmma,  ///< also where they are too small for it to pay
  Mma
};

struct Case {
  std::string name;     ///< KIND-...-TYPE
  std::string expected; ///< cases that compute the same have the same results
  DType type;
  void (*record)(CaseTrace &);
  Products products = Products::Chosen;
  bool isTf32 = false;
  /// What the PTX has to have, an extended regular expression; else it is not
  /// the kernel that is meant.
  std::string code = {};
  std::string options = {}; ///< of the compilation, with spaces between
  double tolerance = 1e-5;
  int repeats = 20;
  bool isQuick = false; ///< of those that CI runs on the emulator
  bool isDifferentiated = true;
  bool isOfItsType = false; ///< expected results are of the type, not f64
};

const std::vector<Case> &cases();

/// Returns the module's text; of the `reference` in f64.
Result<std::string> textOf(const Case &one, bool reference);

} // namespace tandem::gpu

#endif
