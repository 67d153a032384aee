//===- Operation.h - a piece of work on a stream --------------------------===//
//
// A Command says what is to be done (a copy, a kernel, ...); it is what graphs
// keep and launch many times. An Operation is one doing of it: submitted once,
// to one stream, with all that it waits for.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_CUDA_EMULATOR_OPERATION_H
#define TANDEM_CUDA_EMULATOR_OPERATION_H

#include "cuda/DriverApi.h"
#include "cuda/emulator/Clock.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace tandem::emulator {

namespace driver = tandem::cuda::driver;

class Execution;
struct Device;

struct Command {
  enum class Kind {
    Kernel,
    Copy,
    Memset,
    Host,
    Allocate,
    Free,
    Delay,
    Empty, ///< only orders others
  };

  Kind kind = Kind::Empty;
  std::string what;      ///< "kernel 'add'", "copy to host", for messages
  uint64_t duration = 0; ///< nanoseconds of virtual time
  std::function<void(Execution &)> run;
  /// True while it waits for what is no operation of this machine; null: never.
  std::function<bool()> isHeld;
  Device *device = nullptr; ///< null: that of the stream it is submitted to
};

/// Who did something, for messages; outlives the operation.
struct Origin {
  std::string what, where; ///< where: "s1"
  const char *writes = "writes";
  uint64_t order = 0; ///< of submission; 0: the host

  std::string text() const {
    return order ? what + " (operation " + std::to_string(order) + ", " +
                       where + ")"
                 : what;
  }
};
using OriginPtr = std::shared_ptr<const Origin>;

struct Operation {
  OriginPtr origin;
  uint64_t order = 0;  ///< of submission, over all streams, from 1
  unsigned stream = 0; ///< number of the stream that it was submitted to
  Device *device = nullptr;
  Command::Kind kind = Command::Kind::Empty;
  Lane lane = 0;
  Tick tick = 0;
  Clock clock;
  std::function<void(Execution &)> run; ///< null once done
  std::function<bool()> isHeld;         ///< as the command's
  /// What it fails with when it runs; the device's context is lost then.
  driver::CUresult failure = driver::CUDA_SUCCESS;
  uint64_t start = 0, end = 0; ///< virtual time, nanoseconds
  bool done = false;

  // The scheduler's.
  unsigned unmet = 0; ///< operations not done yet that this one waits for
  std::vector<std::shared_ptr<Operation>> waitsFor; ///< those, at submission
  std::vector<Operation *> waiting;                 ///< who waits for this one
};
using OperationPtr = std::shared_ptr<Operation>;

} // namespace tandem::emulator

#endif
