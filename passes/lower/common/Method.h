//===- Method.h - ways to compute a kernel, as rows of a table ------------===//
//
// Where several methods compute kernels of one kind, they are rows of one
// ordered table per target: what a method is called, whether it computes a
// kernel or the reason against it, how long it is expected to take, the scratch
// memory that it needs, how it cuts the kernel, its code, and what tuning
// varies of it. The pass tandem-choose-methods takes the first row that is good
// (or, where the table says so, the cheapest) and writes its name and its
// numbers into the kernel's `schedule`, where others can stand; emission,
// tuning and `tandem inspect --methods` read the same rows.
//
// A schedule that has its method and all of the row's numbers is whole: code is
// made of exactly these, or they are refused. One that says less is completed,
// and what it says is taken as far as the sizes reach.
//
// A reason is a part of a sentence with both numbers: "expected 3x3 taps but
// got 5x5".
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_LOWER_COMMON_METHOD_H
#define TANDEM_PASSES_LOWER_COMMON_METHOD_H

#include "passes/lower/common/ScheduleOverride.h"

#include "ir/Ops.h"

#include <optional>
#include <string>

namespace tandem::lower {

/// Whether a method computes a kernel.
class Fit {
public:
  static Fit good() { return {Good, ""}; }
  /// It does if it is asked for, but another one is expected to be faster.
  static Fit slower(const llvm::Twine &reason) {
    return {Slower, reason.str()};
  }
  /// It does not: there is no code, or too much.
  static Fit impossible(const llvm::Twine &reason) {
    return {Impossible, reason.str()};
  }

  bool isGood() const { return kind == Good; }
  bool isPossible() const { return kind != Impossible; }
  /// Empty if it is good.
  const std::string &reason() const { return why; }

private:
  enum Kind { Good, Slower, Impossible };
  Fit(Kind kind, std::string why) : kind(kind), why(std::move(why)) {}

  Kind kind;
  std::string why;
};

/// "6x5"
std::string crossed(llvm::ArrayRef<int64_t> sizes);
/// The type of an element, as MLIR prints it.
std::string textOf(mlir::Type type);
/// The value of a schedule's number or flag, as it is written.
std::string shown(const ScheduleKeyRow &row, int64_t value);

/// A row. `Subject` is what its functions see of a kernel, and what `emit`
/// writes code with; `Made` what that says of the code. `Round` is what tuning
/// varies, one side of a schedule after the other.
template <typename SubjectT, typename MadeT, typename RoundT = std::nullptr_t>
struct Method {
  using Subject = SubjectT;
  using Made = MadeT;

  llvm::StringLiteral name; ///< one of ir/ScheduleMethods.h
  llvm::StringLiteral summary;
  /// May write code that nothing uses, as that of where an operand lies.
  Fit (*fit)(Subject &);
  /// Writes the code of a kernel for which it is possible, by the kernel's
  /// `schedule`, which is whole.
  mlir::FailureOr<Made> (*emit)(Subject &);
  /// The seconds of a kernel for which it is possible, if a model says them.
  double (*seconds)(Subject &) = nullptr;
  /// The bytes of scratch that the code of a kernel for which it is possible
  /// takes: of each thread, or for cuda of a launch. Null: none.
  int64_t (*scratch)(Subject &) = nullptr;
  /// The numbers by which it cuts a kernel for which it is possible: what the
  /// kernel's `schedule` says, as far as the sizes reach, and the models' for
  /// the rest. Those of a whole schedule come out as they went in, if there is
  /// code for them. Null: it has none.
  ScheduleOverride (*cut)(Subject &) = nullptr;
  llvm::ArrayRef<RoundT> rounds = {};
};

template <typename RowT> struct MethodTable {
  using Row = RowT;

  llvm::StringLiteral of; ///< "a convolution for cpu"
  /// In the order in which they are asked; one of them computes the kernel.
  llvm::ArrayRef<Row> rows;
  /// Of the good rows, the one of the least seconds is taken, which all have.
  bool takesCheapest = false;
  /// Tuning tries other rows than the table's choice: their results differ in
  /// the last bits.
  bool isTuned = false;
};

/// What a table says of a kernel, row by row.
struct MethodLog {
  struct Row {
    llvm::StringRef name, summary;
    Fit fit;
    std::optional<double> seconds; ///< null if it is not possible, or not known
    int64_t scratchBytes = 0;      ///< if it is possible
    ScheduleAttr schedule;         ///< whole, if it is possible
  };
  std::string of;
  llvm::SmallVector<Row> rows;
  /// The row that was taken; none if what was asked for is refused.
  std::optional<size_t> chosen;
  bool takesCheapest = false, isTuned = false;
};

/// A table without its types.
struct MethodChoices {
  llvm::StringRef of;
  size_t rows;
  bool takesCheapest, isTuned;
  llvm::function_ref<std::pair<llvm::StringRef, llvm::StringRef>(size_t)> about;
  llvm::function_ref<Fit(size_t)> fit;
  llvm::function_ref<std::optional<double>(size_t)> seconds;
  llvm::function_ref<int64_t(size_t)> scratch;
  llvm::function_ref<ScheduleOverride(size_t)> cut;
};

/// The row of a kernel.
struct ChosenMethod {
  size_t row = 0;
  llvm::StringRef name;
  ScheduleAttr schedule; ///< whole; null of a kernel without methods
  int64_t scratchBytes = 0;
};

/// What somebody asks a table about: what it says of all rows goes to `log`, if
/// there is one. Of a wish what no row has is left out without a word, and
/// nothing is refused because the sizes allow less.
struct MethodQuestion {
  MethodLog *log = nullptr;
  bool isWish = false;
};

/// The row for a kernel: the one that its `schedule` names, or the table's
/// choice; and its schedule, completed. Fails, with the reason at the kernel's
/// location, where the one that is named does not compute it, where a number is
/// none of its, and where a whole schedule cannot be met.
mlir::FailureOr<ChosenMethod> chooseMethod(KernelOp kernel,
                                           const MethodChoices &choices,
                                           const MethodQuestion &question);

/// The same of a table, about which its rows are asked; no code of the kernel
/// is written.
template <typename Row>
mlir::FailureOr<ChosenMethod>
chooseByTable(KernelOp kernel, const MethodTable<Row> &table,
              typename Row::Subject &subject, const MethodQuestion &question) {
  using Texts = std::pair<llvm::StringRef, llvm::StringRef>;
  auto about = [&](size_t i) -> Texts {
    return {table.rows[i].name, table.rows[i].summary};
  };
  auto fit = [&](size_t i) { return table.rows[i].fit(subject); };
  auto seconds = [&](size_t i) -> std::optional<double> {
    if (!table.rows[i].seconds)
      return std::nullopt;
    return table.rows[i].seconds(subject);
  };
  auto scratch = [&](size_t i) -> int64_t {
    return table.rows[i].scratch ? table.rows[i].scratch(subject) : 0;
  };
  auto cut = [&](size_t i) {
    return table.rows[i].cut ? table.rows[i].cut(subject) : ScheduleOverride();
  };
  return chooseMethod(kernel,
                      {table.of, table.rows.size(), table.takesCheapest,
                       table.isTuned, about, fit, seconds, scratch, cut},
                      question);
}

/// Fails, with an error, if the code of a kernel takes other scratch than its
/// row says.
mlir::LogicalResult checkScratch(KernelOp kernel, const ChosenMethod &chosen,
                                 int64_t taken);

/// The code of a kernel by the row and the numbers of its schedule, which it
/// gets from the table if it has none, or not all.
template <typename Row>
mlir::FailureOr<typename Row::Made>
emitByTable(KernelOp kernel, const MethodTable<Row> &table,
            typename Row::Subject &subject) {
  mlir::FailureOr<ChosenMethod> chosen =
      chooseByTable(kernel, table, subject, MethodQuestion());
  if (failed(chosen))
    return mlir::failure();
  kernel.setScheduleAttr(chosen->schedule);
  mlir::FailureOr<typename Row::Made> made =
      table.rows[chosen->row].emit(subject);
  if (failed(made) || failed(checkScratch(kernel, *chosen, made->scratchBytes)))
    return mlir::failure();
  return made;
}

/// Takes off a kernel what the tables chose, and its scratch, which follows
/// from that; what was asked for stays.
void dropChosen(KernelOp kernel);

/// The seconds of a kernel whose anchor makes `multiplyAdds`, whole vectors or
/// tiles of them, `narrow` ones at the rate of narrow types; the other ops and
/// the memory count as everywhere (passes/target/Rates.h).
double secondsOf(KernelOp kernel, mlir::Operation *anchor, double multiplyAdds,
                 bool narrow = false);

} // namespace tandem::lower

#endif
