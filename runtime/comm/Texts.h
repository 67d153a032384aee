//===- Texts.h - texts that ranks give each other -------------------------===//
#ifndef TANDEM_RUNTIME_COMM_TEXTS_H
#define TANDEM_RUNTIME_COMM_TEXTS_H

#include "runtime/comm/Communicator.h"

#include <string>
#include <vector>

namespace tandem::comm {

/// Returns the texts of all ranks, in their order; all of them call it. Without
/// a communicator (null): this one.
Result<std::vector<std::string>> textsOfAll(Communicator *world,
                                            const std::string &text);
/// Returns the text of the first rank.
Result<std::string> textOfFirst(Communicator *world, const std::string &text);

} // namespace tandem::comm

#endif
