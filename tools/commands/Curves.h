//===- Curves.h - a training's log as a picture ---------------------------===//
#ifndef TANDEM_TOOLS_COMMANDS_CURVES_H
#define TANDEM_TOOLS_COMMANDS_CURVES_H

#include "runtime/artifact/Status.h"

#include <string>
#include <string_view>

namespace tandem::commands {

/// Returns a picture (SVG) of the steps that a log (Log.h), a table or lines of
/// JSON, has: the loss of steps and of evaluations, whose output is called
/// `loss`, other numbers of evaluations, and the learning rate, each in a panel
/// of its own if there is one. Of more steps than there are pixels, means are
/// drawn; what is NaN or infinite is a gap. Where steps were done again, the
/// later ones count.
std::string curvesOf(std::string_view log, bool isTable,
                     const std::string &loss);

/// Draws the log `from` into the file `to`.
Status drawCurves(const std::string &from, const std::string &to,
                  const std::string &loss);

} // namespace tandem::commands

#endif
