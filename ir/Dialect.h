//===- Dialect.h - the tandem dialect: types, attributes, interfaces ------===//
//
// What everything on the compiler side includes; ops are in ir/Ops.h.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_IR_DIALECT_H
#define TANDEM_IR_DIALECT_H

#include "ir/Schedule.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/AffineMap.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/IntegerSet.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace tandem {

class Pullback;
namespace reference {
struct Array;
}

/// What engines decide by: what fuses, what is worth saving, who lowers it.
enum class OpClass {
  Constant,    ///< no operands; free wherever it is used
  View,        ///< moves elements, computes nothing
  Pointwise,   ///< element by element
  Reduction,   ///< combines along dimensions
  Contraction, ///< matrix products and convolutions; never recomputed
  Window,      ///< pooling
  Indexed,     ///< gather and scatter by data
  Composite,   ///< decomposes into others
  Flow,        ///< runs regions: branches and loops
  Collective,  ///< of several ranks; in order, never merged or recomputed
  Program,     ///< kernels, launches, yields
};

/// Returns "pointwise", "contraction", ...
llvm::StringRef stringify(OpClass opClass);

/// A result has no gradient (see OpBase.td).
template <typename ConcreteType>
class NotDifferentiable
    : public mlir::OpTrait::TraitBase<ConcreteType, NotDifferentiable> {};

/// No gradient may have to pass an op (see OpBase.td).
template <typename ConcreteType>
class RefusesGradient
    : public mlir::OpTrait::TraitBase<ConcreteType, RefusesGradient> {};

/// What mixed precision makes of an op (see OpBase.td).
template <typename ConcreteType>
class AutocastLow : public mlir::OpTrait::TraitBase<ConcreteType, AutocastLow> {
};
template <typename ConcreteType>
class AutocastFull
    : public mlir::OpTrait::TraitBase<ConcreteType, AutocastFull> {};

/// An axis of a mesh: its name, and how many ranks differ in it alone.
using MeshAxis = std::pair<mlir::StringAttr, int64_t>;

/// A result of a kernel and the input that it overwrites.
using InPlacePair = std::pair<unsigned, unsigned>;

/// What a value shares storage with: the property `alias` of its role,
/// `{of = "x", views = [...]}` or `{output = "y", views = [...]}`.
struct Alias {
  mlir::StringAttr of;     ///< an argument, or null
  mlir::StringAttr output; ///< an output, or null
  mlir::ArrayAttr views;   ///< from its value to this one
  mlir::TypeAttr type;     ///< of a storage that no argument shows, or null

  /// Of a role that says nothing: no views, not even an empty list of them.
  explicit operator bool() const { return bool(views); }
  static Alias from(mlir::DictionaryAttr property);
  mlir::DictionaryAttr toAttr(mlir::MLIRContext *context) const;
};

/// Names of the discardable attributes that the dialect knows.
inline constexpr llvm::StringLiteral kPhaseAttr = "tandem.phase";
inline constexpr llvm::StringLiteral kRoleAttr = "tandem.role";
inline constexpr llvm::StringLiteral kPassAttr = "tandem.pass";
inline constexpr llvm::StringLiteral kNoGradAttr = "tandem.no_grad";
inline constexpr llvm::StringLiteral kLossAttr = "tandem.loss";
inline constexpr llvm::StringLiteral kOptimizerAttr = "tandem.optimizer";
/// On the module: what inference computes of params and states alone goes to a
/// program of its own, `prepare`.
inline constexpr llvm::StringLiteral kPrepareAttr = "tandem.prepare";
inline constexpr llvm::StringLiteral kTargetAttr = "tandem.target";
inline constexpr llvm::StringLiteral kPlanAttr = "tandem.plan";
inline constexpr llvm::StringLiteral kBufferAttr = "tandem.buffer";
inline constexpr llvm::StringLiteral kKernelAttr = "tandem.kernel";
/// On an op made from a custom_vjp that refuses a second differentiation: its
/// name.
inline constexpr llvm::StringLiteral kFirstOrderAttr = "tandem.first_order";
/// On the module: positions of the graph's arguments that require grad and that
/// the backward updates.
inline constexpr llvm::StringLiteral kMutatedInBackwardAttr =
    "tandem.mutated_in_backward";
/// On a program: its outputs that are views of other values.
inline constexpr llvm::StringLiteral kAliasesAttr = "tandem.aliases";
/// On the module: the ranks that it is compiled for, a MeshAttr.
inline constexpr llvm::StringLiteral kMeshAttr = "tandem.mesh";
/// On a function: its types are those of one rank, where roles have a sharding.
inline constexpr llvm::StringLiteral kLocalAttr = "tandem.local";
/// On an op: the stream that the program placed it on.
inline constexpr llvm::StringLiteral kStreamAttr = "tandem.stream";
/// On a view: the op that made it together with others ("split").
inline constexpr llvm::StringLiteral kPartOfAttr = "tandem.part_of";

/// The most elements that a tensor can have: no sum or product of sizes that
/// follows from shapes overflows.
inline constexpr int64_t kMaxElements = int64_t(1) << 40;
/// True if no size is negative and there are at most kMaxElements, also of the
/// shape without its sizes of 0.
bool isTensorShape(llvm::ArrayRef<int64_t> shape);
/// True for f64, f32, f16, bf16, f8E4M3FN, f8E5M2, the signless and unsigned
/// integers of 64, 32, 16 and 8 bits, and i1 (bool).
bool isElementType(mlir::Type type);
/// True for ui64, ui32, ui16, ui8 and i1: what is extended with zeros.
bool isUnsignedType(mlir::Type type);
/// True if the integer type `type` has `number`.
bool holds(mlir::Type type, int64_t number);
/// True for f8E4M3FN and f8E5M2, which are stored, moved and cast, but not
/// computed with.
bool isNarrowFloat(mlir::Type type);
/// `number` as a double, rounded to the nearest; of an element type's value.
double numberOf(mlir::Type type, const llvm::APInt &number);
/// True for a tensor that ops can compute with: element type, static shape as
/// above, no encoding.
bool isTensorType(mlir::Type type);

/// The tensor type of a tensor, or of the value that a ref shows; null for any
/// other type.
mlir::RankedTensorType tensorTypeOf(mlir::Type type);

/// The bytes of a tensor in memory: dense, booleans one byte.
int64_t byteSize(mlir::RankedTensorType type);
/// The bytes of one element.
int64_t elementBytes(mlir::Type elementType);
/// True for floating-point elements that are computed with: only these have
/// gradients.
bool isDifferentiableType(mlir::Type type);

} // namespace tandem

#include "ir/Dialect.h.inc"
#include "ir/Enums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "ir/Attributes.h.inc"
#define GET_TYPEDEF_CLASSES
#include "ir/Interfaces.h.inc"
#include "ir/Types.h.inc"

#endif
