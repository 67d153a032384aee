//===- Report.cpp - what the emulator found and saw -----------------------===//
#include "cuda/emulator/Report.h"

using namespace tandem::emulator;

namespace {
constexpr size_t kKeptErrors = 1000;
} // namespace

void Report::error(std::string text) {
  ++found;
  if (errors.size() < kKeptErrors)
    errors.push_back(std::move(text));
}

void Report::race(const Origin &second, bool secondWrites, const Origin &first,
                  bool firstWrote, const std::string &place) {
  if (!pairs.emplace(first.order, second.order).second)
    return;
  error(second.text() + " " + (secondWrites ? second.writes : "reads") + " " +
        place + " that " + first.text() + " " +
        (firstWrote ? first.writes : "reads") + ", and nothing orders the two");
}

const char *Report::errorText(size_t index) const {
  return index < errors.size() ? errors[index].c_str() : nullptr;
}

void Report::log(std::string line) {
  if (logging)
    lines.push_back(std::move(line));
}

const char *Report::logLine(size_t index) const {
  return index < lines.size() ? lines[index].c_str() : nullptr;
}

void Report::clearErrors() {
  found = 0;
  errors.clear();
  pairs.clear();
}

void Report::clear() {
  clearErrors();
  lines.clear();
  counts = {};
}
