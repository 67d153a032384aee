//===- Syntax.cpp - reads StableHLO's ops as their formats say ------------===//
#include "compiler/import/stablehlo/SourceDialect.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;
using namespace tandem;

namespace {

using Operands = SmallVector<OpAsmParser::UnresolvedOperand, 4>;

/// One op that is being read.
class Reader {
public:
  Reader(OpAsmParser &parser, OperationState &state)
      : parser(parser), state(state), b(parser.getContext()),
        start(parser.getCurrentLocation()) {}

  ParseResult read(StringRef format);

private:
  ParseResult readWord(StringRef word);
  ParseResult readLiteral(StringRef word);
  ParseResult readCustom(StringRef what);
  ParseResult readTypes(StringRef form);

  ParseResult integers(SmallVectorImpl<int64_t> &list) {
    return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
      return parser.parseInteger(list.emplace_back());
    });
  }
  ParseResult value();
  ParseResult ranges();
  ParseResult dot();
  ParseResult precision();
  ParseResult window();
  ParseResult exponent();
  ParseResult reduce();
  ParseResult reduceBody(ArrayRef<Type> types);
  ParseResult whileLoop();
  /// The types are those of the operands.
  ParseResult resolve(TypeRange types) {
    return parser.resolveOperands(operands, types, start, state.operands);
  }
  void set(StringRef name, Attribute value) { state.addAttribute(name, value); }

  OpAsmParser &parser;
  OperationState &state;
  Builder b;
  llvm::SMLoc start;
  Operands operands;
};

} // namespace

//===----------------------------------------------------------------------===//
// Formats
//===----------------------------------------------------------------------===//

ParseResult stablehlo::parseByFormat(OpAsmParser &parser,
                                     OperationState &state) {
  return Reader(parser, state).read(formatOf(state.name.getStringRef()));
}

ParseResult Reader::read(StringRef format) {
  SmallVector<StringRef> words;
  format.split(words, ' ');
  for (size_t i = 0; i < words.size(); ++i) {
    StringRef word = words[i];
    if (word == ";")
      continue;
    if (!word.consume_front("?")) {
      if (failed(readWord(word)))
        return failure();
      continue;
    }
    bool isThere = word == "," ? succeeded(parser.parseOptionalComma())
                               : succeeded(parser.parseOptionalColon());
    while (!isThere && words[i] != ";")
      ++i;
  }
  return success();
}

ParseResult Reader::readLiteral(StringRef word) {
  switch (word[0]) {
  case ',':
    return parser.parseComma();
  case '=':
    return parser.parseEqual();
  case '(':
    return parser.parseLParen();
  case ')':
    return parser.parseRParen();
  case '[':
    return parser.parseLSquare();
  case ']':
    return parser.parseRSquare();
  case '{':
    return parser.parseLBrace();
  case '}':
    return parser.parseRBrace();
  default:
    return parser.parseKeyword(word);
  }
}

ParseResult Reader::readWord(StringRef word) {
  if (word == "{}")
    return parser.parseOptionalAttrDict(state.attributes);
  if (word == "%")
    return parser.parseOperand(operands.emplace_back());
  if (word == "%*") {
    OpAsmParser::UnresolvedOperand operand;
    OptionalParseResult first = parser.parseOptionalOperand(operand);
    if (!first.has_value())
      return success();
    if (failed(*first))
      return failure();
    operands.push_back(operand);
    while (succeeded(parser.parseOptionalComma()))
      if (failed(parser.parseOperand(operands.emplace_back())))
        return failure();
    return success();
  }
  if (word == "%,") {
    while (true) {
      OpAsmParser::UnresolvedOperand operand;
      OptionalParseResult next = parser.parseOptionalOperand(operand);
      if (!next.has_value())
        return success();
      if (failed(*next) || failed(parser.parseComma()))
        return failure();
      operands.push_back(operand);
    }
  }
  if (word.size() > 1 && word.starts_with("<"))
    return readCustom(word.drop_front().drop_back());
  if (word.consume_front(":"))
    return readTypes(word);
  if (word.consume_front("#[")) {
    SmallVector<int64_t> list;
    if (failed(integers(list)))
      return failure();
    set(word, b.getDenseI64ArrayAttr(list));
    return success();
  }
  if (word.consume_front("#")) {
    int64_t number;
    if (failed(parser.parseInteger(number)))
      return failure();
    set(word, b.getI64IntegerAttr(number));
    return success();
  }
  if (word.consume_front("$")) {
    std::string text;
    if (failed(parser.parseKeywordOrString(&text)))
      return failure();
    set(word, b.getStringAttr(text));
    return success();
  }
  if (word.consume_front("@")) {
    StringAttr symbol;
    if (failed(parser.parseSymbolName(symbol)))
      return failure();
    set(word, symbol);
    return success();
  }
  if (word.consume_front("!")) {
    bool isTrue = succeeded(parser.parseOptionalKeyword("true"));
    if (!isTrue && failed(parser.parseKeyword("false")))
      return failure();
    set(word, b.getBoolAttr(isTrue));
    return success();
  }
  return readLiteral(word);
}

ParseResult Reader::readCustom(StringRef what) {
  if (what == "types") {
    SmallVector<Type> types;
    return failure(failed(parser.parseTypeList(types)) ||
                   failed(resolve(types)));
  }
  if (what == "convolution") {
    DictionaryAttr numbers;
    if (failed(stablehlo::parseConvolution(parser, numbers)))
      return failure();
    set("dimension_numbers", numbers);
    return success();
  }
  return what == "value"       ? value()
         : what == "angles"    ? stablehlo::skipAngles(parser)
         : what == "ranges"    ? ranges()
         : what == "dot"       ? dot()
         : what == "precision" ? precision()
         : what == "window"    ? window()
         : what == "exponent"  ? exponent()
         : what == "reduce"    ? reduce()
                               : whileLoop();
}

/// The type of the parts of a complex tensor.
static Type partOf(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  auto element =
      tensor ? dyn_cast<ComplexType>(tensor.getElementType()) : ComplexType();
  return element ? tensor.clone(element.getElementType()) : Type();
}

ParseResult Reader::readTypes(StringRef form) {
  if (form == "each" && operands.empty())
    return success(succeeded(parser.parseOptionalLParen())
                       ? succeeded(parser.parseRParen())
                       : true);
  if (failed(parser.parseColon()))
    return failure();
  llvm::SMLoc at = parser.getCurrentLocation();
  SmallVector<Type> types;
  if (form == "to") {
    // (a, b) -> c is one type, that of a function.
    if (failed(parser.parseTypeList(types)))
      return failure();
    if (types.size() != 1 || !isa<FunctionType>(types[0])) {
      if (failed(parser.parseArrow()) || failed(resolve(types)))
        return failure();
      types.clear();
      if (succeeded(parser.parseOptionalLParen()))
        return failure(failed(parser.parseTypeList(state.types)) ||
                       failed(parser.parseRParen()));
      return parser.parseTypeList(state.types);
    }
  } else if (failed(parser.parseTypeList(types))) {
    return failure();
  }
  if (types.size() == 1 && isa<FunctionType>(types[0])) {
    auto function = cast<FunctionType>(types[0]);
    state.addTypes(function.getResults());
    return resolve(function.getInputs());
  }
  size_t count = operands.size();
  if (form == "func")
    return parser.emitError(at, "expected the type of a function");
  if (form == "each") {
    state.addTypes(types);
    return resolve(types);
  }
  if (types.size() != (form == "select" ? 2 : 1))
    return parser.emitError(at, "expected ")
           << (form == "select" ? "two types" : "one type");
  state.addTypes(types.back());
  if (form == "same")
    return resolve(SmallVector<Type>(count, types[0]));
  if (form == "select") {
    SmallVector<Type> all(count, types[1]);
    if (count)
      all[0] = types[0];
    return resolve(all);
  }
  if (form == "complex") {
    Type part = partOf(types[0]);
    if (!part)
      return parser.emitError(at, "expected a tensor of complex numbers");
    return resolve(SmallVector<Type>(count, part));
  }
  if (auto tuple = dyn_cast<TupleType>(types[0]))
    return resolve(tuple.getTypes());
  return resolve({});
}

//===----------------------------------------------------------------------===//
// Parts of formats
//===----------------------------------------------------------------------===//

ParseResult Reader::value() {
  // The generic form without quotes: () <{value = ...}> : () -> tensor<...>.
  if (succeeded(parser.parseOptionalLParen())) {
    if (failed(parser.parseRParen()))
      return failure();
    if (succeeded(parser.parseOptionalLess()) &&
        (failed(parser.parseAttribute(state.propertiesAttr)) ||
         failed(parser.parseGreater())))
      return failure();
    return failure(failed(parser.parseOptionalAttrDict(state.attributes)) ||
                   failed(readTypes("func")));
  }
  Attribute attribute;
  llvm::SMLoc at = parser.getCurrentLocation();
  if (failed(parser.parseAttribute(attribute)))
    return failure();
  auto typed = dyn_cast<TypedAttr>(attribute);
  if (!typed)
    return parser.emitError(at, "expected the elements of a tensor");
  set("value", attribute);
  state.addTypes(typed.getType());
  return success();
}

ParseResult Reader::ranges() {
  SmallVector<int64_t> starts, limits, strides;
  auto one = [&]() -> ParseResult {
    strides.push_back(1);
    if (parser.parseInteger(starts.emplace_back()) || parser.parseColon() ||
        parser.parseInteger(limits.emplace_back()))
      return failure();
    if (succeeded(parser.parseOptionalColon()))
      return parser.parseInteger(strides.back());
    return success();
  };
  if (failed(parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, one)))
    return failure();
  set("start_indices", b.getDenseI64ArrayAttr(starts));
  set("limit_indices", b.getDenseI64ArrayAttr(limits));
  set("strides", b.getDenseI64ArrayAttr(strides));
  return success();
}

ParseResult Reader::dot() {
  SmallVector<int64_t> lists[4];
  auto pair = [&](SmallVectorImpl<int64_t> &lhs,
                  SmallVectorImpl<int64_t> &rhs) -> ParseResult {
    return failure(parser.parseEqual() || integers(lhs) ||
                   parser.parseKeyword("x") || integers(rhs));
  };
  if (succeeded(parser.parseOptionalKeyword("batching_dims")) &&
      (pair(lists[0], lists[1]) || parser.parseComma()))
    return failure();
  if (parser.parseKeyword("contracting_dims") || pair(lists[2], lists[3]))
    return failure();
  NamedAttrList numbers;
  static constexpr StringRef names[] = {
      "lhs_batching_dimensions", "rhs_batching_dimensions",
      "lhs_contracting_dimensions", "rhs_contracting_dimensions"};
  for (auto [name, list] : llvm::zip(names, lists))
    numbers.append(name, b.getDenseI64ArrayAttr(list));
  set("dot_dimension_numbers", numbers.getDictionary(b.getContext()));
  return success();
}

/// How precise a product has to be: what is asked for is never less than what
/// the dialect's does.
ParseResult Reader::precision() {
  while (succeeded(parser.parseOptionalComma())) {
    if (succeeded(parser.parseOptionalKeyword("algorithm"))) {
      Attribute fields;
      if (parser.parseEqual() || parser.parseLess())
        return failure();
      StringRef word;
      int depth = 1;
      while (depth > 0) {
        if (succeeded(parser.parseOptionalGreater())) {
          --depth;
          continue;
        }
        if (parser.parseKeyword(&word) || parser.parseEqual() ||
            parser.parseAttribute(fields))
          return failure();
        (void)parser.parseOptionalComma();
      }
      set("algorithm", b.getUnitAttr());
      continue;
    }
    SmallVector<Attribute> list;
    auto one = [&]() -> ParseResult {
      StringRef word;
      if (failed(parser.parseKeyword(&word)))
        return failure();
      list.push_back(b.getStringAttr(word));
      return success();
    };
    if (parser.parseKeyword("precision") || parser.parseEqual() ||
        parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, one))
      return failure();
    set("precision_config", b.getArrayAttr(list));
  }
  return success();
}

ParseResult Reader::window() {
  StringRef name;
  llvm::SMLoc at = parser.getCurrentLocation();
  while (succeeded(parser.parseOptionalKeyword(&name))) {
    SmallVector<int64_t> list;
    StringRef attribute = name == "stride"       ? "window_strides"
                          : name == "pad"        ? "padding"
                          : name == "lhs_dilate" ? "lhs_dilation"
                          : name == "rhs_dilate" ? "rhs_dilation"
                          : name == "reverse"    ? "window_reversal"
                                                 : "";
    if (attribute.empty() || state.attributes.get(attribute))
      return parser.emitError(at, "expected each of stride, pad, lhs_dilate, "
                                  "rhs_dilate and reverse once at most, but "
                                  "got '")
             << name << "'";
    if (failed(parser.parseEqual()))
      return failure();
    // `reverse` has 0 and 1, or false and true.
    auto entry = [&]() -> ParseResult {
      if (succeeded(parser.parseOptionalKeyword("true")))
        return list.push_back(1), success();
      if (succeeded(parser.parseOptionalKeyword("false")))
        return list.push_back(0), success();
      return parser.parseInteger(list.emplace_back());
    };
    auto sides = [&]() -> ParseResult {
      size_t before = list.size();
      if (failed(integers(list)))
        return failure();
      if (list.size() != before + 2)
        return parser.emitError(at, "expected two sizes for each dimension");
      return success();
    };
    bool isPad = name == "pad";
    ParseResult parsed = isPad ? parser.parseCommaSeparatedList(
                                     AsmParser::Delimiter::Square, sides)
                               : parser.parseCommaSeparatedList(
                                     AsmParser::Delimiter::Square, entry);
    if (failed(parsed))
      return failure();
    set(attribute, b.getDenseI64ArrayAttr(list));
    if (failed(parser.parseOptionalComma()))
      break;
  }
  return success();
}

ParseResult Reader::exponent() {
  StringRef word;
  llvm::SMLoc at = parser.getCurrentLocation();
  if (failed(parser.parseKeyword(&word)))
    return failure();
  auto [exponent, mantissa] = word.drop_front().split('m');
  int64_t bits[2];
  if (!word.starts_with("e") || exponent.getAsInteger(10, bits[0]) ||
      mantissa.getAsInteger(10, bits[1]))
    return parser.emitError(at, "expected a format as e5m10, but got '")
           << word << "'";
  set("exponent_bits", b.getI64IntegerAttr(bits[0]));
  set("mantissa_bits", b.getI64IntegerAttr(bits[1]));
  return success();
}

//===----------------------------------------------------------------------===//
// Ops with regions
//===----------------------------------------------------------------------===//

/// A region of one op of the block's arguments, which it returns.
static void fillReducer(Region &region, StringRef op, Type type, Location loc) {
  Block &block = region.emplaceBlock();
  block.addArgument(type, loc);
  block.addArgument(type, loc);
  OpBuilder b(loc.getContext());
  b.setInsertionPointToStart(&block);
  OperationState inner(loc, op);
  inner.addOperands(block.getArguments());
  inner.addTypes(type);
  Operation *made = b.create(inner);
  OperationState end(loc, "stablehlo.return");
  end.addOperands(made->getResults());
  b.create(end);
}

/// `(%x init: %a), (%y init: %b) applies OP across dimensions = [0] : type`, or
/// a region behind the type.
ParseResult Reader::reduce() {
  Operands inits;
  do {
    if (parser.parseLParen() || parser.parseOperand(operands.emplace_back()) ||
        parser.parseKeyword("init") || parser.parseColon() ||
        parser.parseOperand(inits.emplace_back()) || parser.parseRParen())
      return failure();
  } while (succeeded(parser.parseOptionalComma()));
  llvm::append_range(operands, inits);

  std::string applied;
  if (succeeded(parser.parseOptionalKeyword("applies"))) {
    auto name = parser.parseCustomOperationName();
    if (failed(name))
      return failure();
    applied = name->getStringRef().str();
  }
  SmallVector<int64_t> dims;
  FunctionType type;
  llvm::SMLoc at = parser.getCurrentLocation();
  if (parser.parseKeyword("across") || parser.parseKeyword("dimensions") ||
      parser.parseEqual() || integers(dims) ||
      parser.parseOptionalAttrDict(state.attributes) || parser.parseColon() ||
      parser.parseType(type))
    return failure();
  set("dimensions", b.getDenseI64ArrayAttr(dims));
  SmallVector<Type> scalars;
  for (Type input : type.getInputs()) {
    auto tensor = dyn_cast<RankedTensorType>(input);
    if (!tensor)
      return parser.emitError(at, "expected tensors");
    scalars.push_back(RankedTensorType::get({}, tensor.getElementType()));
  }
  state.addTypes(type.getResults());
  if (failed(resolve(type.getInputs())))
    return failure();
  if (applied.empty())
    return reduceBody(scalars);
  fillReducer(*state.addRegion(), applied, scalars[0], state.location);
  return success();
}

/// `reducer(%a: type, %b: type) (...) {...}`: pairs of an element and what it
/// is combined with; in the block the elements come first.
ParseResult Reader::reduceBody(ArrayRef<Type> types) {
  size_t count = types.size() / 2;
  SmallVector<OpAsmParser::Argument> arguments(types.size());
  if (failed(parser.parseKeyword("reducer")))
    return failure();
  for (size_t i = 0; i < count; ++i)
    if (parser.parseLParen() ||
        parser.parseArgument(arguments[i], /*allowType=*/true) ||
        parser.parseOptionalLocationSpecifier(arguments[i].sourceLoc) ||
        parser.parseComma() ||
        parser.parseArgument(arguments[count + i], /*allowType=*/true) ||
        parser.parseOptionalLocationSpecifier(arguments[count + i].sourceLoc) ||
        parser.parseRParen())
      return failure();
  return parser.parseRegion(*state.addRegion(), arguments);
}

/// `(%a = %x, %b = %y) : types attributes {...} cond {...} do {...}`.
ParseResult Reader::whileLoop() {
  SmallVector<OpAsmParser::Argument> arguments;
  auto one = [&]() -> ParseResult {
    return failure(parser.parseOperand(arguments.emplace_back().ssaName) ||
                   parser.parseEqual() ||
                   parser.parseOperand(operands.emplace_back()));
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, one))
    return failure();
  llvm::SMLoc at = parser.getCurrentLocation();
  if (!operands.empty() &&
      (parser.parseColon() || parser.parseTypeList(state.types)))
    return failure();
  if (state.types.size() != arguments.size())
    return parser.emitError(at, "expected a type for each of ")
           << arguments.size() << " values";
  for (auto [argument, type] : llvm::zip(arguments, state.types))
    argument.type = type;
  return failure(resolve(state.types) ||
                 parser.parseOptionalAttrDictWithKeyword(state.attributes) ||
                 parser.parseKeyword("cond") ||
                 parser.parseRegion(*state.addRegion(), arguments) ||
                 parser.parseKeyword("do") ||
                 parser.parseRegion(*state.addRegion(), arguments));
}
