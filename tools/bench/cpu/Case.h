//===- Case.h - one kernel and who computes it ----------------------------===//
//
// A case is a small program of one kernel: its inputs and outputs, the text
// that Tandem compiles, what it costs, what every element of its results should
// be, and the libraries that compute the same. All contenders of a case read
// the same inputs, and each has outputs of its own.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_BENCH_CPU_CASE_H
#define TANDEM_TOOLS_BENCH_CPU_CASE_H

#include "runtime/Tensor.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tandem::bench {

using artifact::DType;
using runtime::Tensor;

/// An input or output of a case.
struct Operand {
  std::string name; ///< `%name` in the program's text
  std::vector<int64_t> shape;
  DType dtype = DType::F32;
  double low = -0.5, high = 0.5; ///< its values; of integers, `high` excluded

  int64_t elements() const;
  int64_t bytes() const { return elements() * byteSize(dtype); }
  std::string type() const; ///< "tensor<2x3xf32>"
};

/// The same numbers for the same operands in every run.
Tensor filled(const Operand &operand, uint64_t seed);

/// Reads and writes an element as a double.
double read(const Tensor &tensor, int64_t element);

/// Somebody who computes the case.
struct Contender {
  std::string name;
  std::function<void()> call = {};
  std::vector<Tensor> outputs = {}; ///< as the case's, row-major
  /// Brings the results into `outputs`, where `call` keeps another layout.
  std::function<void()> finish = {};
  /// Where set, measures itself: the seconds of one call.
  std::function<double()> sample = {};
  bool isPeer = true; ///< counts when the best library is chosen
};

/// What makes the contender of a library, or none where it cannot do it.
using Peer = std::function<std::optional<Contender>(
    const std::vector<Tensor> &inputs, const std::vector<Tensor> &outputs,
    int threads)>;

struct Case {
  std::string name;
  std::vector<Operand> inputs, outputs;
  std::string program; ///< the text of a module
  /// The calls that are measured of the compiled model.
  enum Calls { Evaluate, Backward, ForwardBackward, Update } calls = Evaluate;
  std::string optimizer = {}; ///< for Update
  double flops = 0;           ///< 0: of no interest, the kernel moves memory
  double bytes = 0;           ///< that must be read and written at least
  /// An element of a result.
  std::function<double(const std::vector<Tensor> &inputs, int output,
                       int64_t element)>
      expected = {};
  double tolerance = 2e-4; ///< beside the largest expected element
  std::vector<Peer> peers = {};
};

/// The text of a program of inputs %NAME that computes outputs %NAME.
std::string programText(const std::vector<Operand> &inputs,
                        const std::vector<Operand> &outputs,
                        const std::string &body);

/// Returns the bytes of all operands.
double allBytes(const Case &c);

/// Returns "" if the contender's results are right, else what is wrong. Looks
/// at some hundred elements of each output.
std::string check(const Case &c, const std::vector<Tensor> &inputs,
                  const Contender &contender);

/// The families of cases.
void addMatmuls(std::vector<Case> &cases);

} // namespace tandem::bench

#endif
