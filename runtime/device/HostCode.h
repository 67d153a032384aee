//===- HostCode.h - an artifact's code on the host ------------------------===//
//
// Internal to the runtime. Kernels are functions of a code object (the kernel
// ABI of docs/ARCHITECTURE.md); a pool of threads runs each over its range,
// one launch after the other. Collectives of several ranks run beside those
// launches that do not need them. One run at a time.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_DEVICE_HOSTCODE_H
#define TANDEM_RUNTIME_DEVICE_HOSTCODE_H

#include "runtime/device/Backend.h"
#include "runtime/device/CodeObject.h"
#include "runtime/device/CollectiveThread.h"
#include "runtime/device/ThreadPool.h"

namespace tandem::runtime {

class HostCode final : public DeviceCode {
public:
  static Result<std::unique_ptr<DeviceCode>>
  load(const artifact::ArtifactReader &reader, const LoadOptions &options);

  Status run(const ProgramRun &run) override;
  /// Allocates the scratch memory of all threads.
  Status reserve(size_t program,
                 const std::shared_ptr<MemoryAccount> &account) override;
  /// Each thread zeros its own part: the system puts a page where the thread is
  /// that first writes to it, and the pool gives a thread the same part of the
  /// work again and again.
  Status clear(Storage &storage) override;
  int threads() const override { return pool.threads(); }

private:
  struct Launch {
    KernelFunction function = nullptr; ///< null: a copy or collective
    int64_t work = 0, grain = 1;
    size_t firstPointer = 0; ///< in ProgramCode::pointers
    size_t pointers = 0;     ///< how many
    bool isSmall = false;    ///< not worth waking a thread
    int collective = -1;     ///< in ProgramCode::collectives
    bool isJoined = false;   ///< goes with the launch before it
    int written = -1;        ///< position that a copy or zeros go to
    int64_t writtenBytes = 0;
  };
  struct ProgramCode {
    std::vector<Launch> launches;
    std::vector<int64_t> buffers; ///< of each pointer
    std::vector<void *> pointers; ///< in the run in progress
    std::vector<Touched> touched; ///< of each pointer, where others take part
    int64_t scratchBytes = 0;     ///< of one thread, with its gap
    std::vector<HostCollective> collectives;
    bool isOfSeveral = false; ///< ranks, is some collective
  };

  HostCode(CodeObject code, int threads)
      : code(std::move(code)), pool(threads) {}
  static void bind(ProgramCode &to, const artifact::Program &program,
                   const artifact::Manifest &manifest,
                   const std::vector<KernelFunction> &functions);
  Status runLaunches(const ProgramCode &program, const ProgramRun &run);
  static bool needsOthers(const Launch &launch, const ProgramCode &program);
  static BoundCollective collectiveOf(const Launch &launch,
                                      const ProgramCode &program);
  static bool canRunBeside(size_t begin, size_t end, const ProgramCode &program,
                           const ProgramRun &run);
  Status runExchange(size_t begin, size_t end, const ProgramCode &program,
                     const ProgramRun &run);
  Status waitFor(const Launch &launch, const ProgramCode &program,
                 const ProgramRun &run);
  /// `seconds`: gets those of each thread, unless null.
  void runKernelOf(const Launch &launch, const ProgramCode &program,
                   double *seconds);

  CodeObject code;
  ThreadPool pool;
  std::vector<ProgramCode> programs;
  std::shared_ptr<Storage> scratch;
  CollectiveThread beside;
  std::vector<BoundCollective> exchange; ///< kept, as is `parts`
  std::vector<comm::ReducedPart> parts;
};

} // namespace tandem::runtime

#endif
