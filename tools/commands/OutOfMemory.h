//===- OutOfMemory.h - a tool whose memory is out -------------------------===//
//
// Where an allocation fails, a tool ends with an error and the locks and
// temporary files that it has are removed: std::bad_alloc unwinds to `runTool`.
// On this way, memory may be asked for again (what ends a JSON document does,
// which may not throw), so some is kept back for it. Where that is not enough,
// the tool ends at once, but in words and with the same exit code.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_COMMANDS_OUTOFMEMORY_H
#define TANDEM_TOOLS_COMMANDS_OUTOFMEMORY_H

#include <string_view>

namespace tandem::commands {

/// Keeps memory back, and says what ends the process: the first allocation that
/// fails is tried again with some of it, a second one throws with the rest of
/// it free. `tool` is the program's name and lives on. Called first in main.
void prepareForOutOfMemory(std::string_view tool);

/// Prints that there is not enough memory, which needs none.
void printOutOfMemory();

} // namespace tandem::commands

#endif
