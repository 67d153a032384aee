//===- OpTable.cpp - which ATen operators there are -----------------------===//
#include "compiler/import/torch/Node.h"

#include "llvm/ADT/StringExtras.h"

using namespace tandem;
using namespace tandem::torch;

void OpTable::add(llvm::StringRef names, Translation translation) {
  llvm::SmallVector<llvm::StringRef> list;
  names.split(list, ' ', -1, /*KeepEmpty=*/false);
  for (llvm::StringRef name : list) {
    bool hasNamespace =
        name.starts_with("higher_order.") || name.starts_with("transformers.");
    table[hasNamespace ? name.str() : ("aten." + name).str()] = translation;
  }
}

const Translation *OpTable::find(llvm::StringRef name,
                                 llvm::StringRef overload) const {
  if (!overload.empty())
    if (auto it = table.find((name + "." + overload).str()); it != table.end())
      return &it->second;
  auto it = table.find(name.str());
  return it == table.end() ? nullptr : &it->second;
}

const OpTable &torch::opTable() {
  static const OpTable table = [] {
    OpTable made;
    addPointwiseOps(made);
    addArithmeticOps(made);
    addViewOps(made);
    addShapeOps(made);
    addReductionOps(made);
    addContractionOps(made);
    addNormalizationOps(made);
    addLossOps(made);
    addIndexingOps(made);
    addCreationOps(made);
    addRandomOps(made);
    addPoolingOps(made);
    addFlowOps(made);
    addRecurrentOps(made);
    return made;
  }();
  return table;
}
