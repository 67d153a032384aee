//===- Recorder.cpp - the module behind a trace ---------------------------===//
#include "compiler/trace/Recorder.h"
#include "ir/BuildOp.h"

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
  values.push_back(ref);
  return Tensor(this, static_cast<int>(values.size()) - 1);
}

RefType Recorder::typeOf(const Tensor &tensor) const {
  return cast<RefType>(values[tensor.id()].getType());
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
    break;
  }
  return {};
}

Tensor Recorder::mistake(Where where, const Twine &message) {
  emitError(location(where), message);
  return Tensor(this, -1);
}

bool Recorder::usable(ArrayRef<Tensor> tensors, Where where) {
  if (finished) {
    mistake(where, "the trace is finished");
    return false;
  }
  for (const Tensor &tensor : tensors) {
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
  }
  return true;
}

std::vector<Tensor> Recorder::record(StringRef op, ArrayRef<Tensor> operands,
                                     ArrayRef<NamedAttribute> attributes,
                                     Where where, Type resultType) {
  // As many invalid tensors as any op has results.
  std::vector<Tensor> invalid(4, Tensor(this, -1));
  if (!usable(operands, where))
    return invalid;
  Location loc = location(where, op);
  SmallVector<Operation *> reads;
  SmallVector<Value> read;
  for (const Tensor &operand : operands) {
    reads.push_back(ReadOp::create(builder, loc, values[operand.id()]));
    read.push_back(reads.back()->getResult(0));
  }
  SmallVector<NamedAttribute> all(attributes);
  if (noGradDepth)
    all.push_back(builder.getNamedAttr(kNoGradAttr, builder.getUnitAttr()));
  auto created = buildOp(builder, loc, op, read, all,
                         resultType ? TypeRange(resultType) : TypeRange());
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

Tensor Recorder::recordView(StringRef op, const Tensor &source,
                            ArrayRef<NamedAttribute> attributes, Where where) {
  if (!usable(source, where))
    return {};
  auto created = buildOp(builder, location(where, op), op, values[source.id()],
                         attributes);
  if (failed(created))
    return Tensor(this, -1);
  return add((*created)->getResult(0));
}

void Recorder::recordWrite(const Tensor &target, const Tensor &value,
                           Where where) {
  if (!usable({target, value}, where))
    return;
  Location loc = location(where, "write");
  Value read = ReadOp::create(builder, loc, values[value.id()]);
  SmallVector<NamedAttribute> attributes;
  if (noGradDepth)
    attributes.push_back(
        builder.getNamedAttr(kNoGradAttr, builder.getUnitAttr()));
  (void)buildOp(builder, loc, "write", {read, values[target.id()]}, attributes);
}

Tensor Recorder::addArgument(RoleAttr role, RankedTensorType type,
                             Where where) {
  if (!usable({}, where))
    return {};
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
  for (auto &[role, value] : outputs)
    if (role.getName() == name) {
      mistake(where, "expected names to be unique, but got output '" +
                         Twine(name) + "' twice");
      return;
    }
  auto role = RoleAttr::get(&context, RoleKind::Output, name);
  // The value at the end of the program, after every write.
  outputs.push_back({role, values[tensor.id()]});
}

Result<std::string> Recorder::finish() {
  if (!finished && mistakes.empty()) {
    if (outputs.empty())
      mistakes.emplace_back("error: expected the program to have an output");
    SmallVector<Value> results;
    for (auto &[role, ref] : outputs)
      results.push_back(ReadOp::create(builder, ref.getLoc(), ref));
    func::ReturnOp::create(builder, builder.getUnknownLoc(), results);
    func.setType(builder.getFunctionType(func.getArgumentTypes(),
                                         TypeRange(ValueRange(results))));
    for (auto [i, output] : llvm::enumerate(outputs))
      setRoleOfResult(func, i, output.first);
    demoteRefs(func);
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
