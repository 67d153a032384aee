//===- Disassemble.cpp - the code of kernels as text ----------------------===//
#include "compiler/emit/Disassemble.h"
#include "compiler/emit/Chunks.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/MCAsmInfo.h"
#include "llvm/MC/MCContext.h"
#include "llvm/MC/MCDisassembler/MCDisassembler.h"
#include "llvm/MC/MCInst.h"
#include "llvm/MC/MCInstPrinter.h"
#include "llvm/MC/MCInstrAnalysis.h"
#include "llvm/MC/MCInstrInfo.h"
#include "llvm/MC/MCRegisterInfo.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/Format.h"

#include <set>

using namespace mlir;
using namespace tandem;

namespace {
/// What LLVM knows of a processor's instructions.
class Instructions {
public:
  static Result<std::unique_ptr<Instructions>> of(const llvm::Triple &triple,
                                                  const CpuTarget &target);
  /// The text of a function's bytes.
  std::string textOf(llvm::ArrayRef<uint8_t> bytes);

private:
  /// What is no instruction is one byte.
  bool decode(llvm::ArrayRef<uint8_t> bytes, uint64_t at, llvm::MCInst &inst,
              uint64_t &size) {
    inst.clear();
    auto status = disassembler->getInstruction(inst, size, bytes.drop_front(at),
                                               at, llvm::nulls());
    if (status != llvm::MCDisassembler::Fail && size > 0)
      return true;
    size = 1;
    return false;
  }

  bool isX86 = false;
  llvm::MCTargetOptions options;
  std::unique_ptr<const llvm::MCRegisterInfo> registers;
  std::unique_ptr<const llvm::MCAsmInfo> syntax;
  std::unique_ptr<const llvm::MCSubtargetInfo> processor;
  std::unique_ptr<const llvm::MCInstrInfo> instructions;
  std::unique_ptr<const llvm::MCInstrAnalysis> analysis;
  std::unique_ptr<llvm::MCContext> context;
  std::unique_ptr<const llvm::MCDisassembler> disassembler;
  std::unique_ptr<llvm::MCInstPrinter> printer;
};
} // namespace

Result<std::unique_ptr<Instructions>>
Instructions::of(const llvm::Triple &triple, const CpuTarget &target) {
  StringRef arch = llvmProcessor(target.arch);
  std::string error, features;
  const llvm::Target *row = llvm::TargetRegistry::lookupTarget(triple, error);
  Status missing = Status::unsupported(
      "no disassembler for '" + triple.getArchName().str() + "' is here");
  if (!row)
    return missing;
  for (const std::string &feature : target.features)
    features += (features.empty() ? "+" : ",+") + feature;
  auto made = std::make_unique<Instructions>();
  made->isX86 = triple.isX86();
  made->registers.reset(row->createMCRegInfo(triple));
  made->syntax.reset(
      row->createMCAsmInfo(*made->registers, triple, made->options));
  made->processor.reset(row->createMCSubtargetInfo(triple, arch, features));
  made->instructions.reset(row->createMCInstrInfo());
  made->analysis.reset(row->createMCInstrAnalysis(made->instructions.get()));
  made->context = std::make_unique<llvm::MCContext>(
      triple, made->syntax.get(), made->registers.get(), made->processor.get());
  made->disassembler.reset(
      row->createMCDisassembler(*made->processor, *made->context));
  made->printer.reset(row->createMCInstPrinter(
      triple, made->syntax->getAssemblerDialect(), *made->syntax,
      *made->instructions, *made->registers));
  if (!made->disassembler || !made->printer || !made->analysis)
    return missing;
  made->printer->setPrintBranchImmAsAddress(true);
  return made;
}

std::string Instructions::textOf(llvm::ArrayRef<uint8_t> bytes) {
  std::set<uint64_t> targets;
  llvm::MCInst inst;
  uint64_t size = 0, target = 0;
  for (uint64_t at = 0; at < bytes.size(); at += size)
    if (decode(bytes, at, inst, size) &&
        analysis->evaluateBranch(inst, at, size, target))
      targets.insert(target);
  std::string text;
  llvm::raw_string_ostream out(text);
  for (uint64_t at = 0; at < bytes.size(); at += size) {
    if (targets.contains(at))
      out << llvm::format_hex(at, 1) << ":\n";
    if (decode(bytes, at, inst, size)) {
      // For x86 the printer counts jumps from the next instruction.
      printer->printInst(&inst, isX86 ? at + size : at, "", *processor, out);
      out << '\n';
      continue;
    }
    out << "\t.byte\t" << llvm::format_hex(bytes[at], 4) << '\n';
  }
  return text;
}

/// The functions that an object exports, by their addresses.
static llvm::Expected<std::map<uint64_t, std::string>>
exportedBy(const llvm::object::ELFObjectFileBase &file) {
  std::map<uint64_t, std::string> exported;
  for (const llvm::object::ELFSymbolRef symbol :
       file.getDynamicSymbolIterators()) {
    auto flags = symbol.getFlags();
    auto address = symbol.getAddress();
    auto name = symbol.getName();
    if (!flags)
      return flags.takeError();
    if (!address)
      return address.takeError();
    if (!name)
      return name.takeError();
    if (symbol.getELFType() == llvm::ELF::STT_FUNC &&
        !(*flags & llvm::object::SymbolRef::SF_Undefined))
      exported[*address] = name->str();
  }
  return exported;
}

Result<std::map<std::string, std::string>>
tandem::disassemble(std::span<const std::byte> object,
                    const CpuTarget &target) {
  llvm::StringRef bytes(reinterpret_cast<const char *>(object.data()),
                        object.size());
  auto file = llvm::object::ObjectFile::createELFObjectFile(
      llvm::MemoryBufferRef(bytes, "kernels"));
  if (!file)
    return Status::failed(llvm::toString(file.takeError()));
  const auto &elf = llvm::cast<llvm::object::ELFObjectFileBase>(**file);
  auto instructions = Instructions::of(elf.makeTriple(), target);
  if (!instructions)
    return instructions.status();
  auto exported = exportedBy(elf);
  if (!exported)
    return Status::failed(llvm::toString(exported.takeError()));
  std::map<std::string, std::string> texts;
  for (const llvm::object::SectionRef section : elf.sections()) {
    if (!section.isText() || section.isVirtual())
      continue;
    auto contents = section.getContents();
    if (!contents)
      return Status::failed(llvm::toString(contents.takeError()));
    auto code = llvm::arrayRefFromStringRef(*contents);
    uint64_t first = section.getAddress();
    for (auto at = exported->lower_bound(first); at != exported->end(); ++at) {
      uint64_t begin = at->first - first, end = code.size();
      if (begin >= end)
        break;
      if (auto next = std::next(at); next != exported->end())
        end = std::min(end, next->first - first);
      texts[at->second] =
          (*instructions)->textOf(code.slice(begin, end - begin));
    }
  }
  return texts;
}

Result<std::string> tandem::llvmIrOf(ModuleOp kernels, SymbolTable &symbols,
                                     StringRef name) {
  auto function = symbols.lookup<LLVM::LLVMFuncOp>(name);
  if (!function || function.isExternal())
    return std::string();
  SmallVector<std::string> calls;
  Chunk unit = unitOf(kernels, symbols, name, name, calls);
  llvm::LLVMContext context;
  auto module = translateModuleToLLVMIR(*unit, context, name);
  if (!module)
    return Status::failed("the kernel '" + name.str() +
                          "' could not be translated to LLVM IR");
  std::string text;
  llvm::raw_string_ostream out(text);
  module->print(out, nullptr);
  return text;
}
