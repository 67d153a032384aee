//===- Broadcast.h - operands of one shape, as NumPy makes them -----------===//
#ifndef TANDEM_COMPILER_TRACE_BROADCAST_H
#define TANDEM_COMPILER_TRACE_BROADCAST_H

#include "compiler/trace/Tensor.h"

#include <string_view>

namespace tandem::trace {

/// Returns `x` repeated to `shape`; sizes match from the last dimension on.
Tensor broadcastTo(const Tensor &x, const Shape &shape, Where where);
/// Records a pointwise op of one operand.
Tensor unary(std::string_view op, const Tensor &x, Where where);
/// Records a pointwise op of two operands, broadcast to one shape; a number
/// takes the tensor's type. `attributes` as text is not needed by any.
Tensor binary(std::string_view op, const Operand &a, const Operand &b);
/// Broadcasts both to one shape, in place; false after a mistake.
bool broadcastTogether(Tensor &a, Tensor &b, Where where);
/// Returns the operand as a tensor like `other`.
Tensor asTensor(const Operand &operand, const Tensor &other);

} // namespace tandem::trace

#endif
