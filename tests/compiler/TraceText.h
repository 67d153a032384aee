//===- TraceText.h - what tests of the tracer share -----------------------===//
#ifndef TANDEM_TESTS_COMPILER_TRACETEXT_H
#define TANDEM_TESTS_COMPILER_TRACETEXT_H

#include "compiler/trace/CustomVjp.h"
#include "compiler/trace/Functions.h"

#include <gtest/gtest.h>

namespace tandem {

/// The module of a right program.
inline std::string textOf(Trace &trace) {
  auto text = trace.finish();
  EXPECT_TRUE(text.ok()) << text.status().message();
  return text ? *text : "";
}

/// The mistakes of a wrong one.
inline std::string mistakeOf(Trace &trace) {
  auto text = trace.finish();
  EXPECT_FALSE(text.ok());
  return text.status().message();
}

inline bool contains(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos;
}

inline int count(const std::string &text, const std::string &part) {
  int n = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at)
    ++n;
  return n;
}

/// The lines of `text` that have `part`.
inline std::string linesWith(const std::string &text, const std::string &part) {
  std::string lines;
  for (size_t at = 0; at < text.size();) {
    size_t end = text.find('\n', at);
    std::string line = text.substr(at, end - at);
    if (contains(line, part))
      lines += line + "\n";
    at = end == std::string::npos ? text.size() : end + 1;
  }
  return lines;
}

} // namespace tandem

#endif
