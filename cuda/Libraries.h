//===- Libraries.h - cuBLASLt, cuDNN and NCCL, opened at run time ---------===//
//
// Makes calls of a vendor's library out of what an artifact says of a launch.
// A library is opened when the first call of it is prepared, and stays open for
// the rest of the process. No library, one that is too old, or one that has no
// algorithm for a shape: then there is no call, and the launch's own kernel
// runs. NCCL, by which ranks compute together (RankGroups.h), has nothing in
// its place.
//
// A call is prepared when code is loaded: descriptors and algorithm are chosen
// once, and a call that is queued allocates nothing. Only algorithms that give
// the same bits every time are chosen.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_CUDA_LIBRARIES_H
#define TANDEM_CUDA_LIBRARIES_H

#include "cuda/Context.h"
#include "cuda/LibraryApi.h"
#include "cuda/NcclApi.h"
#include "runtime/artifact/LibraryCall.h"

#include <span>
#include <vector>

namespace tandem::cuda {

/// Files of the libraries, each by the names that are tried in turn.
struct LibraryFiles {
  std::vector<std::string> blas = {}, dnn = {}, nccl = {};

  /// "libcublasLt.so.13", ...; before them what lies in the folders that the
  /// environment variable TANDEM_CUDA_LIBRARIES names, parted by ':', or below
  /// them as in Python's site-packages (nvidia/cublas/lib, ...).
  static LibraryFiles installed();
};

/// NCCL, opened.
struct NcclLibrary {
  nccl::Functions functions;
  int version = 0; ///< as it counts
};
/// Opens the first of these files. Unsupported, with the cause, where none is
/// there, or it is too old.
Result<NcclLibrary> openNcclLibrary(const std::vector<std::string> &files);

/// One launch as a call.
class PreparedCall {
public:
  virtual ~PreparedCall() = default;
  /// Queues the call. `buffers` are the launch's; `workspace` may be null if
  /// none was promised. Needs a Scope around it, and one caller at a time.
  virtual Status queue(driver::CUstream stream, std::span<void *const> buffers,
                       void *workspace) = 0;
  /// Returns "cublasLtMatmul".
  virtual const char *name() const = 0;
};

/// Safe to use from several threads. Its functions need a Scope around them.
class Libraries {
public:
  Libraries(const Context &context, LibraryFiles files)
      : context(context), files(std::move(files)) {}
  Libraries(const Libraries &) = delete;
  Libraries &operator=(const Libraries &) = delete;
  ~Libraries();

  Status openNccl();
  const nccl::Functions &nccl() const { return ncclFound.functions; }
  int ncclVersion() const { return ncclFound.version; }

  /// Prepares a call that may use `workspaceBytes` of memory. Unsupported, with
  /// the cause, where the library cannot do it.
  Result<std::unique_ptr<PreparedCall>>
  prepare(const artifact::LibraryCall &call, int64_t workspaceBytes);

  // For the calls:
  const library::BlasFunctions &blas() const { return blasFunctions; }
  const library::DnnFunctions &dnn() const { return dnnFunctions; }
  Status check(library::cublasStatus_t status, const char *name) const;
  Status check(library::cudnnStatus_t status, const char *name) const;

  const Context &context;
  std::mutex dnnMutex; ///< of cuDNN's handle, which has a stream
  library::cublasLtHandle_t blasHandle = nullptr;
  library::cudnnHandle_t dnnHandle = nullptr;

private:
  Status openBlas();
  Status openDnn();

  LibraryFiles files;
  std::mutex mutex; ///< of opening
  library::BlasFunctions blasFunctions;
  library::DnnFunctions dnnFunctions;
  NcclLibrary ncclFound;
};

/// Returns each library's name and, if it can be opened, "version 9.1"; else
/// why not.
std::vector<std::pair<std::string, Result<std::string>>> describeInstalled();

/// The part of a workspace that a library is given: from a multiple of this
/// many bytes on.
inline constexpr size_t workspaceAlignment = 256;
/// Returns what is left of `bytes` then, wherever they begin.
size_t usableWorkspace(int64_t bytes);
void *alignedWorkspace(void *workspace);

Result<std::unique_ptr<PreparedCall>>
prepareBlas(Libraries &libraries, const artifact::LibraryCall &call,
            size_t workspaceBytes);
Result<std::unique_ptr<PreparedCall>>
prepareDnn(Libraries &libraries, const artifact::LibraryCall &call,
           size_t workspaceBytes);

} // namespace tandem::cuda

#endif
