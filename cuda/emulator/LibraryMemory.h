//===- LibraryMemory.h - what the emulated libraries have in common -------===//
//
// cuBLASLt's and cuDNN's functions (EntryBlas.cpp, EntryDnn.cpp) check their
// arguments and queue a command that computes with plain loops on the host.
// Their memory goes through here: what a command reads and writes is compared
// with other operations like a kernel's.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_CUDA_EMULATOR_LIBRARYMEMORY_H
#define TANDEM_CUDA_EMULATOR_LIBRARYMEMORY_H

#include "cuda/LibraryApi.h"
#include "cuda/emulator/Execution.h"
#include "cuda/emulator/Machine.h"

#include <optional>

namespace tandem::emulator {

/// The types of elements that the libraries know.
enum class Element { F32, F64, F16, BF16 };
std::optional<Element> elementOf(cuda::library::cudaDataType_t type);
std::optional<Element> elementOf(cuda::library::cudnnDataType_t type);
size_t bytesOf(Element element);

/// Reads the element at `index` as a number, and writes it, rounded.
double load(Element element, uintptr_t base, size_t index);
void store(Element element, uintptr_t base, size_t index, double value);

/// What an algorithm of the emulated libraries wants of a workspace that is
/// large enough, and how it is aligned.
inline constexpr size_t libraryWorkspace = 4096, libraryAlignment = 256;

/// Queues a call that takes about this many operations, or adds it to what the
/// stream captures. `run` runs with its memory already checked: `use` returns
/// false, with an error, where it must not be touched.
driver::CUresult pushLibraryCall(driver::CUstream stream, const char *name,
                                 double flops,
                                 std::function<void(Execution &)> run);

/// Uses a workspace: writes all of it.
bool useWorkspace(Execution &execution, uintptr_t begin, size_t bytes);

} // namespace tandem::emulator

#endif
