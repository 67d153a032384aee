//===- Models.h - small models for the tests of shardings -----------------===//
//
// Without other sizes: batches of 12 rows, which 2, 3 and 4 ranks divide.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TESTS_SHARD_MODELS_H
#define TANDEM_TESTS_SHARD_MODELS_H

#include "compiler/trace/Functions.h"

namespace tandem::test {

struct Sizes {
  int64_t batch = 12, time = 4, width = 8, heads = 4, vocabulary = 8;
  uint64_t seed = 0; ///< of `random`
};

/// Two layers and cross entropy with labels that count for nothing.
void mlp(Trace &trace, const Sizes &sizes);
/// One block of a decoder: embeddings, layer norms, attention by heads of which
/// each has weights of its own, and an MLP.
void decoder(Trace &trace, const Sizes &sizes);
/// The block with one product for queries, keys and values.
void fusedDecoder(Trace &trace, const Sizes &sizes);
/// Convolutions, batch norm with running statistics, and both poolings.
void convolutions(Trace &trace, const Sizes &sizes);
/// Dropout, and a loss that is a mean.
void dropouts(Trace &trace, const Sizes &sizes);
/// Sums along the batch, sorts, and indices of rows: what has few rules.
void mixture(Trace &trace, const Sizes &sizes);
/// A loop over time and a branch that the data decides.
void flow(Trace &trace, const Sizes &sizes);
/// Two outputs and no loss; gradients of an input, too.
void outputs(Trace &trace, const Sizes &sizes);
/// One table that embeds and that gives the logits.
void tied(Trace &trace, const Sizes &sizes);

/// Some of many ops, on `seed`; the inputs have `width` and `vocabulary`
/// columns.
void random(Trace &trace, const Sizes &sizes);

} // namespace tandem::test

#endif
