//===- Trace.cpp - records a program into a captured module ---------------===//
#include "compiler/trace/Trace.h"
#include "compiler/trace/Recorder.h"
#include "runtime/artifact/AtomicFile.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::trace;

ModuleScope::ModuleScope(Recorder &recorder, const std::string &name)
    : recorder(recorder) {
  recorder.path.push_back(name);
}
ModuleScope::~ModuleScope() { recorder.path.pop_back(); }

NoGradScope::NoGradScope(Recorder &recorder) : recorder(recorder) {
  ++recorder.noGradDepth;
}
NoGradScope::~NoGradScope() { --recorder.noGradDepth; }

Trace::Trace(const std::string &name)
    : recorder_(std::make_unique<Recorder>(name)) {}
Trace::~Trace() = default;

ModuleScope Trace::module(const std::string &name) {
  return ModuleScope(*recorder_, name);
}
NoGradScope Trace::noGrad() { return NoGradScope(*recorder_); }

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
  }
  return {};
}

Tensor Trace::input(const std::string &name, Shape shape, DType dtype,
                    InputOptions options, Where where) {
  Recorder &r = *recorder_;
  auto type = tensorType(r, shape, dtype, where);
  if (!type)
    return {};
  Builder b = r.attributes();
  auto role = RoleAttr::get(b.getContext(), RoleKind::Input, name);
  if (options.requiresGrad)
    role = role.withUnit("requires_grad");
  if (options.high)
    role = role.with("high", b.getI64IntegerAttr(options.high));
  return r.addArgument(role, type, where);
}

Tensor Trace::parameter(const std::string &name, Shape shape, Init init,
                        DType dtype, Where where) {
  Recorder &r = *recorder_;
  auto type = tensorType(r, shape, dtype, where);
  if (!type)
    return {};
  Builder b = r.attributes();
  auto role = RoleAttr::get(b.getContext(), RoleKind::Param, r.qualified(name))
                  .withUnit("requires_grad")
                  .with("init", initAttr(b, init));
  return r.addArgument(role, type, where);
}

Tensor Trace::state(const std::string &name, Shape shape, Init init,
                    DType dtype, Where where) {
  Recorder &r = *recorder_;
  auto type = tensorType(r, shape, dtype, where);
  if (!type)
    return {};
  Builder b = r.attributes();
  auto role = RoleAttr::get(b.getContext(), RoleKind::State, r.qualified(name))
                  .with("init", initAttr(b, init));
  return r.addArgument(role, type, where);
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
                           where, type)[0];
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
