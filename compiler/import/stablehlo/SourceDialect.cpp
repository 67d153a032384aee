//===- SourceDialect.cpp - the syntax of StableHLO ------------------------===//
#include "compiler/import/stablehlo/SourceDialect.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/MLIRContext.h"

using namespace mlir;
using namespace tandem;

namespace {

/// What the dialects of the source have in common.
class SourceDialect : public Dialect {
public:
  SourceDialect(StringRef name, MLIRContext *context, TypeID id)
      : Dialect(name, context, id) {
    allowUnknownOperations();
  }

  std::optional<ParseOpHook>
  getParseOperationHook(StringRef opName) const override {
    if (stablehlo::formatOf(opName).empty())
      return std::nullopt;
    return ParseOpHook(stablehlo::parseByFormat);
  }
  Attribute parseAttribute(DialectAsmParser &parser, Type) const override {
    return stablehlo::parseSourceAttribute(parser);
  }
  /// The only type is that of tokens, which order effects.
  Type parseType(DialectAsmParser &parser) const override {
    StringRef name;
    llvm::SMLoc at = parser.getCurrentLocation();
    if (failed(parser.parseKeyword(&name)))
      return {};
    if (name == "token")
      return NoneType::get(parser.getContext());
    parser.emitError(at) << "unsupported: the type '" << name << "'";
    return {};
  }
  // Nothing is printed: attributes and types are builtin ones.
  void printAttribute(Attribute, DialectAsmPrinter &) const override {}
  void printType(Type, DialectAsmPrinter &) const override {}
};

class StablehloDialect : public SourceDialect {
public:
  static StringRef getDialectNamespace() { return "stablehlo"; }
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(StablehloDialect)
  explicit StablehloDialect(MLIRContext *context)
      : SourceDialect(getDialectNamespace(), context,
                      TypeID::get<StablehloDialect>()) {}
};

class ChloDialect : public SourceDialect {
public:
  static StringRef getDialectNamespace() { return "chlo"; }
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ChloDialect)
  explicit ChloDialect(MLIRContext *context)
      : SourceDialect(getDialectNamespace(), context,
                      TypeID::get<ChloDialect>()) {}
};

class SdyDialect : public SourceDialect {
public:
  static StringRef getDialectNamespace() { return "sdy"; }
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(SdyDialect)
  explicit SdyDialect(MLIRContext *context)
      : SourceDialect(getDialectNamespace(), context,
                      TypeID::get<SdyDialect>()) {}
  Attribute parseAttribute(DialectAsmParser &parser, Type) const override {
    StringRef name;
    if (parser.parseKeyword(&name) || stablehlo::skipAngles(parser))
      return {};
    return UnitAttr::get(parser.getContext());
  }
};

} // namespace

ParseResult stablehlo::skipAngles(AsmParser &parser) {
  if (parser.parseLess())
    return failure();
  while (failed(parser.parseOptionalGreater())) {
    StringAttr symbol;
    std::string text;
    StringRef word;
    int64_t number;
    if (succeeded(parser.parseOptionalSymbolName(symbol)) ||
        succeeded(parser.parseOptionalString(&text)) ||
        succeeded(parser.parseOptionalKeyword(&word)) ||
        succeeded(parser.parseOptionalComma()) ||
        succeeded(parser.parseOptionalEqual()) ||
        succeeded(parser.parseOptionalColon()) ||
        succeeded(parser.parseOptionalQuestion()) ||
        succeeded(parser.parseOptionalArrow()) ||
        succeeded(parser.parseOptionalLSquare()) ||
        succeeded(parser.parseOptionalRSquare()) ||
        succeeded(parser.parseOptionalLBrace()) ||
        succeeded(parser.parseOptionalRBrace()) ||
        succeeded(parser.parseOptionalLParen()) ||
        succeeded(parser.parseOptionalRParen()))
      continue;
    OptionalParseResult isNumber = parser.parseOptionalInteger(number);
    if (!isNumber.has_value())
      return parser.parseGreater(); // says what is there instead
    if (failed(*isNumber))
      return failure();
  }
  return success();
}

void stablehlo::loadSourceDialects(MLIRContext &context) {
  context.loadDialect<StablehloDialect, ChloDialect, SdyDialect>();
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

/// One list of `[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]`: where the letters
/// stand, and where each spatial dimension.
static ParseResult parseDims(AsmParser &parser, StringRef letters,
                             MutableArrayRef<int64_t> places,
                             SmallVectorImpl<int64_t> &spatial) {
  SmallVector<std::pair<int64_t, int64_t>> numbered;
  int64_t at = 0;
  llvm::fill(places, -1);
  llvm::SMLoc loc = parser.getCurrentLocation();
  auto parse = [&]() -> ParseResult {
    int64_t number = 0;
    OptionalParseResult isNumber = parser.parseOptionalInteger(number);
    if (isNumber.has_value()) {
      if (failed(*isNumber))
        return failure();
      numbered.push_back({number, at++});
      return success();
    }
    if (succeeded(parser.parseOptionalQuestion()))
      return parser.emitError(loc, "expected dimensions that are known");
    StringRef letter;
    if (failed(parser.parseKeyword(&letter)))
      return failure();
    size_t i = letters.find(letter);
    if (letter.size() != 1 || i == StringRef::npos || places[i] >= 0)
      return parser.emitError(loc, "expected each of the dimensions '")
             << letters << "' once, but got '" << letter << "'";
    places[i] = at++;
    return success();
  };
  if (failed(
          parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parse)))
    return failure();
  llvm::sort(numbered);
  for (auto [i, one] : llvm::enumerate(numbered)) {
    if (one.first != static_cast<int64_t>(i))
      return parser.emitError(loc, "expected the spatial dimensions to be "
                                   "numbered from 0 on");
    spatial.push_back(one.second);
  }
  if (llvm::is_contained(places, -1))
    return parser.emitError(loc, "expected each of the dimensions '")
           << letters << "' once";
  return success();
}

ParseResult stablehlo::parseConvolution(AsmParser &parser,
                                        DictionaryAttr &numbers) {
  int64_t input[2], kernel[2], output[2];
  SmallVector<int64_t> inputs, kernels, outputs;
  if (parseDims(parser, "bf", input, inputs) || parser.parseKeyword("x") ||
      parseDims(parser, "io", kernel, kernels) || parser.parseArrow() ||
      parseDims(parser, "bf", output, outputs))
    return failure();
  Builder b(parser.getContext());
  auto one = [&](StringRef name, int64_t value) {
    return b.getNamedAttr(name, b.getI64IntegerAttr(value));
  };
  auto list = [&](StringRef name, ArrayRef<int64_t> value) {
    return b.getNamedAttr(name, b.getDenseI64ArrayAttr(value));
  };
  numbers =
      b.getDictionaryAttr({one("input_batch_dimension", input[0]),
                           one("input_feature_dimension", input[1]),
                           list("input_spatial_dimensions", inputs),
                           one("kernel_input_feature_dimension", kernel[0]),
                           one("kernel_output_feature_dimension", kernel[1]),
                           list("kernel_spatial_dimensions", kernels),
                           one("output_batch_dimension", output[0]),
                           one("output_feature_dimension", output[1]),
                           list("output_spatial_dimensions", outputs)});
  return success();
}

/// `[1, 2]`, `3`, `tf32`, or any attribute.
static ParseResult parseField(AsmParser &parser, Attribute &value) {
  Builder b(parser.getContext());
  StringRef word;
  SmallVector<int64_t> list;
  if (succeeded(parser.parseOptionalLSquare())) {
    if (failed(parser.parseOptionalRSquare()) &&
        (failed(parser.parseCommaSeparatedList(
             [&] { return parser.parseInteger(list.emplace_back()); })) ||
         failed(parser.parseRSquare())))
      return failure();
    value = b.getDenseI64ArrayAttr(list);
    return success();
  }
  OptionalParseResult parsed = parser.parseOptionalAttribute(value);
  if (parsed.has_value())
    return *parsed;
  if (failed(parser.parseKeyword(&word)))
    return failure();
  value = b.getStringAttr(word);
  return success();
}

/// `<a = 1, b = [2]>`, or `<WORD>`, which is that word.
static Attribute parseFields(AsmParser &parser) {
  Builder b(parser.getContext());
  NamedAttrList fields;
  StringRef word;
  (void)parser.parseOptionalKeyword("raw");
  while (failed(parser.parseOptionalGreater())) {
    llvm::SMLoc at = parser.getCurrentLocation();
    if (failed(parser.parseKeyword(&word)))
      return {};
    if (fields.empty() && succeeded(parser.parseOptionalGreater()))
      return b.getStringAttr(word);
    Attribute value;
    std::string name = word.str();
    if (failed(parser.parseEqual()) || failed(parseField(parser, value)))
      return {};
    if (fields.get(name)) {
      parser.emitError(at) << "'" << name << "' is there twice";
      return {};
    }
    fields.append(name, value);
    if (failed(parser.parseOptionalComma())) {
      if (failed(parser.parseGreater()))
        return {};
      break;
    }
  }
  return fields.getDictionary(parser.getContext());
}

Attribute stablehlo::parseSourceAttribute(DialectAsmParser &parser) {
  StringRef name, word;
  if (failed(parser.parseKeyword(&name)))
    return {};
  std::string kind = name.str();
  if (failed(parser.parseOptionalLess())) { // #stablehlo<kind WORD>
    if (failed(parser.parseKeyword(&word)))
      return {};
    return StringAttr::get(parser.getContext(), word);
  }
  // #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>, or `raw` and fields.
  if (kind == "conv" && failed(parser.parseOptionalKeyword("raw"))) {
    DictionaryAttr numbers;
    if (failed(parseConvolution(parser, numbers)) ||
        failed(parser.parseGreater()))
      return {};
    return numbers;
  }
  return parseFields(parser);
}
