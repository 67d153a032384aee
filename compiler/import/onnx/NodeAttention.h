//===- NodeAttention.h - attention as the operators of ONNX have it -------===//
//
// What `Attention` of ai.onnx and the attentions of com.microsoft share: heads,
// masks by position, and scores that are results. Where no score is asked for
// it is the function scaled_dot_product_attention, and so, without a mask, the
// op that targets have kernels for.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_IMPORT_ONNX_NODEATTENTION_H
#define TANDEM_COMPILER_IMPORT_ONNX_NODEATTENTION_H

#include "compiler/import/onnx/Ops.h"

#include <functional>

namespace tandem::onnx {

/// x [N, T, H D] as [N, H, T, D]; null, and an error was given, if the heads
/// do not divide it.
Expr splitHeads(Node &node, const Expr &x, int64_t heads);
/// x [N, H, T, D] as [N, T, H D].
Expr joinHeads(const Expr &x);

/// x [N, T, H, D] whose first `dimension` elements (0: all) are pairs, turned
/// by angles with these cosines and sines [N, T, dimension / 2]. A pair is two
/// neighbours, or else elements of both halves. Null after a mistake.
Expr rotated(Node &node, Expr x, Expr cosine, Expr sine, int64_t dimension,
             bool isInterleaved);

class NodeAttention {
public:
  NodeAttention(Node &node, Expr q, Expr k, Expr v)
      : node(node), q(std::move(q)), k(std::move(k)), v(std::move(v)) {}

  // What may be said before `build`.

  double scale = 0;   ///< 0: 1 / sqrt(D)
  double softcap = 0; ///< 0: none
  bool isCausal = false;
  int64_t past = 0; ///< how many keys stand before the first query's own
  Expr pasts;       ///< the same of each sequence, [N] of i64, instead
  Expr lengths;     ///< [N] of i64: keys from there on are padding
  int64_t left = -1, right = -1; ///< how far a query sees; -1: all
  /// Bools, true where a key is seen, or floats that are added; stretched to
  /// [N, H, T, S], the last dimension at its end.
  Expr mask;
  mlir::Type precision; ///< of softmax, if it is wider than that of scores
  /// Which scores are wanted: of the products (0), after the cap (1), with the
  /// mask (2), after softmax (3); -1: none.
  int64_t wanted = -1;

  /// What scores, and what they are after softmax, are replaced by: tensors of
  /// the same type, null after a mistake.
  std::function<Expr(const Expr &)> changeScores, changeShares;

  /// y [N, H, T, E] for q [N, H, T, D], k [N, G, S, D] and v [N, G, S, E], G a
  /// divisor of H. A query that sees no key gives 0. Null after a mistake.
  Expr build();
  /// The scores that were wanted, of q's type.
  Expr scores;

private:
  bool check();
  Expr where(ComparePredicate predicate, const Expr &a, const Expr &b,
             Expr with);
  Expr seen();
  Expr wholeMask();
  Expr written(const Expr &mask);

  Node &node;
  Expr q, k, v;
};

} // namespace tandem::onnx

#endif
