//===- Dnnl.h - primitives of oneDNN --------------------------------------===//
//
// oneDNN's C interface, of its versions 2 and 3 alike: what differs between
// them is inside. Several libraries may be open at once; each is a peer of its
// own. A primitive may ask for layouts of its own: then there are two
// contenders, one of which brings its operands there and back in every call.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_BENCH_CPU_DNNL_H
#define TANDEM_TOOLS_BENCH_CPU_DNNL_H

#include "tools/bench/cpu/Case.h"
#include "tools/bench/cpu/Library.h"

namespace tandem::bench {

/// The type, sizes and layout of an operand.
using DnnlDesc = std::shared_ptr<const void>;
/// A primitive that was chosen: its algorithm and its operands' layouts.
using DnnlPrimitiveDesc = std::shared_ptr<const void>;

enum class DnnlPass { Forward, BackwardData, BackwardWeights };

/// The argument of an execution, and the query for its layout (dnnl_types.h).
struct DnnlArgument {
  int argument, query;
};
inline constexpr DnnlArgument kSrc{1, 129}, kDiffSrc{129, 130},
    kWeights{33, 131}, kDiffWeights{161, 132}, kDst{17, 133},
    kDiffDst{145, 134};
/// These have the layout that they are given.
inline constexpr DnnlArgument kBias{41, 0}, kMean{49, 0}, kVariance{50, 0},
    kScale{51, 0}, kShift{52, 0}, kDiffScale{255, 0}, kDiffShift{256, 0};

/// An operand as the case has it.
struct DnnlOperand {
  DnnlArgument argument;
  DnnlDesc desc;
  Tensor tensor;
  bool isResult = false;
};

class Dnnl {
public:
  /// Opens the library; `problem` says why it cannot be used, if it cannot.
  explicit Dnnl(const std::string &path);
  std::string problem;
  std::string name; ///< "onednn-2.6"

  /// Numbers of threads of every library's OpenMP, for what is created next.
  static void setThreads(int threads);

  /// A layout, row-major if there are no strides.
  DnnlDesc dense(const std::vector<int64_t> &sizes, DType dtype = DType::F32,
                 const std::vector<int64_t> &strides = {}) const;
  /// The primitive's choice.
  DnnlDesc any(const std::vector<int64_t> &sizes,
               DType dtype = DType::F32) const;

  // Null if the library has none.
  DnnlPrimitiveDesc matmul(const DnnlDesc &lhs, const DnnlDesc &rhs,
                           const DnnlDesc &bias, const DnnlDesc &y,
                           bool withGelu) const;
  struct Window {
    int64_t strides[2], before[2], after[2];
  };
  DnnlPrimitiveDesc convolution(DnnlPass pass, bool isWinograd,
                                const DnnlDesc &x, const DnnlDesc &w,
                                const DnnlDesc &y, const Window &window) const;
  /// Along the last dimension; of rows [N, C].
  DnnlPrimitiveDesc softmax(DnnlPass pass, bool isLog, const DnnlDesc &x) const;
  DnnlPrimitiveDesc gelu(DnnlPass pass, bool isTanh, const DnnlDesc &x) const;
  DnnlPrimitiveDesc layerNorm(DnnlPass pass, const DnnlDesc &x,
                              const DnnlDesc &rows, float epsilon) const;

  /// One that reads and writes the operands as they are; if the primitive has
  /// layouts of its own, another (name + "*") whose operands are there.
  std::vector<Contender> contenders(const std::string &suffix,
                                    const DnnlPrimitiveDesc &chosen,
                                    const std::vector<DnnlOperand> &operands,
                                    const std::vector<Tensor> &outputs) const;

private:
  struct Functions;
  struct Execution;
  DnnlPrimitiveDesc made(void *desc, const void *hint, void *attributes) const;
  DnnlPrimitiveDesc owned(int status, void *desc) const;

  Library library;
  std::shared_ptr<Functions> f;
  void *engine = nullptr, *stream = nullptr;
};

/// The libraries to compare with, in their order; "" is the system's.
void setDnnl(const std::vector<std::string> &paths);
const std::vector<std::unique_ptr<Dnnl>> &dnnlLibraries();

} // namespace tandem::bench

#endif
