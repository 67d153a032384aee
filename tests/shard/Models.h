//===- Models.h - small models for the tests of shardings -----------------===//
//
// Batches of 12 rows, which 2, 3 and 4 ranks divide.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TESTS_SHARD_MODELS_H
#define TANDEM_TESTS_SHARD_MODELS_H

#include "compiler/trace/Functions.h"

namespace tandem::test {

/// Two layers and cross entropy with labels that count for nothing.
void mlp(Trace &trace);
/// One block of a decoder: embeddings, layer norms, attention by heads of which
/// each has weights of its own, and an MLP.
void decoder(Trace &trace);
/// The block with one product for queries, keys and values.
void fusedDecoder(Trace &trace);
/// Convolutions, batch norm with running statistics, and both poolings.
void convolutions(Trace &trace);
/// Dropout, and a loss that is a mean.
void dropouts(Trace &trace);
/// Sums along the batch, sorts, and indices of rows: what has few rules.
void mixture(Trace &trace);
/// A loop over time and a branch that the data decides.
void flow(Trace &trace);
/// Two outputs and no loss; gradients of an input, too.
void outputs(Trace &trace);
/// One table that embeds and that gives the logits.
void tied(Trace &trace);

} // namespace tandem::test

#endif
