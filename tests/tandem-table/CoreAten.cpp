//===- CoreAten.cpp - core ATen against what Tandem has -------------------===//
#include "tests/tandem-table/CoreAten.h"

#include "compiler/functions/Function.h"
#include "compiler/import/torch/Node.h"
#include "ir/Dialect.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

#include <map>
#include <set>

using namespace mlir;
using namespace tandem;

static const char kHead[] =
    R"(<!-- Printed by tandem-table; `ninja -C build docs` writes it. -->

# Core ATen

PyTorch's core ATen operators (164 names, with their overloads) and what says the same here: [ops](ops.md) of the dialect
and [functions](functions.md). A number that ATen takes as a scalar is a `constant`; what works in place is the value and
a `write`. The last column says whether [archives of `torch.export`](FROM_PYTORCH.md) may have the operator.

| core ATen | op | function | | `.pt2` |
|---|---|---|---|---|
)";

static const char kMore[] = R"(
## In archives

Operators that are read from archives, core or not. One whose name ends in `_` there, as `add_`, writes what it computes into its
first operand.

)";

/// The operators of archives by their namespaces.
static void printArchiveOps() {
  llvm::outs() << kMore;
  std::map<std::string, std::vector<std::string>> names;
  for (const auto &[name, translation] : torch::opTable().all()) {
    auto [space, op] = StringRef(name).split('.');
    names[space.str()].push_back("`" + op.str() + "`");
  }
  for (const auto &[space, ops] : names)
    llvm::outs() << "`" << space << "`: " << llvm::join(ops, ", ") << "\n\n";
}

/// The lines of a file that are no comments.
static std::vector<std::string> linesOf(StringRef path, std::string &problems) {
  std::vector<std::string> lines;
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/true);
  if (!buffer) {
    problems += path.str() + ": " + buffer.getError().message() + "\n";
    return lines;
  }
  SmallVector<StringRef> parts;
  (*buffer)->getBuffer().split(parts, '\n', -1, /*KeepEmpty=*/false);
  for (StringRef part : parts)
    if (!part.starts_with("#"))
      lines.push_back(part.trim().str());
  return lines;
}

/// One row of the page; names that Tandem does not have are problems.
static std::string opRow(StringRef name, StringRef has, MLIRContext &context,
                         std::string &problems) {
  auto [names, remark] = has.split('|');
  std::string ops, functions;
  SmallVector<StringRef> list;
  names.split(list, ',');
  bool hasNone = names.trim() == "-";
  if (hasNone && remark.trim().empty())
    problems += name.str() + ": expected a reason why there is none\n";
  for (StringRef one : list) {
    one = one.trim();
    bool isOp = RegisteredOperationName::lookup("tandem." + one.str(), &context)
                    .has_value();
    bool isFunction = FunctionTable::get().find(one);
    std::string &cell = isOp ? ops : functions;
    if (isOp || isFunction)
      cell += (cell.empty() ? "`" : ", `") + one.str() + "`";
    else if (!hasNone)
      problems += name.str() + ": '" + one.str() +
                  "' is neither an op nor a function\n";
  }
  auto [base, overload] = name.split('.');
  bool isRead = torch::opTable().find("aten." + base.str(), overload);
  return "| `" + name.str() + "` | " + ops + " | " + functions + " | " +
         remark.trim().str() + " | " + (isRead ? "yes" : "") + " |\n";
}

bool tandem::printCoreAten(StringRef listPath, StringRef mapPath) {
  std::string problems, rows;
  std::map<std::string, std::string> map;
  for (const std::string &line : linesOf(mapPath, problems)) {
    auto [name, has] = StringRef(line).split('=');
    if (!map.emplace(name.trim().str(), has.trim().str()).second)
      problems += name.trim().str() + ": stands in the map twice\n";
  }
  MLIRContext context;
  context.loadDialect<TandemDialect>();
  for (const std::string &name : linesOf(listPath, problems)) {
    auto found = map.find(name);
    if (found == map.end()) {
      problems += name + ": is not in the map\n";
      continue;
    }
    rows += opRow(name, found->second, context, problems);
    map.erase(found);
  }
  for (auto &[name, has] : map)
    problems += name + ": is no op of core ATen\n";
  llvm::outs() << kHead << rows;
  printArchiveOps();
  llvm::errs() << problems;
  return problems.empty();
}
