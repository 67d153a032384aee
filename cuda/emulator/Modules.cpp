//===- Modules.cpp - code and kernels -------------------------------------===//
#include "cuda/emulator/Modules.h"

#include "cuda/emulator/BuiltinTwins.h"
#include "cuda/emulator/Limits.h"
#include "cuda/emulator/Machine.h"

#include <cstring>
#include <elf.h>

using namespace tandem;
using namespace tandem::emulator;
using namespace tandem::cuda::driver;

namespace {
std::map<std::string, Twin> &twins() {
  static std::map<std::string, Twin> all = builtinTwins();
  return all;
}

/// The size of an ELF image, of which the caller gives only the beginning: its
/// section headers are at its end.
size_t elfBytes(const Elf64_Ehdr &header) {
  return header.e_shoff + size_t(header.e_shentsize) * header.e_shnum;
}

std::unique_ptr<Module> loadElf(const Machine &machine,
                                const unsigned char *bytes, CUresult &result,
                                std::string &log) {
  Elf64_Ehdr header;
  std::memcpy(&header, bytes, sizeof(header));
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != EM_X86_64) {
    result = CUDA_ERROR_NO_BINARY_FOR_GPU;
    log = "the emulator runs emulation images and no code of GPUs (ELF "
          "machine " +
          std::to_string(header.e_machine) + ")";
    return nullptr;
  }
  auto image = Image::load(
      {reinterpret_cast<const std::byte *>(bytes), elfBytes(header)});
  if (!image) {
    result = CUDA_ERROR_INVALID_IMAGE;
    log = image.status().message();
    return nullptr;
  }
  (void)machine;
  auto module = std::make_unique<Module>();
  module->image = std::make_shared<const Image>(std::move(*image));
  return module;
}

bool isWordEnd(char c) {
  return c != '_' && c != '$' && !std::isalnum(static_cast<unsigned char>(c));
}

/// Returns the words that follow `keyword`, each time it stands in the text.
std::vector<std::string> wordsAfter(std::string_view text,
                                    std::string_view keyword) {
  std::vector<std::string> words;
  for (size_t at = text.find(keyword); at != std::string_view::npos;
       at = text.find(keyword, at)) {
    at += keyword.size();
    size_t from = text.find_first_not_of(" \t\r\n", at);
    if (from == at || from == std::string_view::npos)
      continue;
    size_t to = from;
    while (to < text.size() && !isWordEnd(text[to]))
      ++to;
    words.emplace_back(text.substr(from, to - from));
  }
  return words;
}

/// The newest version of PTX that a driver compiles, times 10; of drivers that
/// are not known, any.
int newestPtx(int driver) {
  constexpr std::pair<int, int> rows[] = {{12000, 80}, {12010, 81}, {12020, 82},
                                          {12030, 83}, {12040, 84}, {12050, 85},
                                          {12060, 85}, {12070, 86}, {12080, 87},
                                          {12090, 88}, {13000, 90}};
  for (auto [version, ptx] : rows)
    if (version == driver)
      return ptx;
  return 1000;
}

std::unique_ptr<Module> loadPtx(const Machine &machine, std::string_view text,
                                CUresult &result, std::string &log) {
  const auto targets = wordsAfter(text, ".target");
  if (text.find(".version") == std::string_view::npos || targets.empty() ||
      targets.front().compare(0, 3, "sm_") != 0) {
    result = CUDA_ERROR_INVALID_IMAGE;
    log = "expected an emulation image or PTX";
    return nullptr;
  }
  const int driver = machine.failures.driverVersion
                         ? machine.failures.driverVersion
                         : machine.traits.version;
  const std::string version(text.substr(text.find(".version") + 8, 6));
  if (std::atof(version.c_str()) * 10 > newestPtx(driver) + 0.5) {
    result = CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
    log = "the driver is older than the code's version of PTX";
    return nullptr;
  }
  const int wanted = std::atoi(targets.front().c_str() + 3);
  const int have = machine.traits.major * 10 + machine.traits.minor;
  if (wanted > have) {
    result = CUDA_ERROR_NO_BINARY_FOR_GPU;
    log = "the code is for " + targets.front() + ", the device is sm_" +
          std::to_string(have);
    return nullptr;
  }
  auto module = std::make_unique<Module>();
  std::string missing;
  for (const std::string &name : wordsAfter(text, ".entry")) {
    auto it = twins().find(name);
    if (it != twins().end())
      module->twins.emplace(name, it->second);
    else
      missing += (missing.empty() ? "'" : ", '") + name + "'";
  }
  if (!missing.empty()) {
    result = CUDA_ERROR_INVALID_PTX;
    log = "the emulator does not run PTX, and has no twin of " + missing;
    return nullptr;
  }
  return module;
}
} // namespace

void tandem::emulator::setTwin(const std::string &name, Twin twin) {
  twins()[name] = std::move(twin);
}

std::unique_ptr<Module> tandem::emulator::loadModule(const Machine &machine,
                                                     const void *image,
                                                     CUresult &result,
                                                     std::string &log) {
  result = CUDA_SUCCESS;
  const auto *bytes = static_cast<const unsigned char *>(image);
  if (std::memcmp(bytes, ELFMAG, SELFMAG) == 0)
    return loadElf(machine, bytes, result, log);
  return loadPtx(machine, static_cast<const char *>(image), result, log);
}

Function *tandem::emulator::findFunction(Machine &machine, Module &module,
                                         const std::string &name) {
  auto known = module.functions.find(name);
  if (known != module.functions.end())
    return known->second;
  auto function = std::make_unique<Function>();
  function->name = name;
  if (module.image) {
    function->kernel = module.image->find(name);
    if (!function->kernel)
      return nullptr;
    function->image = module.image;
    function->parameterBytes.assign(function->kernel->parameterBytes.begin(),
                                    function->kernel->parameterBytes.end());
    function->sharedBytes = function->kernel->sharedBytes;
  } else {
    auto it = module.twins.find(name);
    if (it == module.twins.end())
      return nullptr;
    function->twin = it->second;
    function->parameterBytes = it->second.parameterBytes;
  }
  function->dynamicLimit =
      kSharedPerBlock - std::min(kSharedPerBlock, function->sharedBytes);
  return module.functions[name] = &machine.functions.add(std::move(function));
}
