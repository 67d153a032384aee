//===- Functions.h - what a traced program can call -----------------------===//
//
// Names and defaults are PyTorch's where it has them. Images are NCHW, weights
// of convolutions OIHW, those of linear layers [out, in].
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_TRACE_FUNCTIONS_H
#define TANDEM_COMPILER_TRACE_FUNCTIONS_H

#include "compiler/trace/Trace.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace tandem {

// The pointwise ops (docs/ops.md), by their names: exp(x), logicalNot(x), and,
// broadcast, pow(x, y), logicalAnd(x, y), ...
#define TANDEM_UNARY(FUNCTION, OP, MNEMONIC)                                   \
  Tensor FUNCTION(const Tensor &x, Where where = Where::current());
#define TANDEM_BINARY(FUNCTION, OP, MNEMONIC)                                  \
  Tensor FUNCTION(const Tensor &x, const Operand &y);
#include "ir/ops/PointwiseFunctions.h.inc"

// One operand.
Tensor silu(const Tensor &x, Where where = Where::current());
/// `tanhApproximation`: 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))).
Tensor gelu(const Tensor &x, bool tanhApproximation = false,
            Where where = Where::current());
/// To the type that `x` has: `x` itself.
Tensor cast(const Tensor &x, DType dtype, Where where = Where::current());
/// x.detach(): the same storage, through which nothing is differentiated.
Tensor detach(const Tensor &x, Where where = Where::current());
/// Within bounds; at a bound the gradient goes to `x`.
Tensor clamp(const Tensor &x, std::optional<double> low,
             std::optional<double> high = {}, Where where = Where::current());
/// Each element is 0 with probability `p`, else x / (1 - p); which ones is
/// drawn from the state `random` (Trace::uniform). `x` itself where nothing is
/// dropped (p is 0, or not in training), and in the program that evaluates.
Tensor dropout(const Tensor &x, double p = 0.5, bool training = true,
               Where where = Where::current());

// Two operands, broadcast.
Tensor equal(const Tensor &x, const Operand &y);
Tensor notEqual(const Tensor &x, const Operand &y);
Tensor less(const Tensor &x, const Operand &y);
Tensor lessEqual(const Tensor &x, const Operand &y);
Tensor greater(const Tensor &x, const Operand &y);
Tensor greaterEqual(const Tensor &x, const Operand &y);
/// `condition ? x : y`.
Tensor where(const Tensor &condition, const Operand &x, const Operand &y);

// Reductions: over `dims` (negative ones count from the end; empty: over all),
// which disappear unless `keep`.
Tensor sum(const Tensor &x, Shape dims = {}, bool keep = false,
           Where where = Where::current());
Tensor mean(const Tensor &x, Shape dims = {}, bool keep = false,
            Where where = Where::current());
Tensor max(const Tensor &x, Shape dims = {}, bool keep = false,
           Where where = Where::current());
Tensor min(const Tensor &x, Shape dims = {}, bool keep = false,
           Where where = Where::current());
/// The first index of the largest, i64.
Tensor argmax(const Tensor &x, int64_t dim, Where where = Where::current());

/// The variance: squared differences from the mean, divided by their number
/// less `correction`.
Tensor var(const Tensor &x, Shape dims = {}, double correction = 1,
           bool keep = false, Where where = Where::current());
/// The p-norm; its gradient at 0 is 0.
Tensor norm(const Tensor &x, double p = 2, Shape dims = {}, bool keep = false,
            Where where = Where::current());
Tensor logSumExp(const Tensor &x, Shape dims = {}, bool keep = false,
                 Where where = Where::current());

// Orders: values, and where they were, i64. Ties stay in their order.
std::pair<Tensor, Tensor> sort(const Tensor &x, int64_t dim = -1,
                               bool descending = false,
                               Where where = Where::current());
std::pair<Tensor, Tensor> topk(const Tensor &x, int64_t k, int64_t dim = -1,
                               bool largest = true,
                               Where where = Where::current());

// Shape.
Tensor flip(const Tensor &x, Shape dims, Where where = Where::current());
/// Along a new dimension.
Tensor stack(const std::vector<Tensor> &tensors, int64_t dim = 0,
             Where where = Where::current());
Tensor concat(const std::vector<Tensor> &tensors, int64_t dim,
              Where where = Where::current());
/// `low` and `high` elements of `number` before and after each dimension.
Tensor pad(const Tensor &x, Shape low, Shape high, double number = 0.0,
           Where where = Where::current());

// Contractions.
/// Matrix product of the last two dimensions; leading ones broadcast.
Tensor matmul(const Tensor &a, const Tensor &b, Where where = Where::current());
/// Sums of products by an equation, as "bij,bjk->bik".
Tensor einsum(const std::string &equation, const std::vector<Tensor> &tensors,
              Where where = Where::current());
/// x w^T + bias over the last dimension of x.
Tensor linear(const Tensor &x, const Tensor &w, const Tensor &bias = {},
              Where where = Where::current());

struct Conv2dOptions {
  Shape stride = {1, 1};
  Shape padding = {0, 0}; ///< rows, columns; or top, bottom, left, right
  Shape dilation = {1, 1};
  int64_t groups = 1;
};
Tensor conv2d(const Tensor &x, const Tensor &w, const Tensor &bias = {},
              Conv2dOptions options = {}, Where where = Where::current());

struct Pool2dOptions {
  Shape kernel = {2, 2};
  Shape stride = {};      ///< empty: the kernel
  Shape padding = {0, 0}; ///< as of Conv2dOptions
  Shape dilation = {1, 1};
  bool countPadding = true; ///< average pooling: padding counts as elements
};
Tensor maxPool2d(const Tensor &x, Pool2dOptions options,
                 Where where = Where::current());
Tensor avgPool2d(const Tensor &x, Pool2dOptions options,
                 Where where = Where::current());

// Normalizations.
/// Over the trailing dimensions that `scale` has.
Tensor layerNorm(const Tensor &x, const Tensor &scale, const Tensor &bias,
                 double epsilon = 1e-5, Where where = Where::current());
/// Over all dimensions but the second. In training the batch's statistics are
/// used, and `mean` and `variance` (states) move toward them by `momentum` (0:
/// they are not written); in inference `mean` and `variance` are used.
Tensor batchNorm(const Tensor &x, const Tensor &scale, const Tensor &bias,
                 const Tensor &mean, const Tensor &variance,
                 double momentum = 0.1, double epsilon = 1e-5,
                 Where where = Where::current());
Tensor softmax(const Tensor &x, int64_t dim, Where where = Where::current());
Tensor logSoftmax(const Tensor &x, int64_t dim, Where where = Where::current());
/// softmax(scale q k^T + mask) v over [..., time, head size]; `causal`: each
/// time sees itself and earlier ones. Default scale: 1/sqrt(head size).
Tensor attention(const Tensor &q, const Tensor &k, const Tensor &v,
                 bool causal = false, std::optional<double> scale = {},
                 Where where = Where::current());

/// The gradients of the sum of `e`'s elements with respect to each of `wrt`,
/// taken inside of the program; they can be differentiated in their turn.
std::vector<Tensor> grad(const Tensor &e, const std::vector<Tensor> &wrt,
                         Where where = Where::current());

// Lookups and losses.
/// Row indices[...] of `table`, for each index.
Tensor embedding(const Tensor &table, const Tensor &indices,
                 Where where = Where::current());
/// x[.., index[.., i, ..], ..] along `dim`.
Tensor gather(const Tensor &x, int64_t dim, const Tensor &index,
              Where where = Where::current());
/// Elements along `dim`, which the index's dimensions replace.
Tensor indexSelect(const Tensor &x, int64_t dim, const Tensor &index,
                   Where where = Where::current());
/// `x` with elements of `source` at indices along `dim`: the last one stays;
/// or added.
Tensor scatter(const Tensor &x, int64_t dim, const Tensor &index,
               const Tensor &source, Where where = Where::current());
Tensor scatterAdd(const Tensor &x, int64_t dim, const Tensor &index,
                  const Tensor &source, Where where = Where::current());
/// 1 at the index in a new last dimension, else 0; i64.
Tensor oneHot(const Tensor &index, int64_t classes,
              Where where = Where::current());
/// Images [N, C, ...] of another size: "nearest", "linear", "bilinear",
/// "trilinear" or "bicubic".
Tensor interpolate(const Tensor &x, Shape size,
                   const std::string &mode = "nearest",
                   bool alignCorners = false, Where where = Where::current());
/// Mean of -log softmax(logits)[label] over the last dimension; rows whose
/// label is `ignoreIndex` do not count.
Tensor crossEntropy(const Tensor &logits, const Tensor &labels,
                    std::optional<int64_t> ignoreIndex = {},
                    Where where = Where::current());
Tensor mseLoss(const Tensor &x, const Tensor &target,
               Where where = Where::current());

} // namespace tandem

#endif
