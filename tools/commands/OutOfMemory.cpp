//===- OutOfMemory.cpp - a tool whose memory is out -----------------------===//
#include "tools/commands/OutOfMemory.h"

#include "runtime/artifact/Status.h"

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <unistd.h>
#include <utility>

namespace tandem::commands {
namespace {

constexpr size_t firstBytes = 64 << 10, lastBytes = 1 << 20;
std::string_view name = "tandem";
void *first, *last;

/// Called by operator new, which then tries again.
void giveBack() {
  if (first) {
    std::free(std::exchange(first, nullptr));
    return;
  }
  std::free(std::exchange(last, nullptr));
  throw std::bad_alloc();
}

[[noreturn]] void end() {
  try {
    if (std::exception_ptr thrown = std::current_exception())
      std::rethrow_exception(thrown);
  } catch (const std::bad_alloc &) {
    printOutOfMemory();
    ::_exit(static_cast<int>(Code::Failed));
  } catch (const std::exception &error) {
    std::fprintf(stderr, "%.*s: error: internal error: %s\n",
                 static_cast<int>(name.size()), name.data(), error.what());
  } catch (...) {
  }
  std::abort();
}

} // namespace

void prepareForOutOfMemory(std::string_view tool) {
  name = tool;
  first = std::malloc(firstBytes);
  last = std::malloc(lastBytes);
  std::set_new_handler(giveBack);
  std::set_terminate(end);
}

void printOutOfMemory() {
  std::fprintf(stderr, "%.*s: error: not enough memory\n",
               static_cast<int>(name.size()), name.data());
}

} // namespace tandem::commands
