//===- Oracle.h - what a program must do, on real storage -----------------===//
//
// Runs a captured program as a user would read it: every storage is a list of
// numbers that refs share, and every number carries the node of a tape through
// which it is differentiated. A visible write replaces number and node, a
// hidden one (in a no-grad region, or through a detached ref) the number alone;
// a hidden read gives a number without a node. The backward walks the tape and
// runs the backward of a custom_vjp where it stands in it, on the storage as it
// is then. Nothing here knows how programs are compiled.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TESTS_PROPERTY_ORACLE_H
#define TANDEM_TESTS_PROPERTY_ORACLE_H

#include "tests/property/Tape.h"

#include "ir/Ops.h"
#include "ir/reference/Array.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <map>
#include <optional>
#include <set>

namespace tandem::property {

using reference::Array;

/// The kinds of errors that a program can have.
enum class Mistake {
  Overlap,      ///< a write through a view whose elements overlap
  LeafWritten,  ///< a param that requires grad is written visibly
  SetAndWrite,  ///< set_ and a visible write of what requires grad
  SharedState,  ///< a backward uses storage that inputs share, none the whole
  NoStrides,    ///< an output or handle that no strides can show
  ModelHandle,  ///< the handle of a param or state changes
  OutputOverlap ///< outputs overlap in storage that nothing shows whole
};

/// A tensor while a program runs.
struct Numbers {
  std::vector<int64_t> shape;
  std::vector<Number> data;
  /// What it may depend on, by way of whole tensors, overwritten or not: bit i
  /// for argument i, bit 32 + k for custom_vjp k.
  uint64_t depends = 0;
  bool isUndefined = false;

  Array values() const;
};

struct RealStorage {
  std::vector<Number> data;
  uint64_t depends = 0;
  bool isWritten = false, isVisiblyWritten = false;
};

/// A ref while a program runs.
struct RealRef {
  int storage;
  Array positions;
  bool isHidden = false;
  /// The argument whose handle it is, or was taken of; -1: none.
  int handle = -1;
};

class Oracle {
public:
  /// Runs the forward of `func` on these values of its (ref) arguments.
  Oracle(mlir::func::FuncOp func, const std::vector<Array> &arguments);

  /// Runs the backward from cotangents of outputs ("o0") and of the new values
  /// of arguments ("update of x"); those that are not there are undefined.
  void backward(const std::map<std::string, Array> &cotangents);

  std::set<Mistake> required; ///< the program has these
  std::set<Mistake> allowed;  ///< a compiler may say that it has these

  /// An output, as it is when the forward is over.
  struct Output {
    Array value;
    std::optional<RealRef> ref;
    std::vector<Number> numbers;
    uint64_t depends;
    bool isDifferentiable() const;
  };
  std::vector<Output> outputs;
  std::vector<RealRef> atCall, atEnd; ///< what the arguments' handles show
  int numArgumentStorages = 0;        ///< storages below are of arguments
  /// What the storage of argument `i` holds now, in the layout of the call.
  Numbers contents(unsigned i) const;
  /// What all of the storage of argument `i` held at the call.
  const std::vector<double> &storageOf(unsigned i) const {
    return held[atCall[i].storage];
  }
  /// What a ref shows now.
  Numbers show(const RealRef &ref) const { return read(ref, false); }
  /// Something wrote the storage of argument `i`, perhaps visibly.
  bool isWritten(unsigned i) const;
  /// Argument `i` requires grad, and its elements are differentiated in the end
  /// as they were at the call: what was written visibly cancels.
  bool isSameLeaf(unsigned i) const;
  bool isVisiblyWritten(unsigned i) const;

  // After backward():

  /// The gradient of argument `i`, and whether anything reached it.
  Array gradient(unsigned i) const;
  bool isReached(unsigned i) const;
  /// What the defined cotangents may depend on.
  uint64_t defined = 0;
  /// True if it cannot be said from single elements whether the backward of a
  /// custom_vjp runs: only whole tensors lead from it or to it.
  bool isAmbiguous = false;
  /// Arguments that require grad and whose storage some backward that ran
  /// wrote.
  std::set<unsigned> writtenInBackward;
  double largest = 0; ///< of all numbers

private:
  /// A custom_vjp on the tape.
  struct Custom {
    CustomVjpOp op;
    int first; ///< node of the first element of the first result
    unsigned index;
    std::vector<Numbers> inputs, saved;
    std::vector<RealRef> refs;
    bool isCertain; ///< single elements of its inputs lead to an argument
  };

  void bindArguments(const std::vector<Array> &arguments);
  void run(mlir::Block &block, bool isPlain);
  void run(mlir::Operation *op, bool isPlain);
  bool runTensorOp(mlir::Operation *op, bool isHidden);
  void write(WriteOp op, bool isHidden);
  void runCustom(CustomVjpOp op, bool isPlain);
  void runCustomBackward(Custom &custom);
  void makeView(mlir::Operation *op, bool isHidden);
  void findOutputOverlaps();
  void findStrides();

  Numbers read(const RealRef &ref, bool isHidden) const;
  std::optional<Number> elementwise(mlir::Operation *op,
                                    llvm::ArrayRef<Number> x);

  mlir::func::FuncOp func;
  Tape tape;
  std::vector<RealStorage> storages;
  std::vector<std::vector<double>> held; ///< by storages at the call
  std::vector<Custom> customs;
  llvm::DenseMap<mlir::Value, Numbers> tensors;
  llvm::DenseMap<mlir::Value, RealRef> refs;
  std::vector<int> leaves; ///< the first node of each argument; -1: none
  /// By argument: the visible writes through its handle; true for one that may
  /// change nothing.
  std::vector<std::set<bool>> handleWrites;
  std::set<unsigned> leafWritten; ///< visibly
};

} // namespace tandem::property

#endif
