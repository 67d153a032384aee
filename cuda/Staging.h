//===- Staging.h - copies of host memory that is not pinned ---------------===//
//
// The device reads and writes pinned host memory only. Copies of other host
// memory go through a ring of pinned pieces: while one is on its way, the host
// fills or empties the next. The pieces are made at the first such copy.
//
// Safe to use from several threads: one copy at a time. Its functions need a
// Scope around them.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_CUDA_STAGING_H
#define TANDEM_CUDA_STAGING_H

#include "cuda/Events.h"

#include <array>

namespace tandem::cuda {

class Staging {
public:
  Staging(const Context &context, EventPool &events)
      : context(context), events(events) {}
  ~Staging();

  /// Copies to the device; the host memory was read on return.
  Status upload(void *to, const void *from, int64_t bytes,
                driver::CUstream stream);
  /// Copies to the host; the host memory is written on return.
  Status download(void *to, const void *from, int64_t bytes,
                  driver::CUstream stream);

private:
  struct Piece {
    void *data = nullptr;
    driver::CUevent event = nullptr; ///< its last copy; null if there was none
  };
  Status open();
  Status start(Piece &piece, void *to, const void *from, int64_t bytes,
               driver::CUstream stream);
  Status finish(Piece &piece);

  const Context &context;
  EventPool &events;
  std::mutex mutex;
  std::array<Piece, 4> pieces;
  size_t next = 0; ///< the piece that waits the longest
};

} // namespace tandem::cuda

#endif
