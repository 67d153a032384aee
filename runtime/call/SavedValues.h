//===- SavedValues.h - what a context holds -------------------------------===//
//
// Internal to the runtime. What one forward keeps for its backward: buffers
// with saved values, references to what the backward reads where the forward
// found it, with the versions that it had, and whatever hooks packed. Several
// contexts may hold one SavedValues; the last gives it back to the program that
// made it, which uses its buffers again.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_CALL_SAVEDVALUES_H
#define TANDEM_RUNTIME_CALL_SAVEDVALUES_H

#include "runtime/call/Program.h"
#include "runtime/model/Model.h"

namespace tandem::runtime {

/// What a hook made of a value.
struct PackedValue {
  std::shared_ptr<void> packed;
  bool isPacked = false;
};

/// A saved result of a forward.
struct SavedResult : PackedValue {
  Tensor own;           ///< stays allocated once it was needed
  Tensor shared;        ///< instead: the storage of an output
  uint64_t version = 0; ///< of that

  const Tensor &value() const { return shared.defined() ? shared : own; }
};

/// A value that lies where the forward found it.
struct KeptValue : PackedValue {
  Tensor given;         ///< the caller's or the store's tensor
  Tensor value;         ///< what the forward read: that, or a copy
  Tensor own;           ///< the copy; stays allocated once it was needed
  uint64_t version = 0; ///< of `given`
};

struct SavedValues {
  const Program *program = nullptr;
  Stream stream = nullptr;          ///< of a device: that the program ran on
  std::vector<SavedResult> results; ///< for each result of the program
  std::vector<KeptValue> kept;      ///< for each of `program->kept`
  /// For each argument of the program: the strides of a gradient of what was
  /// given; empty: row-major.
  std::vector<Extents> layouts;
  std::shared_ptr<const SavedHooks> hooks;
  /// Holds what was taken from the context of an earlier program.
  std::shared_ptr<SavedValues> base;

  /// Lets go of all that is not a buffer of its own.
  void clear() {
    for (SavedResult &result : results) {
      result.shared = Tensor();
      static_cast<PackedValue &>(result) = {};
    }
    for (KeptValue &one : kept) {
      one.given = one.value = Tensor();
      static_cast<PackedValue &>(one) = {};
    }
    hooks.reset();
  }
};

/// What a Context points to.
struct ContextState {
  std::mutex mutex;                   ///< guards the members below
  std::shared_ptr<SavedValues> saved; ///< none once it is used
  std::string failure;                ///< why it was released early
  std::weak_ptr<ModelCore> owner;
};

} // namespace tandem::runtime

#endif
