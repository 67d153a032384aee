//===- Variables.h - a rank's part of a parameter or state ----------------===//
#ifndef TANDEM_RUNTIME_CHECKPOINT_VARIABLES_H
#define TANDEM_RUNTIME_CHECKPOINT_VARIABLES_H

#include "runtime/comm/Shard.h"
#include "runtime/io/TensorFiles.h"
#include "runtime/model/Model.h"

namespace tandem::checkpoint {

/// What `rank` has of a value: the block of the whole, and its shape in memory,
/// in which padding may lie behind the block.
struct Part {
  std::vector<int64_t> whole, begin, sizes; ///< the block
  std::vector<int64_t> shape;
};
Part partOf(const runtime::Model &model, const artifact::Value &value,
            int rank);
/// The same of this rank.
Part ownPart(const runtime::Model &model, const artifact::Value &value);

/// Returns the model's parameters and states.
std::vector<const artifact::Value *> variablesOf(const runtime::Model &model);

/// Returns this rank's part of the tensor `name`, whose shape is that of the
/// whole; padding is zeros. Nothing else of the tensor is read but the pieces
/// that it lies in.
Result<io::Array> readPart(const io::TensorFiles &files,
                           const std::string &name, const Part &part);

/// Returns the values of a part, without padding, dense and on the host: the
/// model's own memory, where it is so.
Result<runtime::Tensor> valuesOf(const runtime::Model &model,
                                 const std::string &name, const Part &part);

} // namespace tandem::checkpoint

#endif
