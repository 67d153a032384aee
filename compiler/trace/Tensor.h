//===- Tensor.h - the proxy that a traced program computes with -----------===//
//
// A program written over Tensors is recorded, not run. A Tensor is a handle:
// copies name the same tensor, views share its storage, and methods that end in
// `_` change it: its data, or what the handle shows. Operators and functions
// (Functions.h) broadcast as NumPy does. A mistake (shapes that do not fit,
// say) is recorded at the caller's line and gives an invalid Tensor, on which
// everything else is silent; the Trace reports all mistakes when it is
// finished.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_TRACE_TENSOR_H
#define TANDEM_COMPILER_TRACE_TENSOR_H

#include "runtime/artifact/DType.h"

#include <cstdint>
#include <source_location>
#include <vector>

namespace tandem {

using artifact::DType;
using Shape = std::vector<int64_t>;
/// Where a call stands in the user's program.
using Where = std::source_location;

namespace trace {
class Recorder;
}

class Tensor {
public:
  Tensor() = default;
  Tensor(trace::Recorder *recorder, int id) : recorder_(recorder), id_(id) {}

  /// False for a default one and for the result of a mistake.
  bool valid() const { return recorder_ && id_ >= 0; }
  /// Sizes; those of an invalid tensor are empty.
  Shape shape() const;
  int64_t rank() const { return static_cast<int64_t>(shape().size()); }
  /// The size of a dimension; negative ones count from the end. 0 if there is
  /// no such dimension.
  int64_t size(int64_t dim) const;
  DType dtype() const;

  // Views: they share this tensor's storage.
  /// One size may be -1: it follows from the others.
  Tensor view(Shape shape, Where where = Where::current()) const;
  Tensor permute(Shape permutation, Where where = Where::current()) const;
  Tensor transpose(int64_t a, int64_t b, Where where = Where::current()) const;
  /// Elements start, start + step, ... below `limit` along `dim`; negative
  /// bounds count from the end.
  Tensor slice(int64_t dim, int64_t start, int64_t limit, int64_t step = 1,
               Where where = Where::current()) const;
  /// Element `index` along `dim`, which disappears.
  Tensor select(int64_t dim, int64_t index,
                Where where = Where::current()) const;
  /// Repeated to `shape` as broadcasting does.
  Tensor expand(Shape shape, Where where = Where::current()) const;
  Tensor unsqueeze(int64_t dim, Where where = Where::current()) const;
  /// Pieces of these sizes along `dim`.
  std::vector<Tensor> split(Shape sizes, int64_t dim = 0,
                            Where where = Where::current()) const;
  /// At most `count` pieces of equal sizes, the last one perhaps smaller.
  std::vector<Tensor> chunk(int64_t count, int64_t dim = 0,
                            Where where = Where::current()) const;
  /// Nothing is differentiated through it; a write through it changes the value
  /// and leaves the gradient as it was.
  Tensor detach(Where where = Where::current()) const;
  /// y[i...] = x[offset + sum(i * strides)], where x is this tensor, counted
  /// row-major (not its base). Elements may overlap; then it cannot be written.
  Tensor asStrided(Shape sizes, Shape strides, int64_t offset = 0,
                   Where where = Where::current()) const;
  /// The same bytes as elements of another type of the same width.
  Tensor bitcast(DType dtype, Where where = Where::current()) const;

  /// A copy with storage of its own.
  Tensor clone(Where where = Where::current()) const;

  // Writes: seen through every view of the storage.
  Tensor copy_(const Tensor &other, Where where = Where::current()) const;
  Tensor add_(const Tensor &other, Where where = Where::current()) const;
  Tensor add_(double number, Where where = Where::current()) const;
  Tensor sub_(const Tensor &other, Where where = Where::current()) const;
  Tensor sub_(double number, Where where = Where::current()) const;
  Tensor mul_(const Tensor &other, Where where = Where::current()) const;
  Tensor mul_(double number, Where where = Where::current()) const;
  Tensor div_(const Tensor &other, Where where = Where::current()) const;
  Tensor div_(double number, Where where = Where::current()) const;
  Tensor fill_(double number, Where where = Where::current()) const;
  Tensor zero_(Where where = Where::current()) const;
  Tensor neg_(Where where = Where::current()) const;
  Tensor exp_(Where where = Where::current()) const;
  Tensor sqrt_(Where where = Where::current()) const;
  Tensor relu_(Where where = Where::current()) const;
  Tensor sigmoid_(Where where = Where::current()) const;
  Tensor tanh_(Where where = Where::current()) const;

  // Changes of the handle: every copy of it shows them; views that were taken
  // before show what they showed.
  /// Exchanges two dimensions.
  Tensor transpose_(int64_t a, int64_t b, Where where = Where::current()) const;
  /// Shows what `other` shows: its storage, shape and strides.
  Tensor set_(const Tensor &other, Where where = Where::current()) const;
  /// Frees the storage (`elements` is 0) or gives it back its size.
  Tensor resize_(int64_t elements, Where where = Where::current()) const;

  trace::Recorder *recorder() const { return recorder_; }
  int id() const { return id_; }

private:
  trace::Recorder *recorder_ = nullptr;
  int id_ = -1;
};

/// An operand of an operator: a tensor or a number, with the place of use.
struct Operand {
  Operand(const Tensor &tensor, Where where = Where::current())
      : tensor(tensor), where(where) {}
  Operand(double number, Where where = Where::current())
      : number(number), isNumber(true), where(where) {}
  Tensor tensor;
  double number = 0;
  bool isNumber = false;
  Where where;
};

Tensor operator+(Operand a, Operand b);
Tensor operator-(Operand a, Operand b);
Tensor operator*(Operand a, Operand b);
Tensor operator/(Operand a, Operand b);
Tensor operator-(Operand a);
// In place.
const Tensor &operator+=(const Tensor &x, Operand y);
const Tensor &operator-=(const Tensor &x, Operand y);
const Tensor &operator*=(const Tensor &x, Operand y);
const Tensor &operator/=(const Tensor &x, Operand y);

} // namespace tandem

#endif
