//===- KernelCode.cpp - the code of kernels, for a page -------------------===//
//
// Assembly and PTX are in the artifact; what kernels were before is known while
// a model is compiled. Each text is compressed by itself: a page unpacks those
// that are looked at.
//
//===----------------------------------------------------------------------===//
#include "tools/tandem/KernelCode.h"

#include "compiler/emit/Disassemble.h"
#include "ir/Ops.h"
#include "tools/tandem/InspectCode.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/AsmState.h"
#include "llvm/Support/Base64.h"

#include <zlib.h>

using namespace mlir;
using namespace tandem;
using namespace tandem::commands;
using Json = nlohmann::ordered_json;
namespace am = tandem::artifact;

/// Of packed texts on a page. The page of GPT-2 small has 1.3 MiB without them
/// and is to have 3 MB at most.
static constexpr size_t kMostBytes = 5 << 18;

void KernelTexts::addPlanned(const Modules &modules) {
  auto &targets = kernels.emplace_back();
  for (const auto &module : modules) {
    auto &programs = targets.emplace_back();
    for (auto func : module.get().getOps<func::FuncOp>()) {
      std::vector<std::string> &texts = programs[func.getName().str()];
      // Without places, and with attributes where they are used.
      OpPrintingFlags flags;
      flags.useLocalScope();
      AsmState state(func, flags);
      for (auto kernel : func.getOps<KernelOp>()) {
        llvm::raw_string_ostream out(texts.emplace_back());
        kernel->print(out, state);
      }
    }
  }
}

Status KernelTexts::addLowered(const Modules &modules) {
  for (const auto &module : modules) {
    auto &texts = ir.emplace_back();
    auto kernels = module.get().lookupSymbol<ModuleOp>("cpu");
    if (!kernels)
      continue;
    SymbolTable symbols(kernels);
    for (auto function : kernels.getOps<LLVM::LLVMFuncOp>()) {
      auto text = llvmIrOf(kernels, symbols, function.getName());
      if (!text)
        return text.status();
      texts[function.getName().str()] = *std::move(text);
    }
  }
  return Status::success();
}

KernelTexts KernelTexts::of(size_t count, size_t i) const {
  if (count == 1)
    return *this;
  KernelTexts own;
  for (const auto &targets : kernels)
    if (i < targets.size())
      own.kernels.push_back({targets[i]});
  if (i < ir.size())
    own.ir.push_back(ir[i]);
  return own;
}

const std::vector<std::string> *
KernelTexts::planned(size_t size, size_t target,
                     const std::string &program) const {
  if (size >= kernels.size() || target >= kernels[size].size())
    return nullptr;
  auto found = kernels[size][target].find(program);
  return found == kernels[size][target].end() ? nullptr : &found->second;
}

std::string KernelTexts::llvmIr(size_t target,
                                const std::string &symbol) const {
  if (target >= ir.size())
    return "";
  auto found = ir[target].find(symbol);
  return found == ir[target].end() ? "" : found->second;
}

/// As a browser's DecompressionStream('deflate') takes it, in base64.
static Result<std::string> packed(const std::string &text) {
  uLongf size = compressBound(text.size());
  std::string bytes(size, '\0');
  if (compress2(reinterpret_cast<Bytef *>(bytes.data()), &size,
                reinterpret_cast<const Bytef *>(text.data()), text.size(),
                Z_BEST_COMPRESSION) != Z_OK)
    return Status::failed("code could not be compressed");
  bytes.resize(size);
  return llvm::encodeBase64(bytes);
}

/// The manifest's kernels, those first whose launches take longest, each with
/// the text that was planned of one of its launches.
struct OrderedKernel {
  double seconds = 0;
  size_t number = 0;
  std::string planned;
};

static std::vector<OrderedKernel> slowestFirst(const am::Manifest &manifest,
                                               size_t target, const Json &costs,
                                               const KernelTexts &texts) {
  std::vector<OrderedKernel> order(manifest.kernels.size());
  for (size_t i = 0; i < order.size(); ++i)
    order[i].number = i;
  for (const am::Program &program : manifest.programs) {
    const auto *planned = texts.planned(program.size, target, program.name);
    bool isKnown = planned && planned->size() == program.launches.size();
    for (size_t i = 0; i < program.launches.size(); ++i) {
      const am::Launch &launch = program.launches[i];
      if (!launch.hasKernel())
        continue;
      OrderedKernel &one = order[launch.kernel];
      one.seconds += costs[launch.kernel]["seconds"].get<double>();
      if (isKnown && one.planned.empty())
        one.planned = (*planned)[i];
    }
  }
  llvm::sort(order, [](const auto &a, const auto &b) {
    return std::pair(-a.seconds, a.number) < std::pair(-b.seconds, b.number);
  });
  return order;
}

Result<Json> commands::codeFacts(const am::ArtifactReader &reader,
                                 const Json &summaries,
                                 const KernelTexts &texts) {
  Json all = Json::array();
  size_t most = kMostBytes / reader.manifests().size();
  for (size_t i = 0; i < reader.manifests().size(); ++i) {
    am::ArtifactReader variant = reader;
    variant.choose(i);
    const am::Manifest &manifest = variant.manifest();
    bool isCuda = manifest.target.kind == "cuda";
    std::map<std::string, std::string> machine;
    std::string problem;
    if (isCuda) {
      machine = kernelPtx(variant);
    } else if (auto object = variant.code("object.cpu"); !object.empty()) {
      CpuTarget target;
      target.arch = manifest.target.arch;
      target.features = manifest.target.features;
      auto found = disassemble(object, target);
      if (found)
        machine = *std::move(found);
      else
        problem = found.status().message();
    }
    Json kernels = Json::object();
    size_t bytes = 0, leftOut = 0;
    for (const OrderedKernel &kernel :
         slowestFirst(manifest, i, summaries[i]["kernels"], texts)) {
      const std::string &symbol = manifest.kernels[kernel.number].symbol;
      const std::pair<const char *, std::string> parts[] = {
          {"MLIR", kernel.planned},
          {"LLVM IR", texts.llvmIr(i, symbol)},
          {isCuda ? "PTX" : "assembly", machine[symbol]}};
      Json code = Json::object();
      size_t ofKernel = 0;
      for (const auto &[kind, text] : parts) {
        if (text.empty())
          continue;
        auto one = packed(text);
        if (!one)
          return one.status();
        ofKernel += one->size();
        code[kind] = *std::move(one);
      }
      if (bytes + ofKernel > most) {
        ++leftOut;
        continue;
      }
      bytes += ofKernel;
      if (!code.empty())
        kernels[symbol] = std::move(code);
    }
    Json one = {{"bytes", bytes},
                {"most_bytes", most},
                {"left_out", leftOut},
                {"kernels", std::move(kernels)}};
    if (!problem.empty())
      one["problem"] = problem;
    all.push_back(std::move(one));
  }
  return all;
}
