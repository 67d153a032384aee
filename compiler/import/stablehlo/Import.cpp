//===- Import.cpp - from a StableHLO module to a captured module ----------===//
#include "compiler/import/stablehlo/Import.h"
#include "compiler/import/ParseModule.h"
#include "compiler/import/stablehlo/Exported.h"
#include "compiler/import/stablehlo/ModuleTranslator.h"
#include "compiler/import/stablehlo/Portable.h"
#include "compiler/import/stablehlo/SourceDialect.h"
#include "ir/Ops.h"

#include "mlir/IR/Verifier.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::stablehlo;

/// True for a name of an op or attribute that begins at `text`.
static bool isOf(StringRef text, ArrayRef<StringRef> dialects) {
  for (StringRef dialect : dialects)
    if (text.starts_with(dialect) && text.size() > dialect.size() &&
        text[dialect.size()] == '.')
      return true;
  return false;
}

bool stablehlo::isModule(StringRef text) {
  static constexpr StringRef own[] = {"tandem"};
  static constexpr StringRef others[] = {"stablehlo", "chlo", "vhlo", "mhlo",
                                         "jax"};
  if (isBytecode(text))
    return text.contains("vhlo") || text.contains("stablehlo") ||
           text.contains("StableHLO");
  bool isFound = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '/' && text.substr(i).starts_with("//")) {
      i = std::min(text.find('\n', i), text.size());
      continue;
    }
    if (c == '"') {
      // A name of an op in the generic form is a string too.
      StringRef rest = text.drop_front(i + 1);
      isFound |= isOf(rest, others);
      if (isOf(rest, own) && rest.split('"').second.starts_with("("))
        return false;
      while (++i < text.size() && text[i] != '"')
        i += text[i] == '\\';
      continue;
    }
    bool isStart = i == 0 || !(llvm::isAlnum(text[i - 1]) ||
                               text[i - 1] == '_' || text[i - 1] == '.' ||
                               text[i - 1] == '@' || text[i - 1] == '%');
    if (!isStart || !llvm::isAlpha(c))
      continue;
    if (isOf(text.drop_front(i), own))
      return false;
    isFound |= isOf(text.drop_front(i), others);
  }
  return isFound;
}

bool stablehlo::isExportedFile(StringRef path) {
  return path.ends_with(".bin");
}

OwningOpRef<ModuleOp> stablehlo::importExported(StringRef bytes,
                                                const std::string &path,
                                                MLIRContext &context,
                                                Status &status,
                                                const ImportOptions &options) {
  auto exported = readExported(bytes);
  if (!exported) {
    status = std::move(exported).status().in("'" + path + "'");
    return {};
  }
  // How sharding is annotated in bytecode is Shardy's own.
  if (exported->devices > 1 && exported->module.contains("sdy")) {
    status = Status::unsupported(
        "unsupported: '" + path + "' was exported for " +
        std::to_string(exported->devices) +
        " devices; export it for one, or write the text of mlir_module() to a "
        ".mlir file");
    return {};
  }
  const std::vector<std::string> &platforms = exported->platforms;
  std::optional<int64_t> platform;
  auto mine = llvm::find(platforms, options.platform);
  if (platforms.size() > 1) {
    if (mine == platforms.end()) {
      status = Status::unsupported(
          "unsupported: '" + path + "' was exported for the platforms '" +
          llvm::join(platforms, "', '") + "', but it is compiled for '" +
          options.platform + "'");
      return {};
    }
    platform = mine - platforms.begin();
  }
  auto module =
      importModule(exported->module, path, context, status, options, platform);
  if (!module)
    return {};
  Location loc = FileLineColLoc::get(&context, path, 0, 0);
  if (platform)
    emitRemark(loc) << "was exported for several platforms: what it computes "
                       "on '"
                    << *mine << "' is compiled";
  if (exported->devices > 1)
    emitRemark(loc) << "was exported for " << exported->devices
                    << " devices: how they share the work is left out, and the "
                       "program is compiled for one";
  if (exported->hasBackward)
    emitRemark(loc)
        << "the derivative of JAX is left out: Tandem makes its own";
  return module;
}

/// A constant takes the place of the argument that says which platform runs.
static void choosePlatform(ModuleOp source, int64_t platform) {
  auto main = source.lookupSymbol<func::FuncOp>("main");
  if (!main || main.isDeclaration())
    return;
  for (BlockArgument argument : main.getArguments()) {
    unsigned i = argument.getArgNumber();
    auto constant = main.getArgAttrOfType<StringAttr>(i, "jax.global_constant");
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    if (!constant || constant.getValue() != "_platform_index" || !type ||
        !type.getElementType().isInteger(32))
      continue;
    OpBuilder builder = OpBuilder::atBlockBegin(&main.getBody().front());
    OperationState state(argument.getLoc(), "stablehlo.constant");
    state.addAttribute(
        "value", DenseElementsAttr::get(type, static_cast<int32_t>(platform)));
    state.addTypes(type);
    argument.replaceAllUsesWith(builder.create(state)->getResult(0));
    (void)main.eraseArgument(i);
    return;
  }
}

OwningOpRef<ModuleOp> stablehlo::importModule(StringRef text,
                                              const std::string &path,
                                              MLIRContext &context,
                                              Status &status,
                                              const ImportOptions &options,
                                              std::optional<int64_t> platform) {
  context.loadDialect<TandemDialect, func::FuncDialect>();
  loadSourceDialects(context);
  loadPortableDialect(context);
  // What JAX says about a module has names of dialects that are not there.
  bool allowed = context.allowsUnregisteredDialects();
  context.allowUnregisteredDialects(true);
  llvm::scope_exit restore([&] { context.allowUnregisteredDialects(allowed); });
  auto source = parseModule(text, path, context);
  if (source && isBytecode(text) &&
      (failed(convertPortable(*source)) || failed(verify(*source))))
    source = {};
  if (!source) {
    status =
        Status::failed("'" + path + "' is not a valid module of StableHLO");
    return {};
  }
  if (platform)
    choosePlatform(*source, *platform);
  ModuleTranslator translator(*source, path, options);
  OwningOpRef<ModuleOp> module = translator.run();
  status = translator.status();
  if (!module && status)
    status = Status::failed("'" + path + "' did not become a module");
  return module;
}
