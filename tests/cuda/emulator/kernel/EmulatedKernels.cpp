//===- EmulatedKernels.cpp - kernels as text, run by the emulator ---------===//
#include "tests/cuda/emulator/kernel/EmulatedKernels.h"

#include "compiler/emit/Emulation.h"

#include "llvm/AsmParser/Parser.h"
#include "llvm/Bitcode/BitcodeWriter.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/SourceMgr.h"

#include <cstdlib>

using namespace tandem;
using namespace tandem::test;

Result<std::string> test::imageBytes(const std::string &ir) {
  llvm::LLVMContext context;
  llvm::SMDiagnostic problem;
  auto module = llvm::parseAssemblyString(
      "target triple = \"nvptx64-nvidia-cuda\"\n"
      "target datalayout = "
      "\"e-p6:32:32-i64:64-i128:128-i256:256-v16:16-v32:32-n16:32:64\"\n" +
          ir,
      problem, context);
  if (!module) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    problem.print("kernel", stream);
    return Status::failed(text);
  }
  std::string bitcode;
  llvm::raw_string_ostream stream(bitcode);
  llvm::WriteBitcodeToFile(*module, stream);
  return emitEmulation({{bitcode, ""}}, 1);
}

Result<emulator::Image> test::imageOf(const std::string &ir) {
  auto bytes = imageBytes(ir);
  if (!bytes)
    return bytes.status();
  return emulator::Image::load(std::as_bytes(std::span(*bytes)));
}

void *TestMemory::allocate(size_t bytes) {
  void *memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  std::memset(memory, 0xff, bytes);
  buffers[reinterpret_cast<uintptr_t>(memory)] = bytes;
  return memory;
}

TestMemory::~TestMemory() {
  for (auto [begin, bytes] : buffers)
    std::free(reinterpret_cast<void *>(begin));
}

emulator::MemoryRange TestMemory::allocation(const void *p) {
  auto address = reinterpret_cast<uintptr_t>(p);
  auto it = buffers.upper_bound(address);
  if (it == buffers.begin())
    return {};
  --it;
  if (address - it->first >= it->second)
    return {};
  return {reinterpret_cast<const void *>(it->first),
          reinterpret_cast<const void *>(it->first + it->second)};
}

void TestMemory::access(const void *p, size_t bytes, bool isWrite,
                        bool isAtomic) {
  emulator::MemoryRange range = allocation(p);
  size_t offset =
      static_cast<const char *>(p) - static_cast<const char *>(range.begin);
  log[range.begin].push_back({offset, bytes, isWrite, isAtomic});
}

std::string test::without(const std::string &text, const std::string &what,
                          int n) {
  size_t at = text.find(what);
  for (; n > 0 && at != std::string::npos; --n)
    at = text.find(what, at + 1);
  if (at == std::string::npos)
    return text;
  size_t begin = text.rfind('\n', at) + 1, end = text.find('\n', at);
  return text.substr(0, begin) + text.substr(end + 1);
}

std::string test::replaced(std::string text, const std::string &what,
                           const std::string &with) {
  size_t at = text.find(what);
  return at == std::string::npos ? text : text.replace(at, what.size(), with);
}
