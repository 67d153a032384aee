//===- Cast.h - how a file's numbers become a model's ---------------------===//
//
// Without a rule elements are converted where nothing is lost by it, but for
// f64, NumPy's type of whatever was divided: that is rounded to f32. A rule,
// which the user writes, lets numbers be rounded or scaled. No rule makes a
// finite number infinite, or rounds to an integer.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_IO_CAST_H
#define TANDEM_RUNTIME_IO_CAST_H

#include "runtime/io/Array.h"

namespace tandem::io {

struct Cast {
  bool rounds = false; ///< to nearest, ties to even
  bool scales = false; ///< before that, in f64:
  bool divides = false;
  double factor = 1; ///< multiplied with or divided by

  /// Reads "round", "*NUMBER" or "/NUMBER"; fails with Usage.
  static Result<Cast> parse(std::string_view rule);
};

/// What converting an array means.
struct CastReport {
  /// Not empty: numbers are rounded though no rule says so; which, for a note.
  std::string rounded;
};

/// Checks that `array` can be converted to `to`; fails with Usage, naming the
/// first element that cannot. Its bytes may be those of a piece of an array of
/// that shape, from element `first` on.
Result<CastReport> checkCast(const ArrayView &array, artifact::DType to,
                             const Cast &cast, int64_t first = 0);

/// Converts `count` elements that were checked.
void castElements(const std::byte *from, artifact::DType fromType,
                  std::byte *to, artifact::DType toType, int64_t count,
                  const Cast &cast);

/// Checks and converts the whole array.
Result<Array> castArray(const ArrayView &array, artifact::DType to,
                        const Cast &cast);

/// Returns the index of the first element, of an array of any type, that is
/// neither an integer in [low, high) nor `ignored`.
std::optional<int64_t> firstOutside(const ArrayView &array, int64_t low,
                                    int64_t high,
                                    std::optional<int64_t> ignored);

} // namespace tandem::io

#endif
