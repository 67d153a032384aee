//===- Recorder.h - the module behind a trace -----------------------------===//
//
// Everything is recorded as refs: each op reads its operands and makes a ref of
// each result, views are views of refs, in-place ops write. At the end the refs
// that nobody writes become plain values (DemoteRefs), so that what is left of
// refs in a captured module is what is mutated or aliased.
//
// A tensor belongs to the region that it was recorded in: the program, one of
// the two regions of a custom_vjp, or the views of a declared alias. Used in
// another one it is a mistake.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_TRACE_RECORDER_H
#define TANDEM_COMPILER_TRACE_RECORDER_H

#include "compiler/capture/DemoteRefs.h"
#include "compiler/trace/Trace.h"
#include "ir/Ops.h"
#include "ir/Signature.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

#include <map>

namespace tandem::trace {

class Recorder {
public:
  explicit Recorder(const std::string &name);

  /// Records the op `tandem.<op>` on the values of `operands`; returns a tensor
  /// per result (invalid ones after a mistake).
  std::vector<Tensor> record(llvm::StringRef op,
                             llvm::ArrayRef<Tensor> operands,
                             llvm::ArrayRef<mlir::NamedAttribute> attributes,
                             Where where,
                             llvm::ArrayRef<mlir::Type> resultTypes = {});
  /// Records what the function builds (compiler/functions); a default tensor is
  /// an absent operand. Nothing after a mistake.
  std::vector<Tensor>
  recordCall(llvm::StringRef function, llvm::ArrayRef<Tensor> operands,
             llvm::ArrayRef<mlir::NamedAttribute> attributes, Where where);
  /// The same for a view: of the ref itself.
  Tensor recordView(llvm::StringRef op, const Tensor &source,
                    llvm::ArrayRef<mlir::NamedAttribute> attributes,
                    Where where, mlir::Type resultType = {});
  /// Records a change of what the handle `target` shows; `others` are further
  /// refs that the op takes.
  void recordHandle(llvm::StringRef op, const Tensor &target,
                    llvm::ArrayRef<Tensor> others,
                    llvm::ArrayRef<mlir::NamedAttribute> attributes,
                    Where where);
  void recordWrite(const Tensor &target, const Tensor &value, Where where);
  /// Tags what computed the value of `tensor`.
  void tag(const Tensor &tensor, llvm::StringRef tag, Where where);

  Tensor addArgument(RoleAttr role, mlir::RankedTensorType type, Where where);
  void addOutput(const std::string &name, const Tensor &tensor, Where where);
  Tensor addConstant(mlir::RankedTensorType type, double number, Where where);

  /// Records `tandem.<op>`, which draws random numbers: `operands`, and behind
  /// them the state of the program's random numbers, with the number of the
  /// draw. The first one makes the state, an argument `random`.
  Tensor recordDraw(llvm::StringRef op, llvm::ArrayRef<Tensor> operands,
                    llvm::ArrayRef<mlir::NamedAttribute> attributes,
                    Where where, llvm::ArrayRef<mlir::Type> resultTypes = {});

  /// Whether an argument or an output may have this name; if not, a mistake.
  bool expectName(llvm::StringRef name, Where where);
  /// A mistake of the program; returns an invalid tensor.
  Tensor mistake(Where where, const llvm::Twine &message);
  /// True if all are valid and of this recorder; otherwise, unless one is
  /// invalid because of an earlier mistake, that is a mistake.
  bool usable(llvm::ArrayRef<Tensor> tensors, Where where);

  RefType typeOf(const Tensor &tensor) const {
    return tensors[tensor.id()].type;
  }
  /// The ref that the tensor names now.
  mlir::Value refOf(const Tensor &tensor) const {
    return tensors[tensor.id()].ref;
  }
  /// A tensor for a ref of the region that is being recorded.
  Tensor add(mlir::Value ref);
  /// The value that the tensor holds now; `tensor` must be usable.
  mlir::Value read(const Tensor &tensor, mlir::Location loc);
  mlir::Location location(Where where, llvm::StringRef op = {});
  /// The attributes that scopes put on every op.
  llvm::SmallVector<mlir::NamedAttribute> tags();
  mlir::Type elementType(DType dtype);
  std::string qualified(const std::string &name) const;
  mlir::Builder attributes() { return mlir::Builder(&context); }

  Result<std::string> finish();

  std::vector<std::string> path; ///< names of the open module scopes

  /// Opens a scope in which what is recorded is differentiated, or not; returns
  /// what leaveScope() takes.
  int enterGradMode(bool enabled, Where where);
  /// One of mixed precision in `low`, or of none.
  int enterAutocast(std::optional<DType> low, Where where);
  int enterStream(int64_t stream, Where where);
  int enterCheckpoint(const std::string &name, Where where);
  /// Closes a scope, wherever it is among the open ones.
  void leaveScope(int id);

  mlir::func::FuncOp graph() { return func; }
  mlir::OpBuilder &ops() { return builder; }
  /// True while a region of a custom_vjp or of an alias is recorded.
  bool inRegion() const { return !regions.empty(); }
  /// The innermost region, for messages.
  const std::string &regionName() const {
    return regionNames[inRegion() ? regions.back().id : 0];
  }
  /// Reports a grad mode, and mixed precision, that are changed where a region
  /// ends, and closes the scopes that it opened.
  void closeScopes();

private:
  friend class RegionScope;

  struct Entry {
    mlir::Value ref;
    RefType type; ///< outlives the ref
    int region;
  };
  /// An open scope: a grad mode, mixed precision, a stream, or a region to
  /// compute again.
  struct Scope {
    int id;
    std::optional<bool> grad;
    int64_t stream;
    Where where;
    std::string checkpoint = {};
    mlir::Type autocast = {}; ///< f32: off
  };
  struct Region {
    int id;
    int firstScope; ///< of those that it opened; ids rise
  };
  bool differentiates() const;
  /// Each call of the program draws at an offset of its own.
  void advanceRandom();
  /// Reads what the ref shows, for an op of the open scopes.
  mlir::Operation *readHere(mlir::Value ref, mlir::Location loc);
  /// The position of the first scope that the innermost region opened.
  size_t firstScope() const;

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::func::FuncOp func;
  mlir::OpBuilder builder;
  std::vector<Entry> tensors; ///< by id
  std::vector<Scope> scopes;
  std::vector<Region> regions; ///< open ones; the program is not among them
  std::vector<std::string> regionNames = {"the program"}; ///< by id
  int nextScope = 0;
  std::map<std::string, int> checkpoints; ///< how many had each name
  struct Output {
    RoleAttr role;
    Tensor tensor;
  };
  std::vector<Output> outputs;
  std::vector<std::string> mistakes;
  Tensor random; ///< the seed and the offset of the draws; none yet if invalid
  Where firstDraw;
  int64_t draws = 0;
  bool finished = false;
};

/// While it lives, ops are recorded into a block of its own. Ends on exceptions
/// too: the recorder then goes on where it was.
class RegionScope {
public:
  RegionScope(Recorder &recorder, mlir::Block &block, const std::string &name);
  RegionScope(const RegionScope &) = delete;
  ~RegionScope();

private:
  Recorder &recorder;
  mlir::OpBuilder::InsertPoint outside;
};

/// Returns the one recorder of the operands; null if there is none.
Recorder *recorderOf(llvm::ArrayRef<Tensor> tensors);

} // namespace tandem::trace

#endif
