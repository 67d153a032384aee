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

#include "runtime/tensor/Tensor.h"

#include <functional>
#include <memory>
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
  enum Group {
    Library,   ///< does what Tandem does
    OwnLayout, ///< but has its operands in a layout of its own at no cost
    Roof,
    Tandem
  } group = Library;
};

/// Makes the contenders of a library, none where it cannot do it.
using Peer = std::function<std::vector<Contender>(
    const std::vector<Tensor> &inputs, const std::vector<Tensor> &outputs,
    int threads)>;

struct Case {
  std::string name;
  std::vector<Operand> inputs, outputs;
  std::string program; ///< the text of a module
  /// Where set, what is measured is the update of the parameter `w` by the
  /// first input, its gradient; its first value is the second input.
  std::string optimizer = {};
  bool isDirect = false; ///< compiled without Winograd's method
  double flops = 0;      ///< 0: of no interest, the kernel moves memory
  double bytes = 0;      ///< that must be read and written at least
  /// An element of a result.
  std::function<double(const std::vector<Tensor> &inputs, int output,
                       int64_t element)>
      expected = {};
  /// Elements to look at beside those that are chosen by distance.
  std::function<std::vector<int64_t>(const std::vector<Tensor> &inputs,
                                     int output)>
      special = {};
  double tolerance = 2e-4; ///< beside the largest expected element
  std::vector<Peer> peers = {};
};

/// The text of a program of inputs %NAME that computes outputs %NAME.
std::string programText(const std::vector<Operand> &inputs,
                        const std::vector<Operand> &outputs,
                        const std::string &body);

/// Returns the bytes of all operands.
double allBytes(const Case &c);

/// What some hundred elements of a case's results should be.
class Answers {
public:
  Answers(const Case &c, const std::vector<Tensor> &inputs);
  /// Returns "" if the contender's results are right, else what is wrong.
  std::string check(const Contender &contender) const;

private:
  struct Answer {
    int64_t element;
    double value;
  };
  const Case &which;
  std::vector<std::vector<Answer>> answers; ///< of each output
};

/// The families of cases.
void addMatmuls(std::vector<Case> &cases);
void addConvolutions(std::vector<Case> &cases);
void addAttentions(std::vector<Case> &cases);
void addLoops(std::vector<Case> &cases);

} // namespace tandem::bench

#endif
