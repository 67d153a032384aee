//===- ModuleTranslator.cpp - the module of one StableHLO module ----------===//
#include "compiler/import/stablehlo/ModuleTranslator.h"
#include "compiler/capture/Names.h"
#include "ir/Ops.h"
#include "ir/Signature.h"
#include "ir/Where.h"

#include "mlir/IR/Verifier.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::stablehlo;

/// How many ops a module may have, with those of functions at each call.
static constexpr int64_t maxOps = 1 << 20;

void ModuleTranslator::misuse(const Twine &text) {
  ++problems;
  if (misused)
    misused = Status::usage(text.str());
  else
    misused = Status::usage(misused.message() + "\n" + text.str());
}

InFlightDiagnostic ModuleTranslator::wrong(Location loc) {
  ++problems;
  return emitError(loc);
}

InFlightDiagnostic ModuleTranslator::missing(Location loc) {
  ++problems;
  ++unsupported;
  return emitError(loc) << "unsupported: ";
}

Status ModuleTranslator::status() const {
  if (!misused || problems == 0)
    return misused;
  std::string text = "'" + path + "' cannot be compiled as it is";
  return unsupported == problems ? Status::unsupported(text)
                                 : Status::failed(text);
}

Location ModuleTranslator::location(Location loc) {
  MLIRContext *context = builder.getContext();
  // "jit(f)/dot_general"(callsite("f"("model.py":3:8) at ...)): the op's name,
  // and the innermost place.
  auto named = dyn_cast<NameLoc>(loc);
  Location file = FileLineColLoc::get(context, path, 0, 0);
  loc->walk([&](Location inner) {
    auto place = dyn_cast<FileLineColRange>(inner);
    if (!place)
      return WalkResult::advance();
    file = FileLineColLoc::get(place.getFilename(), place.getStartLine(),
                               place.getStartColumn());
    return WalkResult::interrupt();
  });
  return named ? Location(NameLoc::get(named.getName(), file)) : file;
}

Location ModuleTranslator::placeOfName(StringRef name) {
  return NameLoc::get(builder.getStringAttr(name),
                      FileLineColLoc::get(builder.getContext(), path, 0, 0));
}

RankedTensorType ModuleTranslator::typeOf(Type type, std::string &why) const {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    why = "a value that is no dense tensor";
  else if (!tensor.hasStaticShape())
    why = "sizes that are not known; export the function for fixed shapes";
  else if (!isElementType(tensor.getElementType())) {
    llvm::raw_string_ostream out(why);
    out << "elements of type " << tensor.getElementType();
  } else if (!isTensorType(RankedTensorType::get(tensor.getShape(),
                                                 tensor.getElementType())))
    why = "a tensor so large";
  if (!why.empty())
    return {};
  return RankedTensorType::get(tensor.getShape(), tensor.getElementType());
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

Value ModuleTranslator::standIn(Type type, Location loc) {
  std::string why;
  RankedTensorType tensor = typeOf(type, why);
  return tensor ? Value(ConstantOp::splat(builder, loc, tensor, 0)) : Value();
}

FailureOr<SmallVector<Value>>
ModuleTranslator::inlineBlock(Block &block, ArrayRef<Value> inputs) {
  Location loc = location(block.getParentOp()->getLoc());
  if (block.getNumArguments() != inputs.size()) {
    return wrong(loc) << "expected a block of " << inputs.size()
                      << " arguments, but got one of "
                      << block.getNumArguments();
  }
  int before = problems;
  for (auto [argument, value] : llvm::zip(block.getArguments(), inputs)) {
    std::string why;
    if (value && typeOf(argument.getType(), why) != value.getType()) {
      wrong(loc) << "expected an argument of type " << value.getType()
                 << ", but got one of " << argument.getType();
    }
    values[argument] = value;
  }
  SmallVector<Value> made;
  bool hasEnd = false;
  for (Operation &op : block) {
    StringRef name = op.getName().getStringRef();
    if (name == "stablehlo.return" || name == "func.return") {
      for (Value operand : op.getOperands())
        made.push_back(values.lookup(operand));
      hasEnd = true;
      continue;
    }
    if (++count > maxOps) {
      if (count == maxOps + 1) {
        missing(loc) << "more than " << maxOps
                     << " ops, those of functions counted at each call";
      }
      return failure();
    }
    translate(&op);
  }
  if (!hasEnd) {
    return wrong(loc) << "expected a block that returns values";
  }
  if (problems != before || llvm::is_contained(made, Value()))
    return failure();
  return made;
}

void ModuleTranslator::translate(Operation *op) {
  Location loc = location(op->getLoc());
  StringRef name = op->getName().getStringRef();
  SmallVector<Value> operands;
  for (Value operand : op->getOperands())
    operands.push_back(values.lookup(operand));
  Node node(*this, op, operands, loc);
  Translation translation = OpTable::get().find(name);
  bool isComplete = !llvm::is_contained(operands, Value());
  if (!translation) {
    missing(loc) << "the op '" << name << "'";
  } else if (isComplete) {
    if (succeeded(translate(node, translation))) {
      for (auto [result, value] : llvm::zip(op->getResults(), node.results))
        values[result] = value;
      return;
    }
  } else if (problems == 0) {
    wrong(loc) << "'" << name
               << "': expected values that are made before they are used";
  }
  for (Value result : op->getResults())
    values[result] = standIn(result.getType(), loc);
}

LogicalResult ModuleTranslator::translate(Node &node, Translation translation) {
  int before = problems;
  Operation *op = node.op;
  {
    // What ops say about their operands is said of the source's op.
    ScopedDiagnosticHandler handler(
        builder.getContext(), [&](Diagnostic &diagnostic) {
          if (diagnostic.getSeverity() == DiagnosticSeverity::Error &&
              problems == before)
            ++problems;
          return failure(); // others show it
        });
    if (failed(translation(node)) && !node.failed())
      (void)node.error("cannot be translated");
  }
  if (node.hasFailed || problems != before) {
    problems += problems == before;
    return failure();
  }
  auto check = [&](DictionaryAttr attributes) {
    for (NamedAttribute attribute : attributes)
      // Those with a dialect's name are about something else.
      if (!node.asked.contains(attribute.getName().getValue()) &&
          !attribute.getName().getValue().contains('.'))
        (void)node.unsupported("the attribute '" +
                               attribute.getName().getValue() + "'");
  };
  check(op->getDiscardableAttrDictionary());
  if (auto properties =
          dyn_cast_or_null<DictionaryAttr>(op->getPropertiesAsAttribute()))
    if (!op->isRegistered())
      check(properties);
  for (size_t i = 0; i < node.results.size() && !node.hasFailed; ++i) {
    RankedTensorType type = node.resultType(i);
    if (!type)
      break;
    if (!node.results[i])
      (void)node.unsupported("result number " + Twine(i));
    else if (node.results[i].getType() != type) {
      std::string text;
      llvm::raw_string_ostream(text)
          << "expected a result of type " << node.results[i].getType()
          << ", but got one of " << type;
      (void)node.error(text);
    }
  }
  return success(!node.hasFailed);
}

//===----------------------------------------------------------------------===//
// The whole
//===----------------------------------------------------------------------===//

OwningOpRef<ModuleOp> ModuleTranslator::run() {
  auto main = source.lookupSymbol<func::FuncOp>("main");
  if (!main) {
    // Of a module with one function, that.
    auto functions = source.getOps<func::FuncOp>();
    if (llvm::hasSingleElement(functions))
      main = *functions.begin();
  }
  Location top = FileLineColLoc::get(builder.getContext(), path, 0, 0);
  if (!main || !main.getBody().hasOneBlock())
    return wrong(top)
               << "expected a function 'main' of one block, but there is none",
           OwningOpRef<ModuleOp>();
  StringRef name = source.getName().value_or("main");
  name.consume_front("jit_");
  OwningOpRef<ModuleOp> module =
      ModuleOp::create(builder.getUnknownLoc(), modelNameOf(name));
  (*module)->setAttr(kPhaseAttr, builder.getStringAttr("capture"));
  builder.setInsertionPointToEnd(module->getBody());
  func = createGraphFunction(builder, top, "graph", {}, {});
  builder.setInsertionPointToEnd(&func.getBody().front());

  findResults(main);
  findArguments(main);
  addArguments(main);
  checkChoices();
  SmallVector<Value> inputs;
  for (BlockArgument argument : main.getArguments())
    inputs.push_back(values.lookup(argument));
  calls.push_back(main.getName());
  auto made = inlineBlock(main.getBody().front(), inputs);
  if (succeeded(made))
    addResults(main, *made);
  if (problems || failed(made))
    return {};
  if (failed(verify(*module)))
    return {};
  noteChoices();
  return module;
}
