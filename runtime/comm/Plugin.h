//===- Plugin.h - libraries that connect processes ------------------------===//
#ifndef TANDEM_RUNTIME_COMM_PLUGIN_H
#define TANDEM_RUNTIME_COMM_PLUGIN_H

#include "runtime/artifact/Status.h"

#include <string>

namespace tandem::comm {

/// Opens the library `name` and returns its function `symbol`. "mpi" is
/// libtandem-mpi.so beside this library or program, in the folder lib beside
/// the program's, or where the system looks; a name with '/' is a path. It
/// stays open, since what it uses has threads and tables of its own. `what` is
/// what it would be: "transport".
Result<void *> openPlugin(const std::string &what, const std::string &name,
                          const char *symbol);

} // namespace tandem::comm

#endif
