//===- Machine.cpp - the emulated computer --------------------------------===//
#include "cuda/emulator/Machine.h"

#include "cuda/emulator/Graphs.h"
#include "cuda/emulator/Modules.h"

#include <charconv>
#include <cstdio>
#include <cstdlib>

using namespace tandem::emulator;

namespace {
/// Reads a number from the environment; `otherwise` where there is none.
uint64_t number(const char *variable, uint64_t otherwise) {
  const char *text = std::getenv(variable);
  if (!text)
    return otherwise;
  const std::string_view view(text);
  uint64_t value = 0;
  auto [end, error] =
      std::from_chars(view.data(), view.data() + view.size(), value);
  if (error == std::errc() && end == view.data() + view.size())
    return value;
  std::fprintf(stderr, "cuda emulator: expected a number in %s but got '%s'\n",
               variable, text);
  return otherwise;
}
} // namespace

bool DeviceTraits::set(std::string_view text) {
  while (true) {
    const size_t comma = text.find(',');
    const std::string_view one = text.substr(0, comma);
    const size_t equals = one.find('=');
    const std::string_view key = one.substr(0, equals);
    const std::string_view value =
        equals == std::string_view::npos ? "" : one.substr(equals + 1);
    if (key == "name" && !value.empty()) {
      name = value;
    } else if (key == "multiprocessors") {
      const char *end = value.data() + value.size();
      auto [stop, error] = std::from_chars(value.data(), end, multiprocessors);
      if (error != std::errc() || stop != end || multiprocessors < 1)
        return false;
    } else if (one == "no-peers") {
      hasPeers = false;
    } else if (one == "no-peer-copies") {
      hasPeers = canCopyPeers = false;
    } else if (one == "no-pools") {
      hasPools = false;
    } else if (one == "no-registering") {
      canRegister = false;
    } else {
      return false;
    }
    if (comma == std::string_view::npos)
      return true;
    text.remove_prefix(comma + 1);
  }
}

Machine::Machine() : scheduler([this](Operation &o) { run(o); }) {
  newLane(); // the host's
  readEnvironment();
}

void Machine::readEnvironment() {
  traits = DeviceTraits();
  traits.count = static_cast<int>(
      std::min<uint64_t>(number("TANDEM_EMULATOR_DEVICES", 1), 16));
  traits.memory = number("TANDEM_EMULATOR_MEMORY", traits.memory);
  const char *like = std::getenv("TANDEM_EMULATOR_TRAITS");
  if (like && !traits.set(like))
    std::fprintf(stderr,
                 "cuda emulator: expected a list of 'name=TEXT', "
                 "'multiprocessors=N', 'no-peers', 'no-peer-copies', "
                 "'no-pools' or 'no-registering' in TANDEM_EMULATOR_TRAITS but "
                 "got '%s'\n",
                 like);
  scheduler.setPolicy("eager");
  failures.clear();
  const char *policy = std::getenv("TANDEM_EMULATOR_POLICY");
  if (policy && !scheduler.setPolicy(policy))
    std::fprintf(stderr,
                 "cuda emulator: expected 'eager', 'lazy', 'others-first' or "
                 "'random:SEED' in TANDEM_EMULATOR_POLICY but got '%s'\n",
                 policy);
  consistency = Consistency::Weak;
  const char *blocks = std::getenv("TANDEM_EMULATOR_CONSISTENCY");
  if (blocks && !setConsistency(blocks))
    std::fprintf(stderr,
                 "cuda emulator: expected 'weak', 'strong' or 'every' in "
                 "TANDEM_EMULATOR_CONSISTENCY but got '%s'\n",
                 blocks);
  const char *failure = std::getenv("TANDEM_EMULATOR_FAIL");
  if (failure && !failures.add(failure))
    std::fprintf(stderr,
                 "cuda emulator: expected a list of 'alloc:N', 'refuse:N', "
                 "'launch:N', 'lost:N', 'module:N', 'driver:V' or 'init:CODE' "
                 "in TANDEM_EMULATOR_FAIL but got '%s'\n",
                 failure);
}

bool Machine::setConsistency(std::string_view text) {
  if (text == "weak")
    consistency = Consistency::Weak;
  else if (text == "strong")
    consistency = Consistency::Strong;
  else if (text == "every")
    consistency = Consistency::Every;
  else
    return false;
  return true;
}

void Machine::restart() {
  scheduler.drain();
  for (const auto &stream : streams) {
    if (stream->last)
      observe(*stream->last);
    stream->last = nullptr;
    stream->delay = 0;
  }
  for (const auto &device : devices) {
    for (const auto &[operation, wasBlocking] : device->orphans)
      observe(*operation);
    device->orphans.clear();
    device->error = driver::CUDA_SUCCESS;
  }
  if (streams.size() > devices.size() || events.size() || execs.size() ||
      !memory.allocations().empty())
    return;
  streamCount = eventCount = 0;
  orders = hostTime = endTime = 0;
  shadow.clear();
  memory.restart();
}

void Machine::finish() {
  std::lock_guard<std::recursive_mutex> guard(lock);
  isClosing = true;
  scheduler.drain();
  for (size_t i = 0; const char *text = report.errorText(i); ++i)
    std::fprintf(stderr, "cuda emulator: %s\n", text);
  if (report.errorCount())
    std::fprintf(stderr, "cuda emulator: errors: %llu\n",
                 static_cast<unsigned long long>(report.errorCount()));
}

ThreadState &Machine::thread() {
  thread_local ThreadState state;
  return state;
}

Device *Machine::current() {
  const auto &contexts = thread().contexts;
  return contexts.empty() ? nullptr : contexts.back();
}

Machine &tandem::emulator::machine() {
  static Machine *instance = new Machine;
  static struct AtEnd {
    ~AtEnd() { instance->finish(); }
  } atEnd;
  return *instance;
}
