//===- ScheduleMethods.cpp - the names of ways to compute a kernel --------===//
#include "ir/ScheduleMethods.h"

#include "llvm/ADT/STLExtras.h"

using namespace tandem;

llvm::SmallVector<llvm::StringRef> tandem::methodNames() {
  llvm::SmallVector<llvm::StringRef> names;
  for (unsigned i = 0; i <= getMaxEnumValForScheduleMethod(); ++i)
    names.push_back(stringifyScheduleMethod(*symbolizeScheduleMethod(i)));
  return names;
}

std::string tandem::listOf(llvm::ArrayRef<llvm::StringRef> names) {
  std::string list;
  for (auto [i, name] : llvm::enumerate(names))
    list += (i == 0                  ? "'"
             : i + 1 == names.size() ? " or '"
                                     : ", '") +
            name.str() + "'";
  return list;
}
