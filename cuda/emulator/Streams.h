//===- Streams.h - queues, events and captures ----------------------------===//
#ifndef TANDEM_CUDA_EMULATOR_STREAMS_H
#define TANDEM_CUDA_EMULATOR_STREAMS_H

#include "cuda/emulator/Operation.h"

#include <thread>

namespace tandem::emulator {

struct Graph;
struct Node;
struct Stream;

/// A capture that goes on, or has ended while events still refer to it.
struct Capture {
  uint64_t id = 0;
  std::unique_ptr<Graph> graph;
  Stream *origin = nullptr;
  std::thread::id thread; ///< that began it
  driver::CUstreamCaptureMode mode = driver::CU_STREAM_CAPTURE_MODE_GLOBAL;
  bool isInvalid = false;
  bool hasEnded = false;

  Capture();
  ~Capture();
};

/// What a CUstream points to.
struct Stream {
  std::string name;
  unsigned number = 0; ///< of creation, over all devices
  Device *device = nullptr;
  bool isLegacy = false;
  unsigned flags = 0;
  Lane lane = 0;
  OperationPtr last;  ///< of its operations
  uint64_t delay = 0; ///< of the next operation, more than its own time

  std::shared_ptr<Capture> capture;
  std::vector<Node *> tail; ///< what the next captured node depends on

  /// True if it and the device's default stream wait for each other.
  bool isBlocking() const {
    return !isLegacy && !(flags & driver::CU_STREAM_NON_BLOCKING);
  }
};

/// What a CUevent points to.
struct Event {
  unsigned number = 0; ///< of creation
  unsigned flags = 0;
  Device *device = nullptr;
  OperationPtr operation; ///< null: not recorded yet
  std::string recordedOn; ///< the stream's name

  std::shared_ptr<Capture> capture; ///< recorded in this capture last
  std::vector<Node *> tail;

  std::string name() const { return "e" + std::to_string(number); }
};

} // namespace tandem::emulator

#endif
