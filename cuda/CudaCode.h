//===- CudaCode.h - an artifact's code on a GPU ---------------------------===//
//
// Loads the kernels of an artifact and runs its programs. Its own memory:
// constants, and scratch memory of kernels that want some, one for each stream
// that they run on: zeros at first, then what the kernels left. The first run
// of a program with new actions or other overlaps makes a plan; later ones only
// say where the buffers lie.
//
// A run on a stream that captures is queued into the capture: nothing is
// allocated or waited for then, and no graph of its own is made.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_CUDA_CUDACODE_H
#define TANDEM_CUDA_CUDACODE_H

#include "cuda/MemoryCache.h"
#include "cuda/Plan.h"
#include "cuda/Profile.h"
#include "cuda/Staging.h"

namespace tandem::cuda {

/// What code needs of its device.
struct DeviceParts {
  const Context &context;
  EventPool &events;
  SideStreams &streams;
  MemoryCache &memory;
  Staging &staging;
  const CurrentProfile &profile;
  Libraries &libraries;
};

class CudaCode final : public runtime::DeviceCode {
public:
  /// Loads the code of the reader's chosen target. Needs a Scope around it.
  static Result<std::unique_ptr<runtime::DeviceCode>>
  load(DeviceParts device, const artifact::ArtifactReader &reader,
       const runtime::LoadOptions &options);
  ~CudaCode() override;

  Status run(const runtime::ProgramRun &run) override;
  std::string description() const override;

private:
  /// A program with the plans that were made of it.
  struct Program {
    const artifact::Program *program = nullptr;
    struct Entry {
      std::vector<runtime::Action> actions;
      std::vector<ByteRange> places;
      std::unique_ptr<Plan> plan;
    };
    std::vector<Entry> entries; ///< the last used first
    /// Of a library, for each launch; null: the kernel runs.
    std::vector<std::unique_ptr<PreparedCall>> calls;
    std::unique_ptr<bool[]> ofLibrary; ///< which launches have one
    /// Of the last run; constants are filled in.
    std::vector<void *> addresses;
    driver::CUstream stream = nullptr;
    bool wasCapturing = false, isPlaced = false;
  };

  CudaCode(DeviceParts device, artifact::ArtifactReader reader);
  Status loadModules();
  Status loadKernels();
  Status loadConstants();
  Status needRecorder();
  bool finishRuns();
  Status prepareCalls();
  Status reserveMemory();
  /// What ranks do together goes over `communicators`; made at first.
  Result<RankGroups *> ranksOver(const comm::MeshCommunicators *communicators,
                                 bool isCapturing);
  Status find(Program &program, const runtime::ProgramRun &run,
              driver::CUstream stream, bool isCapturing);
  Result<void *> scratchOf(driver::CUstream stream, int number,
                           bool isCapturing);
  /// Adds scratch memory that is zeros once `stream` is there.
  Result<void *> addScratch(std::pair<driver::CUstream, int> key,
                            driver::CUstream stream);
  Result<void *> allocate(int64_t bytes, driver::CUstream stream,
                          const std::string &what);

  /// Nobody's stream.
  static inline const driver::CUstream ofCaptures =
      driver::CU_STREAM_PER_THREAD;

  DeviceParts device;
  const Context &context;
  artifact::ArtifactReader reader; ///< keeps the manifest alive
  const artifact::Manifest &manifest;
  StreamTags tags;
  Concurrency concurrency;
  /// A side stream, for what the code does when it is loaded.
  driver::CUstream home = nullptr;
  /// Where calls of libraries are recorded for graphs, and graphs are brought
  /// to the device; null before there are any.
  driver::CUstream recorder = nullptr;
  std::vector<driver::CUmodule> modules;
  const char *loaded = "no kernels"; ///< which kind of code `modules` are
  std::vector<LoadedKernel> kernels;
  std::mutex mutex; ///< of all below: one run at a time
  std::vector<Program> programs;
  std::vector<driver::CUstream> streams; ///< of the run
  /// Those of callers. What runs on others, theirs wait for.
  std::vector<driver::CUstream> usedStreams;
  bool wasCaptured = false;          ///< by a caller
  std::vector<void *> given;         ///< the run's buffers with constants
  std::unique_ptr<RankGroups> ranks; ///< null before the first collective
  void *word = nullptr;              ///< of the device, for `ranks`
  char *constants = nullptr;
  int64_t scratchBytes = 0; ///< the most that a kernel wants
  /// By the caller's stream and the number in the program. Captured runs have
  /// theirs under `ofCaptures`: a graph may be replayed on any stream, beside
  /// runs on the one that captured it.
  std::map<std::pair<driver::CUstream, int>, void *> scratch;
};

} // namespace tandem::cuda

#endif
