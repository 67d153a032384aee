//===- ManifestHost.cpp - rules of what lies in the host's memory ---------===//
//
// Part of `validate`: a device's program keeps saved values in the host's
// memory, which its kernels do not see: copies alone cross over.
//
//===----------------------------------------------------------------------===//
#include "runtime/artifact/ManifestRules.h"

#include <algorithm>
#include <optional>

namespace tandem::artifact {

namespace {

class HostRules {
public:
  HostRules(const Program &program, bool isCpu, const std::string &at,
            ManifestProblems &problems)
      : program(program), isCpu(isCpu), at(at), problems(problems) {}

  void run() {
    if (isCpu && program.hostBytes)
      problems.add(at + "/host_bytes",
                   "expected none for the target 'cpu', whose memory it is");
    checkSlots(program.arguments, at + "/arguments");
    checkSlots(program.results, at + "/results");
    for (size_t i = 0; i < program.launches.size(); ++i)
      checkLaunch(program.launches[i],
                  child(at + "/launches", static_cast<int64_t>(i)));
  }

private:
  void checkSlots(const std::vector<Slot> &slots, const std::string &list) {
    for (size_t i = 0; i < slots.size(); ++i)
      if (const Slot &slot = slots[i];
          slot.onHost && (isCpu || slot.role != Role::Saved || slot.alias))
        problems.add(child(list, static_cast<int64_t>(i)) + "/host",
                     "expected it only on a device's saved value that is no "
                     "output's storage");
  }

  /// The buffer at a position of a launch, if there is one.
  const Buffer *bufferAt(const Launch &launch, size_t position) const {
    if (position >= launch.buffers.size())
      return nullptr;
    int64_t index = launch.buffers[position];
    bool isThere =
        index >= 0 && index < static_cast<int64_t>(program.buffers.size());
    return isThere ? &program.buffers[index] : nullptr;
  }

  std::optional<int64_t> bytesOf(const Buffer &buffer) const {
    bool isArgument = buffer.place == Buffer::Place::Argument;
    if (!isArgument && buffer.place != Buffer::Place::Result)
      return buffer.bytes;
    const auto &slots = isArgument ? program.arguments : program.results;
    if (buffer.index < 0 || buffer.index >= static_cast<int64_t>(slots.size()))
      return std::nullopt;
    return tensorBytes(slots[buffer.index].dtype, slots[buffer.index].shape);
  }

  void checkLaunch(const Launch &launch, const std::string &at) {
    if (launch.isCopy())
      return checkCopy(launch, at);
    for (size_t i = 0; i < launch.buffers.size(); ++i)
      if (const Buffer *buffer = bufferAt(launch, i);
          buffer && isOnHost(program, *buffer))
        problems.add(child(at + "/buffers", static_cast<int64_t>(i)),
                     "expected no host memory in a kernel's launch");
  }

  void checkCopy(const Launch &launch, const std::string &at) {
    if (launch.buffers.size() != 2 || launch.reads != std::vector<int64_t>{0} ||
        launch.writes != std::vector<int64_t>{1} || !launch.choices.empty() ||
        launch.library) {
      problems.add(at, "expected a copy to read its first buffer and to write "
                       "its second, and no more");
      return;
    }
    const Buffer *from = bufferAt(launch, 0), *to = bufferAt(launch, 1);
    if (!from || !to)
      return;
    if (isOnHost(program, *from) == isOnHost(program, *to))
      problems.add(at + "/buffers", "expected a copy to lead from the device "
                                    "to the host, or back");
    std::optional<int64_t> read = bytesOf(*from), written = bytesOf(*to);
    if (read && written && *read != *written)
      problems.add(at + "/buffers", "expected buffers of one size but got " +
                                        std::to_string(*read) + " and " +
                                        std::to_string(*written) + " bytes");
  }

  const Program &program;
  bool isCpu;
  const std::string &at;
  ManifestProblems &problems;
};

} // namespace

void checkHostMemory(const Program &program, bool isCpu, const std::string &at,
                     ManifestProblems &problems) {
  HostRules(program, isCpu, at, problems).run();
}

} // namespace tandem::artifact
