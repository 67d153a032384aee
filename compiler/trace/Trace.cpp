//===- Trace.cpp - records a program into a captured module ---------------===//
#include "compiler/trace/Trace.h"
#include "compiler/capture/ViewChain.h"
#include "compiler/trace/Recorder.h"
#include "ir/Tags.h"
#include "ir/TiedNames.h"
#include "runtime/artifact/AtomicFile.h"
#include "runtime/artifact/View.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::trace;

ModuleScope::ModuleScope(Recorder &recorder, const std::string &name)
    : recorder(recorder) {
  recorder.path.push_back(name);
}
ModuleScope::~ModuleScope() { recorder.path.pop_back(); }

NoGradScope::NoGradScope(Recorder &recorder, Where where)
    : recorder(recorder), scope(recorder.enterGradMode(false, where)) {}
NoGradScope::~NoGradScope() { recorder.leaveScope(scope); }

EnableGradScope::EnableGradScope(Recorder &recorder, Where where)
    : recorder(recorder), scope(recorder.enterGradMode(true, where)) {}
EnableGradScope::~EnableGradScope() { recorder.leaveScope(scope); }

AutocastScope::AutocastScope(Recorder &recorder, std::optional<DType> low,
                             Where where)
    : recorder(recorder), scope(recorder.enterAutocast(low, where)) {}
AutocastScope::~AutocastScope() { recorder.leaveScope(scope); }

StreamScope::StreamScope(Recorder &recorder, int64_t stream, Where where)
    : recorder(recorder), scope(recorder.enterStream(stream, where)) {}
StreamScope::~StreamScope() { recorder.leaveScope(scope); }

CheckpointScope::CheckpointScope(Recorder &recorder, const std::string &name,
                                 Where where)
    : recorder(recorder), scope(recorder.enterCheckpoint(name, where)) {}
CheckpointScope::~CheckpointScope() { recorder.leaveScope(scope); }

Trace::Trace(const std::string &name)
    : recorder_(std::make_unique<Recorder>(name)) {}
Trace::~Trace() = default;

ModuleScope Trace::module(const std::string &name) {
  return ModuleScope(*recorder_, name);
}
NoGradScope Trace::noGrad(Where where) {
  return NoGradScope(*recorder_, where);
}
EnableGradScope Trace::enableGrad(Where where) {
  return EnableGradScope(*recorder_, where);
}
AutocastScope Trace::autocast(std::optional<DType> low, Where where) {
  return AutocastScope(*recorder_, low, where);
}
StreamScope Trace::stream(int64_t number, Where where) {
  return StreamScope(*recorder_, number, where);
}

CheckpointScope Trace::checkpoint(const std::string &name, Where where) {
  return CheckpointScope(*recorder_, name, where);
}

Tensor Trace::save(const Tensor &tensor, Where where) {
  recorder_->tag(tensor, kSaveAttr, where);
  return tensor;
}

Tensor Trace::offload(const Tensor &tensor, Where where) {
  recorder_->tag(tensor, kOffloadAttr, where);
  return tensor;
}

Tensor Trace::recompute(const Tensor &tensor, Where where) {
  recorder_->tag(tensor, kRecomputeAttr, where);
  return tensor;
}

/// The tensor type; null after a mistake.
static RankedTensorType tensorType(Recorder &recorder, const Shape &shape,
                                   DType dtype, Where where) {
  Type element = recorder.elementType(dtype);
  if (!element) {
    recorder.mistake(where, "unsupported element type '" +
                                Twine(StringRef(spelling(dtype))) + "'");
    return {};
  }
  for (int64_t size : shape)
    if (size < 0) {
      recorder.mistake(where,
                       "expected sizes of at least 0, but got " + Twine(size));
      return {};
    }
  if (!artifact::tensorBytes(dtype, shape)) {
    recorder.mistake(where, "the tensor is too large");
    return {};
  }
  return RankedTensorType::get(shape, element);
}

static DictionaryAttr initAttr(Builder b, const Init &init) {
  auto number = [&](const char *name, double value) {
    return b.getNamedAttr(name, b.getF64FloatAttr(value));
  };
  auto kind = [&](const char *name) {
    return b.getNamedAttr("kind", b.getStringAttr(name));
  };
  switch (init.kind) {
  case Init::Kind::Constant:
    return b.getDictionaryAttr({kind("constant"), number("value", init.a)});
  case Init::Kind::Uniform:
    return b.getDictionaryAttr(
        {kind("uniform"), number("low", init.a), number("high", init.b)});
  case Init::Kind::Normal:
    return b.getDictionaryAttr(
        {kind("normal"), number("mean", init.a), number("std", init.b)});
  case Init::Kind::Counter:
    return b.getDictionaryAttr(
        {kind("counter"), number("scale", init.a),
         b.getNamedAttr("stream", b.getI64IntegerAttr(init.stream))});
  case Init::Kind::Seed:
    return b.getDictionaryAttr(kind("seed"));
  }
  return {};
}

/// The role with what the options say.
static RoleAttr withOptions(Recorder &recorder, RoleAttr role,
                            const InputOptions &options, Where where) {
  Builder b = recorder.attributes();
  if (options.requiresGrad.value_or(role.getKind() == RoleKind::Param))
    role = role.withUnit(RoleAttr::kRequiresGrad);
  if (options.high && role.getKind() == RoleKind::Input)
    role = role.with(RoleAttr::kHigh, b.getI64IntegerAttr(options.high));
  if (!options.alsoCalled.empty() && role.getKind() == RoleKind::Param) {
    SmallVector<StringRef> names(options.alsoCalled.begin(),
                                 options.alsoCalled.end());
    role = role.with(kAlsoCalled, b.getStrArrayAttr(names));
  }
  if (options.freed)
    role = role.withUnit(RoleAttr::kFreed);
  if (options.gradType) {
    Type type = recorder.elementType(*options.gradType);
    if (isa_and_nonnull<FloatType>(type))
      role = role.with(RoleAttr::kGradType, TypeAttr::get(type));
    else
      recorder.mistake(where, "expected a floating-point type of the gradient, "
                              "but got '" +
                                  StringRef(spelling(*options.gradType)) + "'");
  }
  return role;
}

static Tensor addArgument(Recorder &r, RoleKind kind, const std::string &name,
                          const Shape &shape, DType dtype,
                          const std::optional<Init> &init,
                          const InputOptions &options, Where where) {
  auto type = tensorType(r, shape, dtype, where);
  if (!type || !r.expectName(name, where))
    return {};
  Builder b = r.attributes();
  auto role =
      withOptions(r, RoleAttr::get(b.getContext(), kind, name), options, where);
  if (init)
    role = role.with(RoleAttr::kInit, initAttr(b, *init));
  return r.addArgument(role, type, where);
}

Tensor Trace::input(const std::string &name, Shape shape, DType dtype,
                    InputOptions options, Where where) {
  return addArgument(*recorder_, RoleKind::Input, name, shape, dtype, {},
                     options, where);
}

Tensor Trace::parameter(const std::string &name, Shape shape, Init init,
                        DType dtype, InputOptions options, Where where) {
  return addArgument(*recorder_, RoleKind::Param, recorder_->qualified(name),
                     shape, dtype, init, options, where);
}

Tensor Trace::state(const std::string &name, Shape shape, Init init,
                    DType dtype, InputOptions options, Where where) {
  return addArgument(*recorder_, RoleKind::State, recorder_->qualified(name),
                     shape, dtype, init, options, where);
}

//===----------------------------------------------------------------------===//
// Declared aliases
//===----------------------------------------------------------------------===//

/// Declares the input `name` as `views` of the storage `of`, seen as `type`.
static Tensor addAlias(Recorder &r, const std::string &name, StringRef of,
                       RankedTensorType type, bool isArgument,
                       const AliasViews &views, const InputOptions &options,
                       Where where) {
  if (!r.expectName(name, where))
    return {};
  Builder b = r.attributes();
  NamedAttrList alias;
  RankedTensorType result;
  {
    // The views are recorded beside the program, for what they say.
    Block scratch;
    RegionScope region(r, scratch, "the alias '" + name + "'");
    Value base = scratch.addArgument(RefType::of(type), r.location(where));
    Tensor view = views(r.add(base));
    r.closeScopes();
    if (!r.usable(view, where))
      return {};
    ArrayAttr chain = viewChain(base, r.refOf(view));
    if (!chain)
      return r.mistake(where, "expected '" + Twine(name) +
                                  "' to be a view of '" + of +
                                  "', but it is computed");
    alias.set("views", chain);
    result = r.typeOf(view).getTensorType();
  }
  alias.set("of", b.getStringAttr(of));
  if (!isArgument)
    alias.set("type", TypeAttr::get(type));
  auto role = RoleAttr::get(b.getContext(), RoleKind::Input, name)
                  .with(RoleAttr::kAlias, alias.getDictionary(b.getContext()));
  return r.addArgument(withOptions(r, role, options, where), result, where);
}

Tensor Trace::alias(const std::string &name, const std::string &of,
                    const AliasViews &views, InputOptions options,
                    Where where) {
  Recorder &r = *recorder_;
  if (!r.usable({}, where))
    return {};
  auto index = findValue(r.graph(), of);
  if (!index)
    return r.mistake(where, "expected '" + Twine(name) +
                                "' to alias an argument, but there is no '" +
                                of +
                                "' yet; storage that is no argument needs "
                                "its type");
  auto type = cast<RefType>(r.graph().getArgument(*index).getType());
  return addAlias(r, name, of, type.getTensorType(), /*isArgument=*/true, views,
                  options, where);
}

Tensor Trace::alias(const std::string &name, const StorageOf &of,
                    const AliasViews &views, InputOptions options,
                    Where where) {
  Recorder &r = *recorder_;
  auto type = tensorType(r, of.shape, of.dtype, where);
  if (!type || !r.usable({}, where))
    return {};
  if (of.name.empty() || !isTensorType(type))
    return r.mistake(where, "expected the storage of '" + Twine(name) +
                                "' to have a name and elements");
  return addAlias(r, name, of.name, type, /*isArgument=*/false, views, options,
                  where);
}

Tensor Trace::constant(Shape shape, double number, DType dtype, Where where) {
  auto type = tensorType(*recorder_, shape, dtype, where);
  return type ? recorder_->addConstant(type, number, where) : Tensor();
}

Tensor Trace::iota(Shape shape, int64_t dim, DType dtype, Where where) {
  auto type = tensorType(*recorder_, shape, dtype, where);
  if (!type)
    return {};
  Builder b = recorder_->attributes();
  return recorder_->record("iota", {},
                           b.getNamedAttr("dim", b.getI64IntegerAttr(dim)),
                           where, Type(type))[0];
}

//===----------------------------------------------------------------------===//
// Random numbers
//===----------------------------------------------------------------------===//

static Tensor draw(Recorder &r, StringRef op, const Shape &shape, DType dtype,
                   ArrayRef<NamedAttribute> attributes, Where where) {
  auto type = tensorType(r, shape, dtype, where);
  return type ? r.recordDraw(op, {}, attributes, where, Type(type)) : Tensor();
}

Tensor Trace::uniform(Shape shape, DType dtype, Where where) {
  return draw(*recorder_, "random_uniform", shape, dtype, {}, where);
}

Tensor Trace::normal(Shape shape, DType dtype, Where where) {
  return draw(*recorder_, "random_normal", shape, dtype, {}, where);
}

Tensor Trace::bernoulli(Shape shape, double p, Where where) {
  Builder b = recorder_->attributes();
  return draw(*recorder_, "bernoulli", shape, DType::Bool,
              b.getNamedAttr("p", b.getF64FloatAttr(p)), where);
}

Tensor Trace::randomBits(Shape shape, Where where) {
  return draw(*recorder_, "random_bits", shape, DType::I32, {}, where);
}

void Trace::output(const std::string &name, const Tensor &tensor, Where where) {
  recorder_->addOutput(name, tensor, where);
}

Result<std::string> Trace::finish() { return recorder_->finish(); }

Status Trace::save(const std::string &path) {
  auto text = finish();
  if (!text)
    return text.status();
  auto file = artifact::AtomicFile::create(path);
  if (!file)
    return file.status();
  if (Status s = file->write(text->data(), text->size()); !s)
    return s;
  return file->commit();
}
