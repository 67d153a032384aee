//===- JoinKernels.cpp - one code object for several sizes ----------------===//
//
// Each size of a model is lowered by itself, and numbers its kernels by itself.
// A function or global of a further size is one that is there already if both
// have the same text, where what they refer to has the names that it got in the
// joined code: so what is referred to comes first. Places in the model are no
// part of the text. A kernel with a key (KernelKeys.h) is known by that alone,
// whether its code is there already or is still to be made.
//
//===----------------------------------------------------------------------===//
#include "compiler/emit/JoinKernels.h"
#include "ir/Dialect.h"
#include "ir/KernelFunctions.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace tandem;

/// The code of a lowered module, for either kind of target.
static Operation *codeOf(ModuleOp module) {
  if (auto cpu = module.lookupSymbol<ModuleOp>("cpu"))
    return cpu;
  return module.lookupSymbol<gpu::GPUModuleOp>("cuda");
}

/// Of a kernel whose code is there already the name does not say which it is.
static bool isDeclaration(Operation *op) {
  auto function = dyn_cast<FunctionOpInterface>(op);
  return function && function.isExternal() && codeKey(op).empty();
}

namespace {

class Joiner {
public:
  Joiner(Operation *to, Operation *from);
  void run();
  /// The name in the joined code of a symbol of `from`.
  StringAttr joined(StringAttr name);

private:
  std::string textOf(Operation *op);
  StringAttr freshName(StringAttr name);

  Operation *to;
  SmallVector<StringAttr> order;
  DenseMap<StringAttr, Operation *> others;
  DenseMap<StringAttr, StringAttr> names; ///< of `from`, in `to`
  llvm::StringSet<> taken;                ///< names in `to`
  llvm::StringMap<StringAttr> known;      ///< texts of `to`
};

} // namespace

Joiner::Joiner(Operation *to, Operation *from) : to(to) {
  for (Operation &op : to->getRegion(0).front())
    if (auto symbol = dyn_cast<SymbolOpInterface>(op)) {
      taken.insert(symbol.getName());
      if (!isDeclaration(&op))
        known.try_emplace(textOf(&op), symbol.getNameAttr());
    }
  for (Operation &op : from->getRegion(0).front())
    if (auto symbol = dyn_cast<SymbolOpInterface>(op)) {
      others[symbol.getNameAttr()] = &op;
      order.push_back(symbol.getNameAttr());
    }
}

/// The text of a symbol's op, without its name, or what stands for it.
std::string Joiner::textOf(Operation *op) {
  if (StringRef key = codeKey(op); !key.empty())
    return "code " + key.str();
  auto symbol = cast<SymbolOpInterface>(op);
  StringAttr name = symbol.getNameAttr();
  symbol.setName("self");
  std::string text;
  llvm::raw_string_ostream out(text);
  op->print(out, OpPrintingFlags().useLocalScope());
  symbol.setName(name);
  return text;
}

StringAttr Joiner::freshName(StringAttr name) {
  std::string fresh = name.str();
  for (int number = 2; !taken.insert(fresh).second; ++number)
    fresh = name.str() + "_size" + std::to_string(number);
  return StringAttr::get(name.getContext(), fresh);
}

StringAttr Joiner::joined(StringAttr name) {
  auto found = others.find(name);
  if (found == others.end())
    return name;
  // Of what refers to itself it is the name that it has.
  auto [entry, isNew] = names.try_emplace(name, name);
  if (!isNew)
    return entry->second;
  Operation *op = found->second;
  if (isDeclaration(op) && taken.contains(name.getValue()))
    return name;
  AttrTypeReplacer replacer;
  replacer.addReplacement([&](FlatSymbolRefAttr symbol) -> Attribute {
    return FlatSymbolRefAttr::get(joined(symbol.getAttr()));
  });
  Operation *copy = op->clone();
  replacer.recursivelyReplaceElementsIn(copy);
  std::string text = textOf(copy);
  auto same = known.find(text);
  if (same != known.end() && !isDeclaration(op)) {
    copy->destroy();
    return names[name] = same->second;
  }
  StringAttr fresh = freshName(name);
  cast<SymbolOpInterface>(copy).setName(fresh);
  Block &body = to->getRegion(0).front();
  if (body.mightHaveTerminator())
    body.getOperations().insert(body.getTerminator()->getIterator(), copy);
  else
    body.push_back(copy);
  if (!isDeclaration(op))
    known[text] = fresh;
  return names[name] = fresh;
}

void Joiner::run() {
  for (StringAttr name : order)
    joined(name);
}

void tandem::joinKernels(ModuleOp module, ModuleOp other) {
  Operation *to = codeOf(module), *from = codeOf(other);
  if (!to || !from)
    return;
  Joiner joiner(to, from);
  joiner.run();
  other.walk([&](LaunchOp launch) {
    SymbolRefAttr kernel = launch.getKernel();
    StringAttr name = joiner.joined(kernel.getLeafReference());
    launch.setKernelAttr(SymbolRefAttr::get(kernel.getRootReference(),
                                            {FlatSymbolRefAttr::get(name)}));
  });
}
