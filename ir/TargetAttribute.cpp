//===- TargetAttribute.cpp - fields of #tandem.target ---------------------===//
#include "ir/Dialect.h"
#include "ir/Nearest.h"

#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace tandem;

using ErrorAt = llvm::function_ref<InFlightDiagnostic()>;

namespace {
/// What a field may be.
struct FieldRule {
  enum class Type { Text, Texts, Number, Unit, Choice };

  StringLiteral name;
  std::optional<TargetKind> only; ///< the kind that has it; none: both
  Type type;
  int64_t least = 0, most = 0; ///< of a number
  /// What each is one of; empty entries are none.
  std::array<StringLiteral, 3> choices = {"", "", ""};

  bool isOf(TargetKind kind) const { return !only || *only == kind; }
  /// Empty if `value` is allowed; otherwise what was expected.
  std::string expected(Attribute value) const;
};
} // namespace

static constexpr FieldRule rules[] = {
    {TargetAttr::kArch, std::nullopt, FieldRule::Type::Text},
    {TargetAttr::kFeatures, TargetKind::Cpu, FieldRule::Type::Texts},
    {TargetAttr::kVectorBits, TargetKind::Cpu, FieldRule::Type::Number, 128,
     512},
    {TargetAttr::kLastCacheBytes, TargetKind::Cpu, FieldRule::Type::Number, 1,
     int64_t(1) << 40},
    {TargetAttr::kProcessors, TargetKind::Cpu, FieldRule::Type::Number, 1,
     1 << 20},
    {TargetAttr::kFastMath, TargetKind::Cpu, FieldRule::Type::Unit},
    {TargetAttr::kWinograd,
     TargetKind::Cpu,
     FieldRule::Type::Choice,
     0,
     0,
     {"auto", "no", ""}},
    {TargetAttr::kMatmulPrecision,
     TargetKind::Cuda,
     FieldRule::Type::Choice,
     0,
     0,
     {"f32", "tf32", ""}},
    {TargetAttr::kLibraries,
     TargetKind::Cuda,
     FieldRule::Type::Choice,
     0,
     0,
     {"auto", "yes", "no"}},
    {TargetAttr::kProducts,
     TargetKind::Cuda,
     FieldRule::Type::Choice,
     0,
     0,
     {"mma", "wgmma", ""}},
};

std::string FieldRule::expected(Attribute value) const {
  switch (type) {
  case Type::Text:
    return isa<StringAttr>(value) ? "" : "a string";
  case Type::Texts: {
    auto list = dyn_cast<ArrayAttr>(value);
    bool isRight = list && llvm::all_of(list, llvm::IsaPred<StringAttr>);
    return isRight ? "" : "a list of strings";
  }
  case Type::Number: {
    auto number = dyn_cast<IntegerAttr>(value);
    bool isRight = number && number.getType().isSignlessInteger(64) &&
                   number.getInt() >= least && number.getInt() <= most;
    if (name == TargetAttr::kVectorBits)
      return isRight && llvm::isPowerOf2_64(number.getInt())
                 ? ""
                 : "128, 256 or 512";
    return isRight ? ""
                   : ("an integer from " + Twine(least) + " to " + Twine(most))
                         .str();
  }
  case Type::Unit:
    return isa<UnitAttr>(value) ? "" : "a unit attribute";
  case Type::Choice: {
    auto text = dyn_cast<StringAttr>(value);
    SmallVector<StringRef> known;
    for (StringRef choice : choices)
      if (!choice.empty())
        known.push_back(choice);
    return text && llvm::is_contained(known, text.getValue())
               ? ""
               : "one of '" + llvm::join(known, "', '") + "'";
  }
  }
  llvm_unreachable("types of fields");
}

// target ::= `<` (`cpu` | `cuda`) dictionary? `>`
Attribute TargetAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation(), at = loc;
  StringRef word;
  if (parser.parseLess())
    return {};
  at = parser.getCurrentLocation();
  if (failed(parser.parseOptionalKeyword(&word)))
    word = "";
  std::optional<TargetKind> kind = symbolizeTargetKind(word);
  if (!kind) {
    InFlightDiagnostic error = parser.emitError(at);
    error << "expected the kind of a target to be cpu or cuda";
    if (!word.empty())
      error << ", but got '" << word << "'";
    return {};
  }
  NamedAttrList fields;
  if (parser.parseOptionalAttrDict(fields) || parser.parseGreater())
    return {};
  return parser.getChecked<TargetAttr>(
      loc, parser.getContext(), *kind,
      fields.getDictionary(parser.getContext()));
}

void TargetAttr::print(AsmPrinter &printer) const {
  printer << '<' << stringifyTargetKind(getKind());
  if (!getFields().empty())
    printer << ' ' << getFields();
  printer << '>';
}

LogicalResult TargetAttr::verify(ErrorAt error, TargetKind kind,
                                 DictionaryAttr fields) {
  SmallVector<StringRef> names;
  for (const FieldRule &rule : rules)
    if (rule.isOf(kind))
      names.push_back(rule.name);
  // Everything that is wrong, in one message.
  std::vector<std::string> problems;
  for (NamedAttribute field : fields) {
    StringRef name = field.getName();
    const FieldRule *rule = llvm::find_if(rules, [&](const FieldRule &one) {
      return one.name == name && one.isOf(kind);
    });
    if (rule == std::end(rules)) {
      std::string nearest = didYouMean(name, names);
      problems.push_back(
          "unknown field '" + name.str() + "'" +
          (nearest.empty() ? "; known are '" + llvm::join(names, "', '") + "'"
                           : nearest));
      continue;
    }
    std::string expected = rule->expected(field.getValue());
    if (expected.empty())
      continue;
    std::string got;
    llvm::raw_string_ostream(got) << field.getValue();
    problems.push_back("expected '" + name.str() + "' to be " + expected +
                       ", but got " + got);
  }
  if (problems.empty())
    return success();
  return error() << "'tandem.target': " << llvm::join(problems, "; ");
}

SmallVector<StringRef> TargetAttr::getFeatures() const {
  SmallVector<StringRef> names;
  if (auto list = getFields().getAs<ArrayAttr>(kFeatures))
    for (auto name : list.getAsRange<StringAttr>())
      names.push_back(name.getValue());
  return names;
}

bool TargetAttr::hasFeature(StringRef feature) const {
  auto list = getFields().getAs<ArrayAttr>(kFeatures);
  return list &&
         llvm::is_contained(list, StringAttr::get(getContext(), feature));
}

TargetAttr TargetAttr::with(StringRef field, Attribute value) const {
  NamedAttrList fields(getFields());
  fields.set(field, value);
  return get(getContext(), getKind(), fields.getDictionary(getContext()));
}

TargetAttr TargetAttr::of(Operation *op) {
  for (; op; op = op->getParentOp())
    if (auto target = op->getAttrOfType<TargetAttr>(kTargetAttr))
      return target;
  return {};
}

StringRef TargetAttr::text(StringRef field) const {
  auto value = getFields().getAs<StringAttr>(field);
  return value ? value.getValue() : StringRef();
}

int64_t TargetAttr::number(StringRef field) const {
  auto value = getFields().getAs<IntegerAttr>(field);
  return value ? value.getInt() : 0;
}
