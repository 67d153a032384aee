//===- Schedule.h - what a schedule of a kernel can say -------------------===//
//
// The keys of `#tandem.schedule`, a row each: a new one is a row of
// ir/Schedule.cpp and an enumerator here.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_IR_SCHEDULE_H
#define TANDEM_IR_SCHEDULE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>

namespace tandem {

/// In the order in which they are printed.
enum class ScheduleKey {
  Method,
  // Of CPUs.
  Rows,
  Vectors,
  Block,
  Columns,
  Packs,
  Ahead,
  // Of CUDA.
  BlockM,
  BlockN,
  BlockK,
  WarpsM,
  WarpsN,
  Stages,
  Splits
};
inline constexpr unsigned kScheduleKeys =
    static_cast<unsigned>(ScheduleKey::Splits) + 1;

/// What is known of a key.
struct ScheduleKeyRow {
  enum Kind { Method, Number, Flag };
  enum Target { Any, Cpu, Cuda };

  ScheduleKey key;
  llvm::StringLiteral name;
  Kind kind;
  int64_t most; ///< of a number, which is at least 1
  Target target;
};
/// All keys, in the order of the enumeration.
llvm::ArrayRef<ScheduleKeyRow> scheduleKeys();
const ScheduleKeyRow &rowOf(ScheduleKey key);
/// The row of the key with this name; null if there is none.
const ScheduleKeyRow *scheduleKeyOf(llvm::StringRef name);

/// The value of a key: of `method` a ScheduleMethod, of a flag 0 or 1.
struct ScheduleEntry {
  ScheduleKey key;
  int64_t value;
  bool isChosen; ///< by the tables, and not asked for

  friend bool operator==(const ScheduleEntry &x, const ScheduleEntry &y) {
    return x.key == y.key && x.value == y.value && x.isChosen == y.isChosen;
  }
  friend llvm::hash_code hash_value(const ScheduleEntry &entry) {
    return llvm::hash_combine(entry.key, entry.value, entry.isChosen);
  }
};

} // namespace tandem

#endif
