//===- Pieces.h - values that several ranks have together -----------------===//
#ifndef TANDEM_RUNTIME_MODEL_PIECES_H
#define TANDEM_RUNTIME_MODEL_PIECES_H

#include "runtime/comm/MeshCommunicators.h"
#include "runtime/tensor/Tensor.h"

namespace tandem::runtime {

/// Returns the manifest with the shapes of whole inputs, params, states and
/// outputs, among the values and in the programs.
artifact::Manifest wholeManifest(const artifact::Manifest &manifest);

/// Returns the tensor, on the host, of which each rank has a piece, as `value`
/// says; all ranks call it. Without communicators or a value, or where the
/// piece is the whole: that, if it is on the host.
Result<Tensor> wholeOf(const Tensor &piece, const artifact::Value *value,
                       const comm::MeshCommunicators *communicators);

/// Returns this rank's piece, as `value` says, of `whole`, which is on the
/// host; padding is zeros. Fails with Usage where `whole` has other sizes than
/// it should.
Result<Tensor> pieceOf(const Tensor &whole, const artifact::Value &value,
                       const comm::MeshCommunicators *communicators);

} // namespace tandem::runtime

#endif
