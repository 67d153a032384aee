//===- Variables.h - a rank's part of a parameter or state ----------------===//
#ifndef TANDEM_RUNTIME_CHECKPOINT_VARIABLES_H
#define TANDEM_RUNTIME_CHECKPOINT_VARIABLES_H

#include "runtime/comm/Shard.h"
#include "runtime/io/TensorFiles.h"
#include "runtime/model/Model.h"

#include <optional>
#include <span>

namespace tandem::checkpoint {

/// What `rank` has of a value: the block of the whole, and its shape in memory,
/// in which padding may lie behind the block.
struct Part {
  std::vector<int64_t> whole, begin, sizes; ///< the block
  std::vector<int64_t> shape;
  /// Of an optimizer's sum of gradients: how many dimensions it has in front of
  /// its parameter's. If one, each rank adds up by itself, and its index is a
  /// number among those that are summed up in the next update.
  std::optional<size_t> dimsOfRanks;

  /// True if a tensor of `tensor`, in a file, is this value: also of a sum that
  /// other ranks made, or one process.
  bool fits(std::span<const int64_t> tensor) const;
};
Part partOf(const runtime::Model &model, const artifact::Value &value,
            int rank);
/// The same of this rank.
Part ownPart(const runtime::Model &model, const artifact::Value &value);

/// Returns the model's parameters and states.
std::vector<const artifact::Value *> variablesOf(const runtime::Model &model);

/// Returns those that a checkpoint needs: without sums to which nothing was
/// added. A checkpoint that lacks a sum means one of nothing.
std::vector<const artifact::Value *> savedOf(const runtime::Model &model);

/// Returns the name that the files have a parameter or state by: its own, one
/// of its further names (a tied parameter's), or its own where they lack it.
/// Fails with Usage where they have it by several, which are not the same.
Result<std::string> nameIn(const io::TensorFiles &files,
                           const artifact::Value &value);

/// True if `name` is a further name of a parameter.
bool isFurtherName(const artifact::Manifest &manifest, std::string_view name);

/// Fails with Usage if the files have adapters of weights that the model has
/// without: it would compute what the base of the training does.
Status refuseAdapters(const io::TensorFiles &files,
                      const artifact::Manifest &manifest);

/// True if a tensor of the type `from` in a file may be a parameter or state of
/// the type `to`: the same, or one all of whose numbers `to` holds (bf16 for
/// f32). It is decided by types, and not by the numbers that happen to be
/// there; integers, bools and floats of 8 bits are no weights of other floats,
/// but quantized ones, whose scale is elsewhere.
bool mayBecome(artifact::DType from, artifact::DType to);

/// Returns this rank's part of the tensor `name`, whose shape fits; padding is
/// zeros. Nothing else of the tensor is read but the pieces that it lies in. Of
/// a sum that other ranks made, the first rank gets all, and others zeros.
Result<io::Array> readPart(const io::TensorFiles &files,
                           const std::string &name, const Part &part);

/// Returns the values of a part, without padding, dense and on the host: the
/// model's own memory, where it is so.
Result<runtime::Tensor> valuesOf(const runtime::Model &model,
                                 const std::string &name, const Part &part);

} // namespace tandem::checkpoint

#endif
