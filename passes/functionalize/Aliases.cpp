//===- Aliases.cpp - what shares storage in the end -----------------------===//
#include "passes/functionalize/GraphFunctionalizer.h"

#include "ir/Keys.h"
#include "ir/Signature.h"

using namespace mlir;
using namespace tandem;

/// Bytes that are written as one type and differentiated as another have no
/// gradient.
LogicalResult GraphFunctionalizer::checkAliases() {
  bool ok = true;
  for (const Argument &argument : arguments) {
    if (!hasBitcast(argument.view) || !argument.view->storage->lastWrite)
      continue;
    for (const Argument &other : arguments) {
      if (other.view->storage != argument.view->storage ||
          !other.role.has(RoleAttr::kRequiresGrad))
        continue;
      auto error = argument.view->storage->lastWrite->emitOpError()
                   << "writes storage that " << argument.str() << " shows as "
                   << argument.view->type.getElementType() << " and "
                   << other.str() << ", which requires grad, "
                   << "as " << other.view->type.getElementType();
      error.attachNote(argument.ref.getLoc()) << "it is declared here";
      ok = false;
    }
  }
  return success(ok);
}

DictionaryAttr GraphFunctionalizer::aliasOf(StringRef kind, StringAttr name,
                                            const View *base,
                                            const View *view) {
  return builder.getDictionaryAttr(
      {builder.getNamedAttr(kind, name),
       builder.getNamedAttr(key::kViews, stepsBetween(base, view))});
}

/// An output that shares storage is a handle: shape and strides.
LogicalResult GraphFunctionalizer::checkStrides(const Result &result,
                                                const View *base,
                                                const std::string &name) {
  if (stridesBetween(base, result.view))
    return success();
  auto error = func.emitError()
               << nameOf(result) << " is a view of " << name
               << " whose elements are not at equal distances in storage; "
                  "return a copy";
  error.attachNote(result.view->loc) << "the view is made here";
  return failure();
}

/// Outputs that are refs share the storage of an argument, or of each other.
LogicalResult GraphFunctionalizer::describeSharing() {
  bool ok = true;
  for (Result &result : results) {
    if (!result.view)
      continue;
    // The argument, or else the output, that it is a view of by the fewest
    // steps.
    const Argument *argument = nullptr;
    for (const Argument &candidate : arguments)
      if (isSourceOf(candidate.view, result.view) &&
          (!argument || isSourceOf(argument->view, candidate.view)))
        argument = &candidate;
    if (argument) {
      result.role = result.role.with(RoleAttr::kAlias,
                                     aliasOf(key::kOf, argument->role.getName(),
                                             argument->view, result.view));
      ok &= succeeded(checkStrides(result, argument->view, argument->str()));
      continue;
    }
    const Result *base = nullptr;
    for (const Result &candidate : results) {
      bool isBefore = candidate.view != result.view || &candidate < &result;
      if (&candidate == &result || !candidate.view || !isBefore ||
          !isSourceOf(candidate.view, result.view))
        continue;
      // The largest: what others are views of is no view itself.
      if (!base || isSourceOf(candidate.view, base->view))
        base = base && base->view == candidate.view ? base : &candidate;
    }
    if (base) {
      result.role = result.role.with(
          RoleAttr::kAlias,
          aliasOf(key::kOutput, base->role.getName(), base->view, result.view));
      ok &= succeeded(checkStrides(result, base->view, nameOf(*base)));
      continue;
    }
    for (const Result &other : results) {
      if (&other >= &result)
        break;
      if (!other.view || isSourceOf(result.view, other.view) ||
          !mayOverlap(other.view, result.view))
        continue;
      auto error = func.emitError()
                   << nameOf(other) << " and " << nameOf(result)
                   << " overlap in storage that no output and no argument "
                      "shows whole; return the tensor that they are views of "
                      "as well";
      error.attachNote(result.view->loc)
          << "'" << result.role.str() << "' is made here";
      ok = false;
    }
  }
  return success(ok);
}
