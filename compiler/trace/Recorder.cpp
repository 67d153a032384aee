//===- Recorder.cpp - the module behind a trace ---------------------------===//
#include "compiler/trace/Recorder.h"
#include "compiler/capture/TagValue.h"
#include "compiler/capture/ViewChain.h"
#include "compiler/functions/Function.h"
#include "ir/Autocast.h"
#include "ir/BuildOp.h"
#include "ir/Tags.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::trace;

Recorder::Recorder(const std::string &name) : builder(&context) {
  context.loadDialect<TandemDialect, func::FuncDialect>();
  context.getDiagEngine().registerHandler([this](Diagnostic &diagnostic) {
    std::string text;
    llvm::raw_string_ostream out(text);
    Location loc = diagnostic.getLocation();
    if (auto named = dyn_cast<NameLoc>(loc))
      loc = named.getChildLoc();
    if (auto file = dyn_cast<FileLineColLoc>(loc))
      out << file.getFilename().getValue() << ':' << file.getLine() << ':'
          << file.getColumn() << ": ";
    out << "error: " << diagnostic.str();
    mistakes.push_back(std::move(text));
  });
  module = ModuleOp::create(builder.getUnknownLoc(), name);
  (*module)->setAttr(kPhaseAttr, builder.getStringAttr("capture"));
  builder.setInsertionPointToEnd(module->getBody());
  func = createGraphFunction(builder, builder.getUnknownLoc(), "graph", {}, {});
  builder.setInsertionPointToEnd(&func.getBody().front());
}

Location Recorder::location(Where where, StringRef op) {
  Location file = FileLineColLoc::get(&context, where.file_name(), where.line(),
                                      where.column());
  std::string name = llvm::join(path, ".");
  if (!op.empty())
    name += (name.empty() ? "" : ".") + op.str();
  return name.empty()
             ? file
             : Location(NameLoc::get(builder.getStringAttr(name), file));
}

std::string Recorder::qualified(const std::string &name) const {
  std::string full;
  for (const std::string &scope : path)
    full += scope + ".";
  return full + name;
}

Tensor Recorder::add(Value ref) {
  int region = regions.empty() ? 0 : regions.back().id;
  tensors.push_back({ref, cast<RefType>(ref.getType()), region});
  return Tensor(this, static_cast<int>(tensors.size()) - 1);
}

Type Recorder::elementType(DType dtype) {
  switch (dtype) {
  case DType::Bool:
    return builder.getI1Type();
  case DType::I8:
    return builder.getI8Type();
  case DType::I16:
    return builder.getI16Type();
  case DType::I32:
    return builder.getI32Type();
  case DType::I64:
    return builder.getI64Type();
  case DType::F16:
    return builder.getF16Type();
  case DType::BF16:
    return builder.getBF16Type();
  case DType::F32:
    return builder.getF32Type();
  case DType::F64:
    return builder.getF64Type();
  case DType::U8:
  case DType::U16:
  case DType::U32:
  case DType::U64:
    return builder.getIntegerType(8 * artifact::byteSize(dtype),
                                  /*isSigned=*/false);
  case DType::F8E4M3FN:
    return Float8E4M3FNType::get(builder.getContext());
  case DType::F8E5M2:
    return Float8E5M2Type::get(builder.getContext());
  }
  return {};
}

Tensor Recorder::mistake(Where where, const Twine &message) {
  emitError(location(where), message);
  return Tensor(this, -1);
}

bool Recorder::usable(ArrayRef<Tensor> operands, Where where) {
  if (finished) {
    mistake(where, "the trace is finished");
    return false;
  }
  int region = regions.empty() ? 0 : regions.back().id;
  for (const Tensor &tensor : operands) {
    if (!tensor.valid()) {
      // After a mistake everything that follows from it is silent; a default
      // tensor is a mistake of its own.
      if (mistakes.empty())
        mistake(where, "expected a recorded tensor, but got a default one");
      return false;
    }
    if (tensor.recorder() != this) {
      mistake(where, "expected tensors of one trace, but got tensors of two");
      return false;
    }
    int home = tensors[tensor.id()].region;
    if (home != region) {
      mistake(where, "expected tensors of " + regionNames[region] +
                         ", but got one of " + regionNames[home]);
      return false;
    }
  }
  return true;
}

std::vector<Tensor> Recorder::record(StringRef op, ArrayRef<Tensor> operands,
                                     ArrayRef<NamedAttribute> attributes,
                                     Where where, ArrayRef<Type> resultTypes) {
  // As many invalid tensors as any op has results.
  std::vector<Tensor> invalid(std::max<size_t>(4, resultTypes.size()),
                              Tensor(this, -1));
  if (!usable(operands, where))
    return invalid;
  Location loc = location(where, op);
  SmallVector<Operation *> reads;
  SmallVector<Value> read;
  for (const Tensor &operand : operands) {
    reads.push_back(readHere(refOf(operand), loc));
    read.push_back(reads.back()->getResult(0));
  }
  SmallVector<NamedAttribute> all(attributes);
  llvm::append_range(all, tags());
  auto created = buildOp(builder, loc, op, read, all, resultTypes);
  if (succeeded(created) && failed(expectElements(*created))) {
    (*created)->erase();
    created = failure();
  }
  if (failed(created)) {
    for (Operation *unused : llvm::reverse(reads))
      unused->erase();
    return invalid;
  }
  std::vector<Tensor> results;
  for (Value result : (*created)->getResults())
    results.push_back(add(MakeRefOp::create(builder, loc, result)));
  return results;
}

std::vector<Tensor> Recorder::recordCall(StringRef function,
                                         ArrayRef<Tensor> operands,
                                         ArrayRef<NamedAttribute> attributes,
                                         Where where) {
  std::vector<Tensor> present;
  for (const Tensor &operand : operands)
    if (operand.recorder())
      present.push_back(operand);
  if (!usable(present, where))
    return {};
  Location loc = location(where, function);
  SmallVector<Value> values;
  for (const Tensor &operand : operands)
    values.push_back(operand.recorder() ? read(operand, loc) : Value());
  CallResults made =
      callFunction(builder, loc, function, values, attributes, tags());
  std::vector<Tensor> results;
  if (succeeded(made))
    for (Value result : *made)
      results.push_back(add(MakeRefOp::create(builder, loc, result)));
  return results;
}

Tensor Recorder::recordView(StringRef op, const Tensor &source,
                            ArrayRef<NamedAttribute> attributes, Where where,
                            Type resultType) {
  if (!usable(source, where))
    return Tensor(this, -1);
  SmallVector<NamedAttribute> all(attributes);
  llvm::append_range(all, tags());
  auto created = buildOp(builder, location(where, op), op, refOf(source), all,
                         resultType ? TypeRange(resultType) : TypeRange());
  if (failed(created))
    return Tensor(this, -1);
  return add((*created)->getResult(0));
}

void Recorder::recordHandle(StringRef op, const Tensor &target,
                            ArrayRef<Tensor> others,
                            ArrayRef<NamedAttribute> attributes, Where where) {
  std::vector<Tensor> operands{target};
  operands.insert(operands.end(), others.begin(), others.end());
  if (!usable(operands, where))
    return;
  SmallVector<Value> refs;
  for (const Tensor &operand : operands)
    refs.push_back(refOf(operand));
  SmallVector<NamedAttribute> all(attributes);
  llvm::append_range(all, tags());
  auto now = changeHandle(builder, location(where, op), op, refs, all);
  if (failed(now))
    return;
  // The same handle: every copy of the tensor names the new ref.
  tensors[target.id()].ref = *now;
  tensors[target.id()].type = cast<RefType>(now->getType());
}

Operation *Recorder::readHere(Value ref, Location loc) {
  Operation *read = ReadOp::create(builder, loc, ref);
  for (NamedAttribute attribute : tags())
    if (attribute.getName() == kCheckpointAttr)
      read->setAttr(attribute.getName(), attribute.getValue());
  return read;
}

Value Recorder::read(const Tensor &tensor, Location loc) {
  return readHere(refOf(tensor), loc)->getResult(0);
}

void Recorder::recordWrite(const Tensor &target, const Tensor &value,
                           Where where) {
  if (!usable({target, value}, where))
    return;
  Location loc = location(where, "write");
  Operation *source = readHere(refOf(value), loc);
  if (failed(buildOp(builder, loc, "write",
                     {source->getResult(0), refOf(target)}, tags())))
    source->erase();
}

void Recorder::tag(const Tensor &tensor, StringRef tag, Where where) {
  if (!usable(tensor, where))
    return;
  if (inRegion())
    mistake(where, "expected '" + tag + "' outside of " + regionName());
  else
    (void)tagValue(refOf(tensor), tag, location(where));
}

//===----------------------------------------------------------------------===//
// Scopes and regions
//===----------------------------------------------------------------------===//

int Recorder::enterGradMode(bool enabled, Where where) {
  scopes.push_back({nextScope, enabled, -1, where});
  return nextScope++;
}

int Recorder::enterAutocast(std::optional<DType> low, Where where) {
  if (low && *low != DType::BF16 && *low != DType::F16)
    mistake(where, "expected mixed precision in bf16 or f16, but got " +
                       Twine(artifact::spelling(*low)));
  scopes.push_back({nextScope, std::nullopt, -1, where, "",
                    elementType(low.value_or(DType::F32))});
  return nextScope++;
}

int Recorder::enterStream(int64_t stream, Where where) {
  if (stream < 0)
    mistake(where, "expected a stream of at least 0, but got " + Twine(stream));
  scopes.push_back(
      {nextScope, std::nullopt, std::max<int64_t>(stream, 0), where});
  return nextScope++;
}

int Recorder::enterCheckpoint(const std::string &name, Where where) {
  if (inRegion())
    mistake(where, "expected a checkpoint to begin outside of " + regionName());
  if (name.empty())
    mistake(where, "expected a checkpoint to have a name");
  // Each run of a block is a region of its own.
  std::string region = qualified(name);
  if (int number = ++checkpoints[region]; number > 1)
    region += "#" + std::to_string(number);
  scopes.push_back({nextScope, std::nullopt, -1, where, region});
  return nextScope++;
}

void Recorder::leaveScope(int id) {
  llvm::erase_if(scopes, [&](const Scope &scope) { return scope.id == id; });
}

bool Recorder::differentiates() const {
  for (const Scope &scope : llvm::reverse(scopes))
    if (scope.grad)
      return *scope.grad;
  return true;
}

SmallVector<NamedAttribute> Recorder::tags() {
  SmallVector<NamedAttribute> attributes;
  if (!differentiates())
    attributes.push_back(
        builder.getNamedAttr(kNoGradAttr, builder.getUnitAttr()));
  // Of those that the innermost region opened: what it has of others, the op
  // says whose region it is.
  for (size_t i = scopes.size(); i > firstScope(); --i)
    if (Type type = scopes[i - 1].autocast) {
      attributes.push_back(
          builder.getNamedAttr(kAutocastAttr, TypeAttr::get(type)));
      break;
    }
  for (const Scope &scope : llvm::reverse(scopes))
    if (scope.stream >= 0) {
      attributes.push_back(builder.getNamedAttr(
          kStreamAttr, builder.getI64IntegerAttr(scope.stream)));
      break;
    }
  // What is recorded inside of a custom_vjp gets the tags of that.
  for (const Scope &scope : llvm::reverse(scopes))
    if (!scope.checkpoint.empty() && !inRegion()) {
      attributes.push_back(builder.getNamedAttr(
          kCheckpointAttr, builder.getStringAttr(scope.checkpoint)));
      break;
    }
  return attributes;
}

void Recorder::closeScopes() {
  if (!differentiates())
    for (const Scope &scope : llvm::reverse(scopes))
      if (scope.grad) {
        mistake(scope.where,
                "the grad mode is still changed at the end of " + regionName());
        break;
      }
  for (size_t i = scopes.size(); i > firstScope(); --i)
    if (scopes[i - 1].autocast) {
      mistake(scopes[i - 1].where,
              "mixed precision is still set at the end of " + regionName());
      break;
    }
  scopes.erase(scopes.begin() + firstScope(), scopes.end());
}

size_t Recorder::firstScope() const {
  size_t first = 0;
  while (inRegion() && first < scopes.size() &&
         scopes[first].id < regions.back().firstScope)
    ++first;
  return first;
}

RegionScope::RegionScope(Recorder &recorder, Block &block,
                         const std::string &name)
    : recorder(recorder), outside(recorder.builder.saveInsertionPoint()) {
  int id = static_cast<int>(recorder.regionNames.size());
  recorder.regionNames.push_back(name);
  // What a region does with gradients is its own.
  int scope = recorder.enterGradMode(true, Where());
  recorder.regions.push_back({id, scope});
  recorder.builder.setInsertionPointToEnd(&block);
}

RegionScope::~RegionScope() {
  recorder.scopes.erase(recorder.scopes.begin() + recorder.firstScope(),
                        recorder.scopes.end());
  recorder.regions.pop_back();
  recorder.builder.restoreInsertionPoint(outside);
}

//===----------------------------------------------------------------------===//
// The function
//===----------------------------------------------------------------------===//

Tensor Recorder::addArgument(RoleAttr role, RankedTensorType type,
                             Where where) {
  if (!usable({}, where))
    return {};
  if (inRegion())
    return mistake(where, "expected arguments to be declared outside of " +
                              regionName());
  if (findValue(func, role.getName()))
    return mistake(where, "expected names to be unique, but got '" +
                              role.getName().getValue() + "' twice");
  unsigned index = func.getNumArguments();
  auto ref = RefType::of(type);
  auto attributes =
      builder.getDictionaryAttr(builder.getNamedAttr(kRoleAttr, role));
  if (failed(func.insertArgument(index, ref, attributes, location(where))))
    return {};
  return add(func.getArgument(index));
}

bool Recorder::expectName(StringRef name, Where where) {
  if (name.empty())
    (void)mistake(where, "expected a name, but got an empty one");
  return !name.empty();
}

Tensor Recorder::addConstant(RankedTensorType type, double number,
                             Where where) {
  if (!usable({}, where))
    return {};
  Location loc = location(where, "constant");
  Value constant = ConstantOp::splat(builder, loc, type, number);
  return add(MakeRefOp::create(builder, loc, constant));
}

void Recorder::addOutput(const std::string &name, const Tensor &tensor,
                         Where where) {
  if (!usable(tensor, where))
    return;
  if (inRegion()) {
    mistake(where,
            "expected outputs to be declared outside of " + regionName());
    return;
  }
  for (const Output &output : outputs)
    if (output.role.getName() == name) {
      mistake(where, "expected names to be unique, but got output '" +
                         Twine(name) + "' twice");
      return;
    }
  if (!expectName(name, where))
    return;
  auto role = RoleAttr::get(&context, RoleKind::Output, name);
  // What the tensor holds at the end of the program, after every write.
  outputs.push_back({role, tensor});
}

Tensor Recorder::recordDraw(StringRef op, ArrayRef<Tensor> operands,
                            ArrayRef<NamedAttribute> attributes, Where where,
                            ArrayRef<Type> resultTypes) {
  if (!usable(operands, where))
    return Tensor(this, -1);
  if (inRegion())
    return mistake(where, "unsupported: random numbers inside of " +
                              Twine(regionName()) + "; draw them outside");
  if (!random.valid()) {
    if (findValue(func, "random"))
      return mistake(where, "expected another name of an argument: 'random' is "
                            "the state of random numbers");
    auto seed = builder.getDictionaryAttr(
        builder.getNamedAttr("kind", builder.getStringAttr("seed")));
    auto role = RoleAttr::get(&context, RoleKind::State, "random");
    firstDraw = where;
    random =
        addArgument(role.with(RoleAttr::kInit, seed),
                    RankedTensorType::get({2}, builder.getI64Type()), where);
  }
  std::vector<Tensor> all(operands.begin(), operands.end());
  all.push_back(random);
  SmallVector<NamedAttribute> list(attributes);
  list.push_back(
      builder.getNamedAttr("draw", builder.getI64IntegerAttr(draws++)));
  return record(op, all, list, where, resultTypes)[0];
}

void Recorder::advanceRandom() {
  NamedAttribute first =
      builder.getNamedAttr("dim", builder.getI64IntegerAttr(0));
  Type type = typeOf(random).getTensorType();
  // [seed, offset] + [0, 1].
  Tensor step = record("iota", {}, first, firstDraw, type)[0];
  recordWrite(random, record("add", {random, step}, {}, firstDraw)[0],
              firstDraw);
}

Result<std::string> Recorder::finish() {
  if (inRegion())
    mistakes.push_back("error: expected the trace to be finished outside of " +
                       regionName());
  if (!finished)
    closeScopes();
  if (!finished && mistakes.empty()) {
    if (random.valid())
      advanceRandom();
    if (failed(resolveAliases(func)))
      return finish();
    SmallVector<Value> refs;
    for (const Output &output : outputs)
      refs.push_back(refOf(output.tensor));
    returnOutputs(builder, func, refs);
    for (auto [i, output] : llvm::enumerate(outputs))
      setRoleOfResult(func, i, output.role);
    demoteRefs(func);
    if (outputs.empty() && !changesArguments(func))
      mistakes.emplace_back("error: expected the program to have an output, or "
                            "to change an argument");
    if (mistakes.empty())
      (void)verify(*module);
  }
  finished = true;
  if (!mistakes.empty())
    return Status::failed(llvm::join(mistakes, "\n"));
  std::string text;
  llvm::raw_string_ostream out(text);
  module->print(out, OpPrintingFlags().enableDebugInfo());
  out << '\n';
  return text;
}

Recorder *trace::recorderOf(ArrayRef<Tensor> tensors) {
  for (const Tensor &tensor : tensors)
    if (tensor.recorder())
      return tensor.recorder();
  return nullptr;
}
