//===- Views.h - what refs show, as values --------------------------------===//
//
// A storage holds a value that writes replace. A view is a way to see it: the
// whole of the storage, or a view op applied to another view. Views of a
// storage form a tree; equal views are one. Each view remembers the value it
// showed last, and is made again from its source once the storage was written.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_FUNCTIONALIZE_VIEWS_H
#define TANDEM_PASSES_FUNCTIONALIZE_VIEWS_H

#include "ir/Dialect.h"

#include "mlir/IR/Builders.h"

#include <deque>
#include <memory>
#include <optional>

namespace tandem {

struct View;

/// Memory that refs name.
struct StorageState {
  View *whole = nullptr;
  unsigned version = 0;  ///< counts the writes
  bool isFreed = false;  ///< it has no elements now
  bool isShared = false; ///< by inputs, none of which is the whole
  bool wasFreed = false; ///< it had none at the beginning
  /// The first write that gradients flow through, and the last one of any kind;
  /// null if there is none.
  mlir::Operation *visibleWrite = nullptr, *lastWrite = nullptr;
  mlir::Operation *resize = nullptr; ///< the last
  /// Of the argument that it came in with, and its position; null for an
  /// intermediate and for storage that is no argument.
  RoleAttr role;
  unsigned index = 0;

  /// What a message calls it.
  std::string str() const;
};

/// A way to see a storage.
struct View {
  StorageState *storage = nullptr;
  View *source = nullptr; ///< null: the whole
  /// The op that makes it from its source, and its attributes.
  mlir::StringAttr op;
  mlir::DictionaryAttr attributes;
  mlir::Location loc;
  mlir::RankedTensorType type;
  /// Nothing is differentiated through it, and writes through it are hidden.
  bool isHidden = false;
  /// What a handle shows at first: later views say what they are by it.
  bool isHandle = false;
  mlir::Value value;    ///< what it showed at `version`
  unsigned version = 0; ///< of the storage
  std::vector<View *> views;

  explicit View(mlir::Location loc) : loc(loc) {}
};

/// The storages of a block and their views.
class Views {
public:
  explicit Views(mlir::OpBuilder &builder) : builder(builder) {}

  /// New storage that holds `value`, which may be null if it is freed.
  StorageState *addStorage(mlir::RankedTensorType type, mlir::Value value,
                           mlir::Location loc);
  /// The view that the ref view op `op` makes of `source`.
  View *add(View *source, mlir::Operation *op);
  /// The view with exchanged dimensions.
  View *addTransposed(View *source, int64_t a, int64_t b, mlir::Location loc);
  /// The view that an alias of a role says: each step a dictionary with the
  /// name and the attributes of an op. Null, with an error at `loc`, if there
  /// is no such view.
  View *add(View *source, mlir::ArrayAttr steps, mlir::Location loc);
  /// The same view of another storage.
  View *rebase(View *view, StorageState *storage);

  /// What the view shows now, made with ops at the builder where it must be;
  /// null if its storage is freed.
  mlir::Value read(View *view);
  /// What it shows if that is known without new ops; null otherwise.
  mlir::Value known(const View *view) const;
  /// The new value of the whole storage if `value` is written through `view`;
  /// null if elements of a view on the way overlap, which is then `culprit`.
  /// `written` gets the views on the way with what they show then.
  mlir::Value
  scatter(View *view, mlir::Value value, mlir::Location loc, View *&culprit,
          llvm::SmallVectorImpl<std::pair<View *, mlir::Value>> &written);
  /// The storage holds `value` now.
  void overwrite(StorageState *storage, mlir::Value value);

private:
  View *intern(View *source, mlir::StringAttr op,
               mlir::DictionaryAttr attributes, mlir::RankedTensorType type,
               mlir::Location loc);
  mlir::Operation *build(const View *view, mlir::Value source);
  /// The same elements in the storage's own type.
  View *withoutBitcasts(View *view);

  mlir::OpBuilder &builder;
  std::deque<StorageState> storages;
  std::deque<View> views;
};

/// True if `base` is `view` or a view that it was made of.
bool isSourceOf(const View *base, const View *view);
/// The steps from `base` to `view`, for a role: dictionaries with `op` and its
/// attributes.
mlir::ArrayAttr stepsBetween(const View *base, const View *view);
/// The distances in memory between neighbours of `view` along each dimension,
/// if `base`, of which it is a view, is dense; nothing if they are not equal.
std::optional<llvm::SmallVector<int64_t>> stridesBetween(const View *base,
                                                         const View *view);
/// The op that made `view` together with others ("split"); null if none did.
mlir::StringAttr partOf(const View *view);
/// True if the elements of the views may have one in common.
bool mayOverlap(const View *a, const View *b);
/// True if two elements of the view may be one of its storage.
bool mayOverlapItself(const View *view);
/// True if a step of `view` changes the type of elements.
bool hasBitcast(const View *view);

} // namespace tandem

#endif
