//===- InputTypes.cpp - inputs that arrive in another type ----------------===//
#include "compiler/InputTypes.h"
#include "compiler/PassSteps.h"
#include "compiler/functions/Call.h"
#include "ir/Dialect.h"
#include "ir/Nearest.h"
#include "ir/Signature.h"
#include "ir/ops/Inference.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringExtras.h"

#include <cmath>

using namespace mlir;
using namespace tandem;

namespace {
struct InputType {
  StringRef name;
  Type (*type)(MLIRContext *context);
};
} // namespace

static Type integer(MLIRContext *context, unsigned bits, bool isUnsigned) {
  return IntegerType::get(context, bits,
                          isUnsigned ? IntegerType::Unsigned
                                     : IntegerType::Signless);
}

/// What f32 holds without rounding.
static constexpr InputType types[] = {
    {"u8", [](MLIRContext *c) { return integer(c, 8, true); }},
    {"i8", [](MLIRContext *c) { return integer(c, 8, false); }},
    {"u16", [](MLIRContext *c) { return integer(c, 16, true); }},
    {"i16", [](MLIRContext *c) { return integer(c, 16, false); }},
    {"f16", [](MLIRContext *c) -> Type { return Float16Type::get(c); }},
    {"bf16", [](MLIRContext *c) -> Type { return BFloat16Type::get(c); }},
};

static bool readNumber(StringRef text, double &number) {
  // LLVM's parser takes words and hexadecimal digits too.
  return !text.empty() &&
         text.find_first_not_of("0123456789.eE+-") == StringRef::npos &&
         !text.getAsDouble(number) && std::isfinite(number);
}

/// "0.5" or "[0.5,0.25]".
static bool readNumbers(StringRef text, std::vector<double> &numbers) {
  bool isList = text.consume_front("[");
  if (isList && !text.consume_back("]"))
    return false;
  for (StringRef one : llvm::split(text, ','))
    if (!readNumber(one.trim(), numbers.emplace_back()))
      return false;
  return isList || numbers.size() == 1;
}

/// Commas between brackets part nothing.
static SmallVector<StringRef> entriesOf(StringRef text) {
  SmallVector<StringRef> entries;
  size_t from = 0;
  bool isInside = false;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i == text.size() || (text[i] == ',' && !isInside)) {
      entries.push_back(text.slice(from, i));
      from = i + 1;
    } else if (text[i] == '[' || text[i] == ']') {
      isInside = text[i] == '[';
    }
  }
  return entries;
}

/// Reads one "KEY=VALUE"; returns what is wrong, or "".
static std::string readEntry(StringRef entry, InputSpec &spec) {
  auto [key, value] = entry.split('=');
  std::string got = ", but got '" + value.str() + "'";
  if (key == "scale") {
    auto [over, under] = value.split('/');
    bool isGood = readNumber(over, spec.factor) && spec.factor != 0 &&
                  (over.size() == value.size() ||
                   (readNumber(under, spec.divisor) && spec.divisor != 0));
    return isGood ? "" : "expected scale to be a number or N/N, not 0" + got;
  }
  if (key == "mean")
    return readNumbers(value, spec.mean)
               ? ""
               : "expected mean to be a number or [N,...]" + got;
  if (key == "std")
    return readNumbers(value, spec.std) &&
                   llvm::all_of(spec.std, [](double x) { return x > 0; })
               ? ""
               : "expected std to be a number above 0 or [N,...] of such" + got;
  if (key == "axis")
    return !value.getAsInteger(10, spec.axis) && spec.axis >= 0
               ? ""
               : "expected axis to be the number of a dimension" + got;
  return "unknown option '" + key.str() + "'" +
         didYouMean(key, {"scale", "mean", "std", "axis"}) +
         "; known are 'scale', 'mean', 'std', 'axis'";
}

Result<InputSpec> tandem::parseInputSpec(const std::string &text) {
  auto [name, list] = StringRef(text).rsplit(':');
  if (name.empty() || name.size() == text.size())
    return Status::usage("expected NAME:TYPE[,scale=N][,mean=N][,std=N]"
                         "[,axis=N], but got '" +
                         text + "'");
  InputSpec spec;
  spec.input = name.str();
  SmallVector<StringRef> entries = entriesOf(list);
  SmallVector<StringRef> known;
  for (const InputType &type : types)
    known.push_back(type.name);
  if (!llvm::is_contained(known, entries.front()))
    return Status::usage("expected the type of '" + spec.input + "' to be " +
                         llvm::join(known, ", ") + ", but got '" +
                         entries.front().str() + "'" +
                         didYouMean(entries.front(), known));
  spec.type = entries.front().str();
  SmallVector<StringRef> keys;
  for (StringRef entry : ArrayRef<StringRef>(entries).drop_front()) {
    StringRef key = entry.split('=').first;
    if (llvm::is_contained(keys, key))
      return Status::usage("option '" + key.str() + "' is given twice");
    keys.push_back(key);
    if (std::string wrong = readEntry(entry, spec); !wrong.empty())
      return Status::usage(wrong);
  }
  if (llvm::is_contained(keys, "axis") && spec.mean.size() < 2 &&
      spec.std.size() < 2)
    return Status::usage("axis says which dimension a list of mean or std is "
                         "of, but there is no list");
  return spec;
}

/// The argument that is the input `name`, or what is wrong.
static Result<BlockArgument> findInput(func::FuncOp graph,
                                       const std::string &name) {
  SmallVector<StringRef> known;
  for (BlockArgument argument : graph.getArguments()) {
    RoleAttr role = roleOfArgument(graph, argument.getArgNumber());
    if (!role || role.getKind() != RoleKind::Input)
      continue;
    if (role.getName() == name)
      return argument;
    known.push_back(role.getName().getValue());
  }
  return Status::usage("the model has no input '" + name + "'" +
                       didYouMean(name, known) + "; its inputs are '" +
                       llvm::join(known, "', '") + "'");
}

/// What is wrong with the lists of `spec` for an input of `shape`, or "".
static std::string problemOfLists(const InputSpec &spec,
                                  ArrayRef<int64_t> shape) {
  auto [name, list] = spec.mean.size() > 1 ? std::pair("mean", &spec.mean)
                                           : std::pair("std", &spec.std);
  if (list->size() < 2)
    return "";
  std::string axis = std::to_string(spec.axis);
  if (spec.axis >= static_cast<int64_t>(shape.size()))
    return "it has no dimension " + axis + ", but is " + infer::text(shape);
  for (const auto &[name, list] :
       {std::pair("mean", &spec.mean), std::pair("std", &spec.std)}) {
    auto count = static_cast<int64_t>(list->size());
    if (count > 1 && count != shape[spec.axis])
      return "expected " + std::string(name) + " to have " +
             std::to_string(shape[spec.axis]) +
             " numbers, one for each index along dimension " + axis + " of " +
             infer::text(shape) + ", but got " + std::to_string(count) +
             "; axis=N names another dimension";
  }
  return "";
}

/// What is wrong with the numbers of `spec` in `Float`, in which they are
/// computed with, or "". The largest that arrives has to stay finite, and 1,
/// scaled, must not vanish.
template <typename Float>
static std::string problemOfNumbers(const InputSpec &spec, StringRef type) {
  auto isLost = [](double number) {
    auto rounded = static_cast<Float>(number);
    return !std::isfinite(rounded) || (number != 0 && rounded == 0);
  };
  auto problem = [&](StringRef key, double number) {
    SmallString<32> text;
    llvm::raw_svector_ostream(text) << llvm::format("%g", number);
    return "expected " + key.str() + " to be a number that " + type.str() +
           " holds, and that makes neither infinity nor 0 of what arrives, "
           "but got " +
           text.str().str();
  };
  for (double number : {spec.factor, spec.divisor})
    if (isLost(number))
      return problem("scale", number);
  for (double number : spec.mean)
    if (isLost(number))
      return problem("mean", number);
  for (double number : spec.std)
    if (isLost(number))
      return problem("std", number);
  static constexpr std::pair<StringLiteral, double> largest[] = {
      {"u8", 255}, {"i8", 128}, {"u16", 65535}, {"i16", 32768}, {"f16", 65504}};
  const auto *found = llvm::find_if(
      largest, [&](const auto &one) { return one.first == spec.type; });
  Float most =
      found == std::end(largest) ? 1 : static_cast<Float>(found->second);
  for (Float arrives : {Float(1), Float(-most), most}) {
    Float product = arrives * static_cast<Float>(spec.factor);
    Float scaled = product / static_cast<Float>(spec.divisor);
    if (!std::isfinite(product) || !std::isfinite(scaled) || scaled == 0)
      return problem("scale", spec.factor / spec.divisor);
    for (size_t i = 0; i < std::max(spec.mean.size(), spec.std.size()); ++i) {
      auto at = [&](const std::vector<double> &numbers, double otherwise) {
        // How many there are is looked at later.
        return static_cast<Float>(
            numbers.empty() ? otherwise
                            : numbers[std::min(i, numbers.size() - 1)]);
      };
      Float centered = scaled - at(spec.mean, 0);
      if (!std::isfinite(centered))
        return problem("mean", at(spec.mean, 0));
      // Another's reciprocal is infinite: small differences are, too.
      Float std = at(spec.std, 1);
      if (!std::isfinite(centered / std) || !std::isfinite(1 / std) ||
          1 / std == 0 || (centered != 0 && centered / std == 0))
        return problem("std", std);
    }
  }
  return "";
}

/// The numbers of a list in the shape of `x`.
static Expr spread(Call &call, const Expr &x, const InputSpec &spec,
                   const std::vector<double> &numbers) {
  if (numbers.size() == 1)
    return x.like(numbers.front());
  return call
      .numbersOf(x.type().getElementType(),
                 {static_cast<int64_t>(numbers.size())}, numbers)
      .broadcastTo(x.shape(), {spec.axis});
}

static Expr modelsInput(Call &call, const Expr &given, const InputSpec &spec,
                        Type element) {
  Type wide = element.isF64() ? element : call.builder.getF32Type();
  Expr x = given.cast(wide);
  // Divided, as it is written: 1/255 as a factor would be rounded once more.
  if (spec.factor != 1)
    x = x * spec.factor;
  if (spec.divisor != 1)
    x = x / spec.divisor;
  if (!spec.mean.empty())
    x = x - spread(call, x, spec, spec.mean);
  if (!spec.std.empty())
    x = x / spread(call, x, spec, spec.std);
  return x.cast(element);
}

static Status changeInput(func::FuncOp graph, const InputSpec &spec) {
  auto found = findInput(graph, spec.input);
  if (!found)
    return found.status();
  BlockArgument argument = *found;
  std::string what = "'" + spec.input + "'";
  auto type = dyn_cast<RankedTensorType>(argument.getType());
  RoleAttr role = roleOfArgument(graph, argument.getArgNumber());
  if (!type || role.has(RoleAttr::kAlias))
    return Status::usage(what + " is written, or shares its storage, so that "
                                "it keeps its type");
  Type element = type.getElementType();
  if (!isa<FloatType>(element))
    return Status::usage("expected " + what +
                         " to have floating-point elements, but the model "
                         "takes " +
                         infer::text(type.getShape()) + " of another type");
  if (role.has(RoleAttr::kRequiresGrad))
    return Status::usage(what + " requires grad, which what arrives in " +
                         spec.type + " has none of");
  if (std::string wrong = problemOfLists(spec, type.getShape()); !wrong.empty())
    return Status::usage(what + ": " + wrong);
  if (std::string wrong = element.isF64()
                              ? problemOfNumbers<double>(spec, "f64")
                              : problemOfNumbers<float>(spec, "f32");
      !wrong.empty())
    return Status::usage(what + ": " + wrong);
  const InputType *given = llvm::find_if(
      types, [&](const InputType &one) { return one.name == spec.type; });
  Type wanted = given->type(graph.getContext());
  if (wanted == element)
    return Status::usage(what + " is of " + spec.type + " already");
  argument.setType(type.clone(wanted));
  SmallVector<Type> inputs(graph.getArgumentTypes());
  inputs[argument.getArgNumber()] = argument.getType();
  graph.setType(
      FunctionType::get(graph.getContext(), inputs, graph.getResultTypes()));
  OpBuilder builder = OpBuilder::atBlockBegin(&graph.getBody().front());
  Call call(builder, argument.getLoc(), "input", {}, {});
  // The uses are those before any op reads what arrives.
  SmallVector<OpOperand *> uses;
  for (OpOperand &use : argument.getUses())
    uses.push_back(&use);
  Expr x = modelsInput(call, call.at(argument), spec, element);
  for (OpOperand *use : uses)
    use->set(x);
  return Status::success();
}

Status tandem::changeInputs(ModuleOp module,
                            const std::vector<std::string> &specs) {
  if (specs.empty())
    return Status::success();
  auto graph = module.lookupSymbol<func::FuncOp>("graph");
  if (!graph || phaseReached(module) > 1)
    return Status::usage("--input has no effect on a module that is past "
                         "'capture'; this one is at " +
                         placeOf(module));
  std::vector<std::string> wrong, names;
  for (const std::string &text : specs) {
    auto spec = parseInputSpec(text);
    Status status = spec.status();
    if (spec && llvm::is_contained(names, spec->input))
      status = Status::usage("'" + spec->input + "' is given twice");
    else if (spec)
      status = changeInput(graph, *spec);
    if (spec)
      names.push_back(spec->input);
    if (!status)
      wrong.push_back("--input: " + status.message());
  }
  return wrong.empty() ? Status::success()
                       : Status::usage(llvm::join(wrong, "; "));
}
