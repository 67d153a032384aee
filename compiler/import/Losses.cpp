//===- Losses.cpp - a loss for a graph that has none ----------------------===//
#include "compiler/import/Losses.h"
#include "compiler/functions/Function.h"
#include "ir/BuildOp.h"
#include "ir/ops/Composite.h"
#include "ir/ops/Inference.h"
#include "runtime/artifact/NearestName.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace tandem;

namespace {
struct LossKind {
  StringRef name, function;
  bool takesClasses; ///< labels are numbers of classes
  StringRef meaning;
};
} // namespace

static constexpr LossKind kinds[] = {
    {"cross_entropy", "cross_entropy", true,
     "logits [N, C] or [N, C, d...]; classes, i64 [N, d...]; "
     "',smoothing=N' behind LABELS smooths them"},
    {"nll", "nll_loss", true, "logarithms of probabilities; classes"},
    {"mse", "mse_loss", false, "anything; the same type"},
    {"l1", "l1_loss", false, "anything; the same type"},
    {"smooth_l1", "smooth_l1_loss", false, "anything; the same type"},
    {"huber", "huber_loss", false, "anything; the same type"},
    {"bce_with_logits", "binary_cross_entropy_with_logits", false,
     "logits; probabilities"},
    {"bce", "binary_cross_entropy", false, "probabilities; probabilities"},
    {"kl", "kl_div", false, "logarithms of probabilities; probabilities"},
    {"dice", "dice_loss", true,
     "logits [N, C, d...]; classes, i64 [N, d...]; 1 - the mean over the "
     "classes of their overlap in the batch"},
    {"dice_with_logits", "dice_loss", false,
     "logits of masks; the same type: the same of all masks as one class"},
};

std::vector<std::pair<std::string, std::string>> tandem::lossKinds() {
  std::vector<std::pair<std::string, std::string>> all;
  for (const LossKind &kind : kinds)
    all.emplace_back(kind.name, kind.meaning);
  return all;
}

Result<LossSpec> tandem::parseLoss(const std::string &text) {
  auto [kind, names] = StringRef(text).split(':');
  auto [output, rest] = names.split(',');
  auto [labels, more] = rest.split(',');
  SmallVector<std::string_view> known;
  for (const LossKind &one : kinds)
    known.push_back(one.name);
  std::string wrong = "expected --loss=KIND:OUTPUT,LABELS";
  if (!llvm::is_contained(known, std::string_view(kind)))
    return Status::usage(wrong + " with one of the kinds " +
                         llvm::join(known, ", ") + ", but got '" + kind.str() +
                         "'" + didYouMean(kind, known));
  LossSpec spec{kind.str(), output.str(), labels.str()};
  bool isSmoothed = labels.size() < rest.size();
  if (output.empty() || labels.empty() ||
      (isSmoothed && !more.consume_front("smoothing=")))
    return Status::usage(wrong + (isSmoothed ? "[,smoothing=N]" : "") +
                         ", but got '" + text + "'");
  if (!isSmoothed)
    return spec;
  if (kind != "cross_entropy")
    return Status::usage("--loss: smoothing is cross_entropy's, but the loss "
                         "is " +
                         kind.str());
  if (more.find_first_not_of("0123456789.eE+-") != StringRef::npos ||
      more.getAsDouble(spec.smoothing) ||
      !(spec.smoothing >= 0 && spec.smoothing <= 1))
    return Status::usage("--loss: expected smoothing to be from 0 to 1, but "
                         "got '" +
                         more.str() + "'");
  return spec;
}

/// Brings [N, C, d...] into [N, d..., C], and [N, C, 1, ...] into [N, C].
static Expr classesLast(const Expr &x) {
  if (x.rank() <= 2)
    return x;
  if (llvm::all_of(x.shape().drop_front(2), [](int64_t n) { return n == 1; }))
    return x.reshape(x.shape().take_front(2));
  SmallVector<int64_t> order = {0};
  for (int64_t i = 2; i < x.rank(); ++i)
    order.push_back(i);
  order.push_back(1);
  return x.permute(order);
}

/// Brings [N, d..., C] into [N, C, d...].
static Expr classesSecond(const Expr &x) {
  SmallVector<int64_t> order = {0, x.rank() - 1};
  for (int64_t i = 1; i + 1 < x.rank(); ++i)
    order.push_back(i);
  return x.permute(order);
}

static const LossKind &kindOf(const std::string &name) {
  return *llvm::find_if(kinds, [&](auto &kind) { return kind.name == name; });
}

Result<LossOperands> tandem::lossOperands(const LossSpec &spec,
                                          const Expr &output) {
  const std::string &name = spec.output;
  LossOperands made;
  made.x = output;
  made.labels = output.type();
  if (!isa<FloatType>(output.type().getElementType()))
    return Status::usage("expected '" + name +
                         "' to have floating-point elements");
  if (!kindOf(spec.kind).takesClasses)
    return made;
  if (output.rank() == 0)
    return Status::usage("expected '" + name +
                         "' to have a dimension of classes");
  int64_t last = output.shape().back();
  made.x = classesLast(output);
  made.classes = made.x.shape().back();
  made.labels = RankedTensorType::get(made.x.shape().drop_back(),
                                      output.builder->getI64Type());
  if (output.rank() <= 2)
    return made;
  made.note = "'" + name + "' " + infer::text(output.shape()) + " has " +
              std::to_string(made.classes) +
              " classes, along dimension 1, and a label for each of " +
              infer::text(made.x.shape().drop_back());
  if (made.x.rank() > 2)
    made.note += "; where the classes are the last dimension (" +
                 std::to_string(last) +
                 "), as in language models, the model has to transpose it "
                 "before it gives it";
  return made;
}

/// (1 - s) loss + s (mean over the classes of -log softmax(x)), both means over
/// the rows that count (Szegedy et al., "Rethinking the inception architecture
/// for computer vision", 2016, as torch.nn.functional.cross_entropy has it).
static Expr smoothed(const Expr &loss, const Expr &x, const Expr &labels,
                     double smoothing) {
  Type type = composite::computeType(x.value);
  Expr wide = x.cast(type);
  int64_t classes = x.rank() - 1;
  Expr shifted = composite::shiftByMax(wide, classes);
  Expr each = log(exp(shifted).reduceSum(classes)) -
              shifted.reduceSum(classes) / double(x.dim(classes));
  Expr isCounted = compare(ComparePredicate::ne, labels, labels.like(-100));
  SmallVector<int64_t> rows = llvm::to_vector(llvm::seq<int64_t>(0, classes));
  Expr mean = select(isCounted, each, each.like(0)).reduceSum(rows) /
              isCounted.cast(type).reduceSum(rows);
  Expr sum = loss.cast(type) * (1 - smoothing) + mean * smoothing;
  return sum.cast(loss.type().getElementType());
}

FailureOr<Value> tandem::buildLoss(OpBuilder &builder, Location loc,
                                   const LossSpec &spec, const Expr &x,
                                   Value labels) {
  const LossKind &kind = kindOf(spec.kind);
  std::string op = ("tandem." + kind.function).str();
  if (!RegisteredOperationName::lookup(op, builder.getContext())) {
    // Functions have classes along dimension 1.
    bool isMoved = kind.takesClasses && x.rank() > 2;
    Value given = isMoved ? classesSecond(x).value : x.value;
    auto made = callFunction(builder, loc, kind.function, {given, labels}, {});
    if (failed(made))
      return failure();
    return made->front();
  }
  // As nll_loss has it, and PyTorch.
  SmallVector<NamedAttribute> attributes;
  if (kind.takesClasses)
    attributes.push_back(
        builder.getNamedAttr("ignore_index", builder.getI64IntegerAttr(-100)));
  auto made = buildOp(builder, loc, kind.function, {x, labels}, attributes);
  if (failed(made))
    return failure();
  Value loss = (*made)->getResult(0);
  if (spec.smoothing == 0)
    return loss;
  Expr logits(builder, loc, x);
  return smoothed(logits.wrap(loss), logits, logits.wrap(labels),
                  spec.smoothing)
      .value;
}
