//===- ExplainParts.h - what answers are made of --------------------------===//
#ifndef TANDEM_TOOLS_TANDEM_EXPLAINPARTS_H
#define TANDEM_TOOLS_TANDEM_EXPLAINPARTS_H

#include "tools/tandem/FactsView.h"

#include "runtime/artifact/Status.h"

#include <string>
#include <vector>

namespace tandem::commands::explain {

/// How many names are listed of many.
inline constexpr size_t kFew = 5;

/// "12.5 %".
std::string percent(double part);
/// "1 launch", "3 launches".
std::string things(size_t count, const std::string &one,
                   const std::string &many);
/// "'a', 'b' and 3 more".
std::string few(const std::vector<std::string> &names);

/// The error of a name that is not there, with names that are near it.
Status unknown(const std::string &what, const std::string &name,
               const std::vector<std::string> &known);

/// The launches of a program that read the slot ("argument" or "result") until
/// one writes another value to its buffer, or that write it: `access` is
/// "reads" or "writes".
std::vector<size_t> launchesOf(const nlohmann::ordered_json &program,
                               const std::string &place, size_t index,
                               const std::string &access);

/// What launches of a program run, each once.
std::vector<std::string> namesOf(const FactsView &view,
                                 const nlohmann::ordered_json &program,
                                 const std::vector<size_t> &launches);

} // namespace tandem::commands::explain

#endif
