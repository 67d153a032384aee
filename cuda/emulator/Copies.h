//===- Copies.h - copies and fills as commands ----------------------------===//
#ifndef TANDEM_CUDA_EMULATOR_COPIES_H
#define TANDEM_CUDA_EMULATOR_COPIES_H

#include "cuda/emulator/Operation.h"

namespace tandem::emulator {

class Machine;
struct Stream;

/// A copy of `depth` slices of `height` rows of `width` bytes.
struct CopyShape {
  uintptr_t to = 0, from = 0;
  size_t width = 0, height = 1, depth = 1;
  size_t toPitch = 0, fromPitch = 0; ///< bytes from row to row
  size_t toSlice = 0, fromSlice = 0; ///< bytes from slice to slice
};

/// Where the caller says that memory is.
enum class Side { Host, Device, Any };

struct FillShape {
  uintptr_t to = 0;
  uint32_t value = 0;
  unsigned elementBytes = 1; ///< 1, 2 or 4
  size_t width = 0;          ///< in elements
  size_t height = 1, pitch = 0;
};

/// Returns the shapes of the driver's descriptions; INVALID_VALUE for arrays.
driver::CUresult shapeOf(const driver::CUDA_MEMCPY3D &copy, CopyShape &shape,
                         Side &to, Side &from);
driver::CUDA_MEMCPY3D as3D(const driver::CUDA_MEMCPY2D &copy);

/// Sets `command` to a copy as a node of a graph, or returns what is wrong:
/// device memory that is none. Pageable memory is used when the node runs.
driver::CUresult makeCopy(Machine &machine, const CopyShape &shape, Side to,
                          Side from, Command &command);
driver::CUresult makeFill(Machine &machine, const FillShape &shape,
                          Command &command);

/// Queues a copy. Pageable memory is read, or has been written, on return.
driver::CUresult copyOn(Machine &machine, Stream &stream,
                        const CopyShape &shape, Side to, Side from);

} // namespace tandem::emulator

#endif
