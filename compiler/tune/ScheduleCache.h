//===- ScheduleCache.h - schedules that were found by measuring -----------===//
//
// A file in JSON that keeps what tuning has found, so that the same kernel is
// not measured twice and the same input gives the same artifact:
//
//   {"format": "tandem schedules", "version": 1, "entries": {
//     "<key>": {"kernel": "matmul 64x1024 ...", "machine": "...", "threads": 2,
//       "schedule": {"rows": 6, ...}, "seconds": 1e-4, "model_seconds": 2e-4}}}
//
// The key is a hash of the kernel (ops, shapes, attributes), of the target, of
// the machine's processor and the number of threads, and of the compiler's
// version. An empty schedule says that the model's was the best.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_TUNE_SCHEDULECACHE_H
#define TANDEM_COMPILER_TUNE_SCHEDULECACHE_H

#include "runtime/artifact/Status.h"

#include "ir/Dialect.h"

#include <map>
#include <string>

namespace tandem {

struct TunedSchedule {
  std::string kernel; ///< for people
  std::string machine;
  int threads = 0;
  ScheduleAttr schedule;   ///< null: the model's
  double seconds = 0;      ///< of a launch, as it was measured
  double modelSeconds = 0; ///< with the model's schedule
};

class ScheduleCache {
public:
  /// Reads the file, into a context that has the dialect; one that does not
  /// exist is empty. Fails at a file that is no such cache: nothing of it would
  /// be kept.
  static Result<ScheduleCache> read(const std::string &path,
                                    mlir::MLIRContext *context);

  /// The same of a file's text; `path` is what messages call it.
  static Result<ScheduleCache> parse(llvm::StringRef text,
                                     const std::string &path,
                                     mlir::MLIRContext *context);
  std::string text() const;

  const TunedSchedule *find(const std::string &key) const;
  void set(const std::string &key, TunedSchedule schedule);
  /// Writes the file, whole or not at all, with what others have added to it
  /// since it was read; processes that do so at one moment take turns by a
  /// lock on the file `path`.lock. Makes its folder if there is none.
  Status write(const std::string &path, mlir::MLIRContext *context) const;

  size_t size() const { return entries.size(); }

private:
  std::map<std::string, TunedSchedule> entries;
};

/// Where the cache is if nobody says: $XDG_CACHE_HOME or $HOME/.cache, there
/// tandem/schedules.json. Empty if there is no such folder to name.
std::string defaultCachePath();

} // namespace tandem

#endif
