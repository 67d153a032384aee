//===- Plugin.h - libraries that connect processes ------------------------===//
#ifndef TANDEM_RUNTIME_COMM_PLUGIN_H
#define TANDEM_RUNTIME_COMM_PLUGIN_H

#include "runtime/artifact/Status.h"

#include <string>

namespace tandem::comm {

/// The folder of the library, or program, that this code is in, from the root
/// and with '/' at the end; empty where it is not known.
std::string ownFolder();

/// Opens the library `name` and returns its function `symbol`. "mpi" is
/// libtandem-mpi.so beside this library or program, in the folder lib beside
/// the program's, or where the system looks; a name with '/' is a path. It
/// stays open, since what it uses has threads and tables of its own. `what` is
/// what it would be: "transport".
Result<void *> openPlugin(const std::string &what, const std::string &name,
                          const char *symbol);

/// Opens libtandem-`name`.so and returns the table that its function `symbol`
/// gives, whose first member is its version.
template <typename Table>
Result<const Table *> openTable(const std::string &what,
                                const std::string &name, const char *symbol,
                                int version) {
  auto found = openPlugin(what, name, symbol);
  if (!found)
    return std::move(found).status();
  const Table *table = reinterpret_cast<const Table *(*)()>(*found)();
  if (table->version != version)
    return Status::unsupported("libtandem-" + name + ".so has version " +
                               std::to_string(table->version) +
                               ", but this program knows " +
                               std::to_string(version));
  return table;
}

} // namespace tandem::comm

#endif
