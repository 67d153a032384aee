//===- Programs.h - graphs as lists of statements -------------------------===//
//
// The language of oracle.txt (make-oracle.py): a program makes scalars and adds
// hooks, and ends with a call. `play` carries it out through graph.hpp; `model`
// says what must come of it, by rules as simple as they can be. A statement
// that names what is not there does nothing, in both.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TESTS_RUNTIME_GRAPH_PROGRAMS_H
#define TANDEM_TESTS_RUNTIME_GRAPH_PROGRAMS_H

#include <string>
#include <vector>

namespace tdm::testing {

/// A line, as its words.
using Statement = std::vector<std::string>;
using Program = std::vector<Statement>;

/// What came of a program: lines "log ...", "gradient NAME VALUE", "result N
/// VALUE", as in oracle.txt.
using Outcome = std::vector<std::string>;

Outcome play(const Program &program);
Outcome model(const Program &program);

/// Returns the program as text.
std::string toString(const Program &program);

/// "none" for no number.
std::string numberText(const float *value);

} // namespace tdm::testing

#endif
