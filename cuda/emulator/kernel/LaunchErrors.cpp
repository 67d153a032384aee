//===- LaunchErrors.cpp - the errors of a launch --------------------------===//
#include "cuda/emulator/kernel/LaunchErrors.h"

namespace tandem::emulator::kernel {

static std::string triple(const uint32_t value[3]) {
  return "(" + std::to_string(value[0]) + ", " + std::to_string(value[1]) +
         ", " + std::to_string(value[2]) + ")";
}

void LaunchErrors::error(const uint32_t ctaid[3],
                         const artifact::EmulatedThread *thread,
                         const std::string &kind, const std::string &detail,
                         const char *site) {
  auto [it, isNew] = known.insert({{kind, site}, lines.size()});
  if (!isNew) {
    if (it->second < lines.size())
      ++lines[it->second].count;
    else
      ++dropped;
    return;
  }
  if (lines.size() == kMostLines) {
    it->second = kMostLines;
    ++dropped;
    return;
  }
  std::string text = "kernel '" + kernel + "', block " + triple(ctaid);
  if (thread)
    text += ", thread " + triple(thread->tid);
  text += ": " + kind;
  if (!detail.empty())
    text += ": " + detail;
  if (site)
    text += std::string(", at ") + site;
  lines.push_back({std::move(text)});
}

Status LaunchErrors::status() const {
  if (lines.empty())
    return Status::success();
  std::string text;
  for (const Line &line : lines) {
    if (!text.empty())
      text += '\n';
    text += line.text;
    if (line.count > 1)
      text += " (" + std::to_string(line.count) + " times)";
  }
  if (dropped)
    text += "\nkernel '" + kernel + "': " + std::to_string(dropped) +
            " more errors";
  return Status::failed(std::move(text));
}

} // namespace tandem::emulator::kernel
