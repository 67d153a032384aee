//===- tandem-table.cpp - prints docs/support.md --------------------------===//
#include "tools/tandem-table/OpTable.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

static const char kHead[] =
    R"(<!-- Printed by tandem-table; `ninja -C build docs` writes it. -->

# What each op has

| column | |
|---|---|
| class | what engines decide by |
| gradient | `rule`: in its record; `decomposes`: that of the ops that it means; `none`: cut; `refused`: an error on the way to a gradient; `functionalized`: gone before; `joint`: gone after |
| reference | evaluation in double: `generic` follows from the op's interfaces, `own` is written for it; `evaluator`: part of whole-function evaluation |
| cpu, cuda | `loops`: in kernels of loop nests; `anchor`: a kernel around it; `decomposes`: as other ops; `functionalized`, `joint`: gone before |
| rows | gradient checks in `tests/gradients` |

| op | class | gradient | reference | cpu | cuda | rows |
|---|---|---|---|---|---|---|
)";

int main() {
  mlir::MLIRContext context;
  llvm::outs() << kHead;
  for (const tandem::OpSupport &op : tandem::opTable(context)) {
    auto text = [](const std::string &field) {
      return field.empty() ? std::string("missing") : field;
    };
    llvm::outs() << llvm::formatv(
        "| `{0}` | {1} | {2} | {3} | {4} | {5} | {6} |\n", op.name,
        text(op.opClass), text(op.gradient), text(op.reference), text(op.cpu),
        text(op.cuda), op.gradientRows);
  }
  return 0;
}
