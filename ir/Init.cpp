//===- Init.cpp - the initial values of params and states -----------------===//
#include "ir/Init.h"
#include "ir/Dialect.h"
#include "ir/Nearest.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"

#include <cmath>

using namespace mlir;
using namespace tandem;

namespace {
struct Kind {
  StringLiteral name;
  SmallVector<StringRef, 2> numbers;
};
} // namespace

static ArrayRef<Kind> kinds() {
  static const Kind list[] = {{"constant", {"value"}},
                              {"uniform", {"low", "high"}},
                              {"normal", {"mean", "std"}},
                              {"counter", {"stream", "scale"}},
                              {"seed", {}}};
  return list;
}

static const Kind *kindOf(DictionaryAttr init) {
  auto name = init.getAs<StringAttr>("kind");
  const Kind *found = llvm::find_if(
      kinds(), [&](const Kind &kind) { return name && kind.name == name; });
  return found == kinds().end() ? nullptr : found;
}

static std::optional<double> numberAt(DictionaryAttr init, StringRef key) {
  Attribute value = init.get(key);
  if (auto number = dyn_cast_or_null<FloatAttr>(value))
    return number.getValueAsDouble();
  if (auto number = dyn_cast_or_null<IntegerAttr>(value);
      number && number.getType().isSignlessInteger() &&
      !number.getType().isInteger(1))
    return number.getValue().roundToDouble(/*isSigned=*/true);
  return std::nullopt;
}

static std::string spelled(double number) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%g", number);
  return text;
}

/// The numbers of a distribution against each other.
static LogicalResult verifyNumbers(EmitError error, const Twine &of,
                                   DictionaryAttr init, StringRef kind) {
  auto number = [&](StringRef key) { return *numberAt(init, key); };
  if (kind == "uniform" && !(number("low") <= number("high")))
    return error() << "expected 'low' of " << of << " to be at most 'high', "
                   << spelled(number("high")) << ", but got "
                   << spelled(number("low"));
  if (kind == "normal" && !(number("std") >= 0))
    return error() << "expected 'std' of " << of
                   << " to be at least 0, but got " << spelled(number("std"));
  if (kind == "counter") {
    double stream = number("stream");
    if (!(stream >= 0 && stream < 0x1p32) || stream != std::trunc(stream))
      return error() << "expected 'stream' of " << of
                     << " to be an integer from 0 to 2^32 - 1, but got "
                     << spelled(stream);
  }
  return success();
}

LogicalResult tandem::verifyInit(EmitError error, StringRef role,
                                 Attribute value) {
  std::string of = ("'init' of '" + role + "'").str();
  auto init = dyn_cast<DictionaryAttr>(value);
  auto name = init ? init.getAs<StringAttr>("kind") : StringAttr();
  if (!name)
    return error() << "expected " << of
                   << " to be a dictionary with a string 'kind', but got "
                   << value;
  const Kind *kind = kindOf(init);
  if (!kind) {
    SmallVector<StringRef> names;
    for (const Kind &known : kinds())
      names.push_back(known.name);
    return error() << "expected the kind in " << of << " to be one of '"
                   << llvm::join(names, "', '") << "', but got '"
                   << name.getValue() << "'" << didYouMean(name, names);
  }
  bool failed = false;
  for (NamedAttribute entry : init)
    if (StringRef key = entry.getName();
        key != "kind" && !llvm::is_contained(kind->numbers, key)) {
      failed = true;
      error() << "unknown key '" << key << "' in " << of << ", of the kind '"
              << kind->name << "'" << didYouMean(key, kind->numbers);
    }
  for (StringRef key : kind->numbers)
    if (std::optional<double> number = numberAt(init, key);
        !number || !std::isfinite(*number)) {
      failed = true;
      InFlightDiagnostic missing = error();
      missing << "expected " << of << ", of the kind '" << kind->name
              << "', to have a finite number '" << key << "'";
      if (Attribute other = init.get(key))
        missing << ", but got " << other;
    }
  if (failed)
    return failure();
  return verifyNumbers(error, of, init, kind->name);
}

LogicalResult tandem::verifyInitOfType(EmitError error, StringRef role,
                                       DictionaryAttr init, Type element) {
  std::string of = ("'init' of '" + role + "'").str();
  const Kind &kind = *kindOf(init);
  if (kind.name == "seed") {
    if (element.isSignlessInteger(64))
      return success();
    return error() << "expected " << of << ", of the kind 'seed', to be of i64 "
                   << "elements, but got " << element;
  }
  if (auto type = dyn_cast<FloatType>(element)) {
    for (StringRef key : kind.numbers) {
      llvm::APFloat number(*numberAt(init, key));
      bool losesInfo = false;
      number.convert(type.getFloatSemantics(),
                     llvm::APFloat::rmNearestTiesToEven, &losesInfo);
      if (!number.isFinite())
        return error() << "expected '" << key << "' of " << of
                       << " to be finite in " << element << ", but got "
                       << init.get(key);
    }
    return success();
  }
  if (kind.name != "constant")
    return error() << "expected " << of << " to be of the kind 'constant' for "
                   << element << " elements, but got '" << kind.name << "'";
  double value = *numberAt(init, "value");
  bool fits = value == std::trunc(value) && std::abs(value) < 0x1p63 &&
              holds(element, static_cast<int64_t>(value));
  if (fits)
    return success();
  return error() << "expected 'value' of " << of << " to be a number of "
                 << element << ", but got " << spelled(value);
}
