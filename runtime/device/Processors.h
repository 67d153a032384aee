//===- Processors.h - which processors threads run on ---------------------===//
//
// What the system lets this process use, and where a thread is. Nothing here
// binds a thread: afterwards it may run wherever it was allowed to before.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_DEVICE_PROCESSORS_H
#define TANDEM_RUNTIME_DEVICE_PROCESSORS_H

#include <sched.h>

namespace tandem::runtime {

/// Returns the number of processors that this process may use, at least 1.
int availableThreads();

/// Returns the number of the processor that the calling thread runs on at this
/// moment, or -1 if the system does not tell.
int currentProcessor();

/// Moves the calling thread to a processor that it may use and that is not in
/// `taken`. Returns false, and does nothing, if there is none.
bool leaveProcessors(const cpu_set_t &taken);

} // namespace tandem::runtime

#endif
