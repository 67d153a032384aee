//===- Text.h - text of files and users in messages -----------------------===//
//
// What a file or a command line says may be anything: escape sequences of a
// terminal, lines that look like messages of our own, megabytes. Whoever puts
// such text into a message or on a screen sends it through here.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_ARTIFACT_TEXT_H
#define TANDEM_RUNTIME_ARTIFACT_TEXT_H

#include <string>
#include <string_view>

namespace tandem::artifact {

/// Returns whether `text` has a control character (below 0x20, or 0x7f).
bool hasControls(std::string_view text);

/// Returns `text` with all that is no printable ASCII as "\xNN".
std::string printable(std::string_view text);

/// Returns the same in single quotes, cut where it is long.
std::string inQuotes(std::string_view text);

/// Returns `text` with its control characters, but newlines and tabs, as
/// "\xNN": a message as it goes to a screen.
std::string forScreen(std::string_view text);

} // namespace tandem::artifact

#endif
