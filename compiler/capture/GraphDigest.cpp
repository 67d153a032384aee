//===- GraphDigest.cpp - is it the same model? ----------------------------===//
//
// Hashes the generic text of a copy from which has been taken what does not
// count. The text has its attributes sorted and its values numbered.
//
//===----------------------------------------------------------------------===//
#include "compiler/capture/GraphDigest.h"

#include "ir/Signature.h"
#include "ir/Tags.h"

#include "mlir/IR/AsmState.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SHA256.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace tandem;

namespace {
/// A stream whose text is hashed and not kept: constants can be large.
class HashStream : public llvm::raw_ostream {
public:
  ~HashStream() override { flush(); }

  std::string digest() {
    flush();
    return llvm::toHex(hash.final(), /*LowerCase=*/true);
  }

private:
  void write_impl(const char *text, size_t bytes) override {
    hash.update(StringRef(text, bytes));
    position += bytes;
  }
  uint64_t current_pos() const override { return position; }

  llvm::SHA256 hash;
  uint64_t position = 0;
};
} // namespace

std::string tandem::digestOf(ArrayRef<OwningOpRef<ModuleOp>> modules) {
  HashStream out;
  for (const OwningOpRef<ModuleOp> &module : modules) {
    out << module.get()->getAttrDictionary() << '\n';
    for (Operation &op : *module.get().getBody()) {
      // Which kernels have code there depends on the kernel cache.
      if (op.hasTrait<OpTrait::SymbolTable>())
        continue;
      op.print(out, OpPrintingFlags().useLocalScope());
      out << '\n';
    }
  }
  return out.digest();
}

std::string tandem::graphDigest(ModuleOp module) {
  OwningOpRef<ModuleOp> copy = module.clone();
  copy->walk([](Operation *op) { dropTags(op); });
  HashStream out;
  if (auto loss = module->getAttrOfType<StringAttr>(kLossAttr))
    out << loss.getValue() << '\n';
  for (auto func : copy->getOps<func::FuncOp>()) {
    for (unsigned i = 0, n = func.getNumArguments(); i < n; ++i)
      if (RoleAttr role = roleOfArgument(func, i))
        setRoleOfArgument(func, i, role.without(RoleAttr::kInit));
    func->print(out, OpPrintingFlags().printGenericOpForm().useLocalScope());
    out << '\n';
  }
  return out.digest();
}
