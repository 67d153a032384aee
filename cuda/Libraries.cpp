//===- Libraries.cpp - cuBLASLt, cuDNN and NCCL, opened at run time -------===//
//
// BlasCall.cpp, DnnCall.cpp and RankGroups.cpp have the calls.
//
//===----------------------------------------------------------------------===//
#include "cuda/Libraries.h"
#include "cuda/Symbols.h"

#include <algorithm>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <string_view>

namespace tandem::cuda {

using namespace library;

namespace {

/// Opens the first of the files that there is. Never closed: what a library has
/// on a device outlives its users.
Result<void *> openFirst(const std::vector<std::string> &files) {
  std::string problems;
  for (const std::string &file : files) {
    if (void *handle = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL))
      return handle;
    const char *why = ::dlerror();
    problems += (problems.empty() ? "" : "; ") +
                std::string(why ? why : "unknown reason");
  }
  return Status::unsupported("cannot open a library: " + problems);
}

std::string text(size_t version) {
  return std::to_string(version / 10000) + "." +
         std::to_string(version / 100 % 100);
}

/// What is wrong with a library of this version, whose major version must be
/// below `end`.
Status checkVersion(const char *name, size_t found, size_t oldest, size_t end) {
  if (found >= oldest && found < end)
    return Status::success();
  return Status::unsupported("expected " + std::string(name) + " " +
                             text(oldest) + " or later, below " + text(end) +
                             ", but got " + text(found));
}

} // namespace

/// The folders that TANDEM_CUDA_LIBRARIES names, each with those in which
/// Python's packages of the libraries have them below it.
static std::vector<std::string> namedFolders() {
  std::vector<std::string> folders;
  const char *named = ::secure_getenv("TANDEM_CUDA_LIBRARIES");
  std::string_view rest = named ? named : "";
  while (!rest.empty()) {
    std::string folder(rest.substr(0, rest.find(':')));
    rest.remove_prefix(std::min(rest.size(), folder.size() + 1));
    if (folder.empty())
      continue;
    for (const char *below : {"", "/nvidia/cu13/lib", "/nvidia/cublas/lib",
                              "/nvidia/cudnn/lib", "/nvidia/nccl/lib"})
      if (std::error_code error;
          std::filesystem::is_directory(folder + below, error))
        folders.push_back(folder + below + "/");
  }
  return folders;
}

LibraryFiles LibraryFiles::installed() {
  LibraryFiles files;
  std::vector<std::string> folders = namedFolders();
  folders.emplace_back(); // where the system looks
  for (const std::string &folder : folders) {
    for (const char *name : {"libcublasLt.so.13", "libcublasLt.so.12"})
      if (folder.empty() || std::filesystem::exists(folder + name))
        files.blas.push_back(folder + name);
    if (std::string name = folder + "libcudnn.so.9";
        folder.empty() || std::filesystem::exists(name))
      files.dnn.push_back(std::move(name));
    if (std::string name = folder + "libnccl.so.2";
        folder.empty() || std::filesystem::exists(name))
      files.nccl.push_back(std::move(name));
  }
  return files;
}

std::vector<std::pair<std::string, Result<std::string>>> describeInstalled() {
  auto describe = [](const std::vector<std::string> &files,
                     const char *function) -> Result<std::string> {
    Result<void *> opened = openFirst(files);
    if (!opened)
      return std::move(opened).status();
    size_t (*version)() = nullptr;
    std::string missing;
    find(*opened, function, version, missing);
    if (!missing.empty())
      return Status::unsupported("it has no " + missing);
    return "version " + text(version());
  };
  LibraryFiles files = LibraryFiles::installed();
  Result<NcclLibrary> nccl = openNcclLibrary(files.nccl);
  Result<std::string> found = nccl.status();
  if (nccl)
    found = "version " + text(size_t(nccl->version));
  return {{"cuBLASLt", describe(files.blas, "cublasLtGetVersion")},
          {"cuDNN", describe(files.dnn, "cudnnGetVersion")},
          {"NCCL", std::move(found)}};
}

size_t usableWorkspace(int64_t bytes) {
  auto all = static_cast<size_t>(std::max<int64_t>(bytes, 0));
  return all < 2 * workspaceAlignment ? 0 : all - workspaceAlignment;
}

void *alignedWorkspace(void *workspace) {
  auto at = reinterpret_cast<uintptr_t>(workspace);
  return reinterpret_cast<void *>((at + workspaceAlignment - 1) /
                                  workspaceAlignment * workspaceAlignment);
}

Status Libraries::check(cublasStatus_t status, const char *name) const {
  if (status == CUBLAS_STATUS_SUCCESS)
    return Status::success();
  const char *words = blasFunctions.getStatusString(status);
  return Status::failed(std::string(name) +
                        " failed: " + (words ? words : "error ") +
                        (words ? "" : std::to_string(status)));
}

Status Libraries::check(cudnnStatus_t status, const char *name) const {
  if (status == CUDNN_STATUS_SUCCESS)
    return Status::success();
  const char *words = dnnFunctions.getErrorString(status);
  return Status::failed(std::string(name) +
                        " failed: " + (words ? words : "error ") +
                        (words ? "" : std::to_string(status)));
}

Status Libraries::openBlas() {
  if (blasHandle)
    return Status::success();
  Result<void *> opened = openFirst(files.blas);
  if (!opened)
    return std::move(opened).status();
  BlasFunctions table;
  std::string missing;
#define TANDEM_LIBRARY_FUNCTION(member, symbol, result, parameters)            \
  find(*opened, #symbol, table.member, missing);
#include "cuda/BlasFunctions.def"
#undef TANDEM_LIBRARY_FUNCTION
  if (!missing.empty())
    return Status::unsupported("cuBLASLt has no " + missing);
  if (Status status =
          checkVersion("cuBLASLt", table.getVersion(), oldestBlas, 140000);
      !status)
    return status;
  blasFunctions = table;
  return check(table.create(&blasHandle), "cublasLtCreate");
}

Status Libraries::openDnn() {
  if (dnnHandle)
    return Status::success();
  Result<void *> opened = openFirst(files.dnn);
  if (!opened)
    return std::move(opened).status();
  DnnFunctions table;
  std::string missing;
#define TANDEM_LIBRARY_FUNCTION(member, symbol, result, parameters)            \
  find(*opened, #symbol, table.member, missing);
#include "cuda/DnnFunctions.def"
#undef TANDEM_LIBRARY_FUNCTION
  if (!missing.empty())
    return Status::unsupported("cuDNN has no " + missing);
  if (Status status =
          checkVersion("cuDNN", table.getVersion(), oldestDnn, 100000);
      !status)
    return status;
  dnnFunctions = table;
  return check(table.create(&dnnHandle), "cudnnCreate");
}

Result<NcclLibrary> openNcclLibrary(const std::vector<std::string> &files) {
  Result<void *> opened = openFirst(files);
  if (!opened)
    return Status::unsupported(
        "NCCL, by which GPUs compute together, is not there: " +
        opened.status().message() +
        " (TANDEM_CUDA_LIBRARIES names folders to look in)");
  NcclLibrary made;
  std::string missing;
#define TANDEM_LIBRARY_FUNCTION(member, symbol, result, parameters)            \
  find(*opened, #symbol, made.functions.member, missing);
#include "cuda/NcclFunctions.def"
#undef TANDEM_LIBRARY_FUNCTION
  if (made.functions.getVersion)
    (void)made.functions.getVersion(&made.version);
  if (Status status = checkVersion("NCCL", size_t(made.version),
                                   size_t(nccl::oldest), size_t(nccl::tooNew));
      !status)
    return status;
  if (!missing.empty())
    return Status::unsupported("NCCL " + text(size_t(made.version)) +
                               " has no " + missing);
  return made;
}

Status Libraries::openNccl() {
  std::lock_guard<std::mutex> lock(mutex);
  if (ncclFound.version)
    return Status::success();
  Result<NcclLibrary> opened = openNcclLibrary(files.nccl);
  if (!opened)
    return std::move(opened).status();
  ncclFound = *opened;
  return Status::success();
}

Libraries::~Libraries() {
  if (blasHandle)
    blasFunctions.destroy(blasHandle);
  if (dnnHandle)
    dnnFunctions.destroy(dnnHandle);
}

Result<std::unique_ptr<PreparedCall>>
Libraries::prepare(const artifact::LibraryCall &call, int64_t workspaceBytes) {
  std::lock_guard<std::mutex> lock(mutex);
  if (Status status = call.isMatmul() ? openBlas() : openDnn(); !status)
    return status;
  return call.isMatmul()
             ? prepareBlas(*this, call, usableWorkspace(workspaceBytes))
             : prepareDnn(*this, call, usableWorkspace(workspaceBytes));
}

} // namespace tandem::cuda
