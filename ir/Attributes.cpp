//===- Attributes.cpp - spelling of roles, buffers and refs ---------------===//
#include "ir/Dialect.h"
#include "ir/IndexRange.h"
#include "ir/Init.h"
#include "ir/Nearest.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tandem;

#include "ir/Enums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "ir/Attributes.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "ir/Types.cpp.inc"

void TandemDialect::addAttributesAndTypes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "ir/Attributes.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "ir/Types.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// RoleAttr
//===----------------------------------------------------------------------===//

RoleAttr RoleAttr::get(MLIRContext *context, RoleKind kind, StringRef name) {
  return get(context, kind, StringAttr::get(context, name),
             DictionaryAttr::get(context));
}

// role ::= `<` kind (`of`)? string dictionary? `>`
Attribute RoleAttr::parse(AsmParser &parser, Type) {
  StringRef keyword;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseKeyword(&keyword))
    return {};
  auto kind = symbolizeRoleKind(keyword);
  if (!kind) {
    parser.emitError(loc) << "expected input, param, state, output, saved, "
                             "cotangent, grad or update, but got '"
                          << keyword << "'";
    return {};
  }
  if (belongs(*kind) && parser.parseKeyword("of"))
    return {};
  std::string name;
  DictionaryAttr properties;
  if (parser.parseString(&name))
    return {};
  NamedAttrList list;
  if (parser.parseOptionalAttrDict(list))
    return {};
  properties = list.getDictionary(parser.getContext());
  if (parser.parseGreater())
    return {};
  return parser.getChecked<RoleAttr>(loc, parser.getContext(), *kind,
                                     StringAttr::get(parser.getContext(), name),
                                     properties);
}

void RoleAttr::print(AsmPrinter &printer) const {
  printer << '<' << stringifyRoleKind(getKind());
  if (belongs(getKind()))
    printer << " of";
  printer << ' ' << getName();
  if (!getProperties().empty())
    printer << ' ' << getProperties();
  printer << '>';
}

/// What `ranges` has of a slice.
static bool isSliceRange(Attribute attribute) {
  auto range = dyn_cast<DictionaryAttr>(attribute);
  if (!range)
    return false;
  auto begins = range.getAs<DenseI64ArrayAttr>(kRangeBegins),
       ends = range.getAs<DenseI64ArrayAttr>(kRangeEnds),
       steps = range.getAs<DenseI64ArrayAttr>(kRangeSteps);
  auto low = range.getAs<IntegerAttr>(RoleAttr::kLow),
       high = range.getAs<IntegerAttr>(RoleAttr::kHigh);
  Attribute ignored = range.get(RoleAttr::kIgnored);
  return begins && ends && steps && begins.size() == ends.size() &&
         begins.size() == steps.size() && low && high &&
         (!ignored || isa<IntegerAttr>(ignored));
}

/// The shape of each property's value.
static LogicalResult
verifyProperties(llvm::function_ref<InFlightDiagnostic()> error, RoleKind kind,
                 StringAttr name, DictionaryAttr properties) {
  if (Attribute init = properties.get("init");
      init &&
      failed(verifyInit(
          error,
          (stringifyRoleKind(kind) + " \"" + name.getValue() + "\"").str(),
          init)))
    return failure();
  auto fail = [&](StringRef property, StringRef expected) {
    return error() << "expected '" << property << "' of role '"
                   << stringifyRoleKind(kind) << " " << name << "' to be "
                   << expected;
  };
  for (StringRef property : {"alias", "metadata", "storage"}) {
    Attribute value = properties.get(property);
    if (!value)
      continue;
    auto alias = dyn_cast<DictionaryAttr>(value);
    if (!alias || !alias.getAs<ArrayAttr>("views") ||
        !(alias.getAs<StringAttr>("of") || alias.getAs<StringAttr>("output")))
      return fail(property, "a dictionary with 'of' or 'output', and 'views'");
    for (Attribute view : alias.getAs<ArrayAttr>("views")) {
      auto step = dyn_cast<DictionaryAttr>(view);
      if (!step || !step.getAs<StringAttr>("op"))
        return fail(property, "views that are dictionaries with an 'op'");
    }
  }
  if (Attribute pass = properties.get("pass");
      pass && pass != StringAttr::get(name.getContext(), "backward"))
    return fail("pass", "\"backward\"");
  for (StringRef property : {"inputs", "also_called"})
    if (Attribute value = properties.get(property)) {
      auto names = dyn_cast<ArrayAttr>(value);
      if (!names || !llvm::all_of(names, llvm::IsaPred<StringAttr>))
        return fail(property, "a list of names");
    }
  if (Attribute value = properties.get("rows")) {
    auto how = dyn_cast<StringAttr>(value);
    if (!how || (how.getValue() != "each" && how.getValue() != "mean"))
      return fail("rows", "\"each\" or \"mean\"");
  }
  if (Attribute value = properties.get("sharding")) {
    llvm::SmallDenseSet<Attribute> seen;
    auto dims = dyn_cast<ArrayAttr>(value);
    auto isOnce = [&](Attribute axis) {
      return isa<StringAttr>(axis) && seen.insert(axis).second;
    };
    if (!dims || !llvm::all_of(dims, [&](Attribute dim) {
          auto axes = dyn_cast<ArrayAttr>(dim);
          return axes && llvm::all_of(axes, isOnce);
        }))
      return fail("sharding", "a list, for each dimension, of axes, of which "
                              "each is there once");
  }
  if (Attribute value = properties.get("whole")) {
    auto sizes = dyn_cast<DenseI64ArrayAttr>(value);
    if (!sizes || !properties.get("sharding") ||
        llvm::any_of(sizes.asArrayRef(), [](int64_t n) { return n < 0; }))
      return fail("whole", "sizes of at least 0, and a 'sharding' beside it");
  }
  if (Attribute value = properties.get("ignored");
      value && !isa<IntegerAttr>(value))
    return fail("ignored", "an integer");
  for (StringRef property : {"requires_grad", "freed", "host", "in_place",
                             "visible", "no_grad", "unchecked"})
    if (Attribute value = properties.get(property);
        value && !isa<UnitAttr>(value))
      return fail(property, "a unit attribute, there or not");
  for (StringRef property : {"where", "reason", "part_of", "counted"})
    if (Attribute value = properties.get(property);
        value && !isa<StringAttr>(value))
      return fail(property, "a string");
  if (Attribute value = properties.get("needs");
      value && !isa<ArrayAttr>(value))
    return fail("needs", "a list of lists of cotangents");
  if (Attribute value = properties.get("resize")) {
    auto elements = dyn_cast<IntegerAttr>(value);
    if (!elements || elements.getInt() < 0)
      return fail("resize", "an integer of at least 0");
  }
  if (Attribute value = properties.get("high")) {
    auto high = dyn_cast<IntegerAttr>(value);
    if (!high || !high.getType().isSignlessInteger(64) || high.getInt() < 1)
      return fail("high", "an i64 of at least 1");
  }
  if (Attribute value = properties.get("low")) {
    auto low = dyn_cast<IntegerAttr>(value);
    if (!low || !low.getType().isSignlessInteger(64) || low.getInt() >= 0)
      return fail("low", "an i64 below 0");
    if (!properties.get("high"))
      return fail("low", "'high' beside it");
  }
  if (Attribute value = properties.get(kSliceRanges)) {
    auto ranges = dyn_cast<ArrayAttr>(value);
    if (!ranges || !llvm::all_of(ranges, isSliceRange))
      return fail(kSliceRanges,
                  "dictionaries with lists of one length, 'begins', 'ends' and "
                  "'steps', and integers 'low' and 'high'");
  }
  if (Attribute value = properties.get("grad_type")) {
    auto type = dyn_cast<TypeAttr>(value);
    if (!type || !isa<FloatType>(type.getValue()))
      return fail("grad_type", "a floating-point type");
  }
  return success();
}

LogicalResult RoleAttr::verify(llvm::function_ref<InFlightDiagnostic()> error,
                               RoleKind kind, StringAttr name,
                               DictionaryAttr properties) {
  if (name.empty())
    return error() << "expected a role's name not to be empty";
  using K = RoleKind;
  bool isValue = kind == K::Input || kind == K::Param || kind == K::State;
  auto allowed = [&](StringRef property) {
    if (property == "sharding" || property == "whole")
      return true;
    if (property == "requires_grad" || property == "metadata" ||
        property == "storage" || property == "resize" || property == "freed" ||
        property == "grad_type")
      return isValue;
    if (property == "init")
      return kind == K::Param || kind == K::State;
    if (property == "also_called")
      return kind == K::Param;
    if (property == "high" || property == "low" || property == "ignored" ||
        property == kSliceRanges)
      return kind == K::Input;
    if (property == "inputs" || property == "rows" || property == "counted")
      return kind == K::Output;
    if (property == "reason" || property == "host")
      return kind == K::Saved;
    if (property == "in_place" || property == "visible")
      return kind == K::Update;
    if (property == "no_grad")
      return isValue || kind == K::Output;
    if (property == "part_of")
      return kind == K::Output;
    if (property == "alias")
      return isValue || kind == K::Output || kind == K::Saved;
    if (property == "pass")
      return isValue || kind == K::Update;
    if (property == "unchecked")
      return isValue || kind == K::Saved || kind == K::Output;
    if (property == "needs")
      return kind == K::Grad || kind == K::Update;
    if (property == "where")
      return isValue || kind == K::Update || kind == K::Saved;
    return false;
  };
  static constexpr StringRef all[] = {
      "requires_grad", "metadata",    "storage",   "resize",  "freed",
      "grad_type",     "init",        "high",      "reason",  "host",
      "in_place",      "visible",     "no_grad",   "part_of", "alias",
      "pass",          "unchecked",   "needs",     "where",   "ignored",
      "inputs",        "rows",        "counted",   "low",     "sharding",
      "whole",         "also_called", kSliceRanges};
  for (NamedAttribute property : properties)
    if (!allowed(property.getName()))
      return error() << "unknown property '" << property.getName().getValue()
                     << "' of role '" << stringifyRoleKind(kind) << " " << name
                     << "'"
                     << didYouMean(property.getName(),
                                   llvm::to_vector(
                                       llvm::make_filter_range(all, allowed)));
  return verifyProperties(error, kind, name, properties);
}

Alias Alias::from(DictionaryAttr property) {
  if (!property)
    return {};
  return {property.getAs<StringAttr>("of"),
          property.getAs<StringAttr>("output"),
          property.getAs<ArrayAttr>("views"), property.getAs<TypeAttr>("type")};
}

DictionaryAttr Alias::toAttr(MLIRContext *context) const {
  NamedAttrList fields;
  if (of)
    fields.set("of", of);
  if (output)
    fields.set("output", output);
  fields.set("views", views);
  if (type)
    fields.set("type", type);
  return fields.getDictionary(context);
}

Alias RoleAttr::getAlias() const {
  return Alias::from(getProperty<DictionaryAttr>(kAlias));
}

RoleAttr RoleAttr::with(StringRef property, Attribute value) const {
  NamedAttrList list(getProperties());
  list.set(property, value);
  return get(getContext(), getKind(), getName(),
             list.getDictionary(getContext()));
}

RoleAttr RoleAttr::withUnit(StringRef property) const {
  return with(property, UnitAttr::get(getContext()));
}

RoleAttr RoleAttr::without(StringRef property) const {
  NamedAttrList list(getProperties());
  list.erase(property);
  return get(getContext(), getKind(), getName(),
             list.getDictionary(getContext()));
}

std::string RoleAttr::str() const {
  std::string text = stringifyRoleKind(getKind()).str();
  if (belongs(getKind()))
    text += " of";
  return text + " \"" + getName().str() + "\"";
}

//===----------------------------------------------------------------------===//
// BufferAttr
//===----------------------------------------------------------------------===//

// buffer ::= `<` place integer `>`
Attribute BufferAttr::parse(AsmParser &parser, Type) {
  StringRef keyword;
  int64_t position = 0;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseKeyword(&keyword))
    return {};
  auto place = symbolizeBufferPlace(keyword);
  if (!place) {
    parser.emitError(loc) << "expected arena, argument, result or constant, "
                             "but got '"
                          << keyword << "'";
    return {};
  }
  if (parser.parseInteger(position) || parser.parseGreater())
    return {};
  if (position < 0) {
    parser.emitError(loc) << "expected a position of at least 0, but got "
                          << position;
    return {};
  }
  return get(parser.getContext(), *place, position);
}

void BufferAttr::print(AsmPrinter &printer) const {
  printer << '<' << stringifyBufferPlace(getPlace()) << ' ' << getPosition()
          << '>';
}

//===----------------------------------------------------------------------===//
// RefType
//===----------------------------------------------------------------------===//

// ref ::= `<` dimensions element-type `>`
Type RefType::parse(AsmParser &parser) {
  SmallVector<int64_t> shape;
  Type elementType;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() ||
      parser.parseDimensionList(shape, /*allowDynamic=*/false) ||
      parser.parseType(elementType) || parser.parseGreater())
    return {};
  return parser.getChecked<RefType>(loc, parser.getContext(), shape,
                                    elementType);
}

LogicalResult RefType::verify(llvm::function_ref<InFlightDiagnostic()> error,
                              ArrayRef<int64_t> shape, Type elementType) {
  if (!isElementType(elementType))
    return error() << "expected a ref's elements to be f64, f32, f16, bf16, "
                      "f8E4M3FN, f8E5M2, i64, i32, i16, i8, ui64, ui32, ui16, "
                      "ui8 or i1, but got "
                   << elementType;
  if (!isTensorShape(shape)) {
    auto diagnostic = error();
    diagnostic << "expected a ref's sizes to be at least 0 with at most 2^40 "
                  "elements, but got [";
    llvm::interleaveComma(shape, diagnostic);
    return diagnostic << "]";
  }
  return success();
}

void RefType::print(AsmPrinter &printer) const {
  printer << '<';
  for (int64_t dim : getShape())
    printer << dim << 'x';
  printer << getElementType() << '>';
}
