//===- Mesh.cpp - the ranks that a module is compiled for -----------------===//
#include "ir/Dialect.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace tandem;

// mesh ::= `<` (name `=` size) (`,` name `=` size)* `>`
Attribute MeshAttr::parse(AsmParser &parser, Type) {
  SmallVector<MeshAxis> axes;
  SMLoc loc = parser.getCurrentLocation();
  auto axis = [&]() -> ParseResult {
    std::string name;
    int64_t size = 0;
    if (parser.parseKeywordOrString(&name) || parser.parseEqual() ||
        parser.parseInteger(size))
      return failure();
    axes.push_back({StringAttr::get(parser.getContext(), name), size});
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater, axis))
    return {};
  return parser.getChecked<MeshAttr>(loc, parser.getContext(),
                                     ArrayRef<MeshAxis>(axes));
}

void MeshAttr::print(AsmPrinter &printer) const {
  printer << '<';
  llvm::interleaveComma(getAxes(), printer, [&](const MeshAxis &axis) {
    printer.printKeywordOrString(axis.first);
    printer << " = " << axis.second;
  });
  printer << '>';
}

LogicalResult MeshAttr::verify(llvm::function_ref<InFlightDiagnostic()> error,
                               ArrayRef<MeshAxis> axes) {
  if (axes.empty())
    return error() << "expected '#tandem.mesh' to have an axis";
  llvm::SmallDenseSet<StringAttr> names;
  int64_t ranks = 1;
  for (auto [name, size] : axes) {
    if (!name || name.empty())
      return error() << "expected an axis of '#tandem.mesh' to have a name";
    if (!names.insert(name).second)
      return error() << "expected names to be unique in '#tandem.mesh', but "
                        "got '"
                     << name.getValue() << "' twice";
    if (size < 1 || size > kMaxRanks / ranks)
      return error() << "expected the axis '" << name.getValue()
                     << "' to have a size of at least 1, and a mesh to have at "
                        "most "
                     << kMaxRanks << " ranks, but got " << size;
    ranks *= size;
  }
  return success();
}

MeshAttr MeshAttr::of(Operation *op) {
  for (; op; op = op->getParentOp())
    if (isa<ModuleOp>(op))
      if (auto mesh = op->getAttrOfType<MeshAttr>(kMeshAttr))
        return mesh;
  return {};
}

int64_t MeshAttr::getNumRanks() const {
  int64_t ranks = 1;
  for (const MeshAxis &axis : getAxes())
    ranks *= axis.second;
  return ranks;
}

std::optional<int64_t> MeshAttr::getSize(StringRef name) const {
  for (const MeshAxis &axis : getAxes())
    if (axis.first == name)
      return axis.second;
  return std::nullopt;
}

int64_t MeshAttr::groupSize(ArrayAttr axes) const {
  int64_t ranks = 1;
  for (auto name : axes.getAsRange<StringAttr>())
    ranks *= *getSize(name);
  return ranks;
}

/// From one rank to the next along an axis.
static int64_t strideOf(ArrayRef<MeshAxis> axes, StringAttr name) {
  int64_t stride = 1;
  for (size_t i = axes.size(); i-- > 0 && axes[i].first != name;)
    stride *= axes[i].second;
  return stride;
}

int64_t MeshAttr::positionOf(int64_t rank, ArrayAttr axes) const {
  int64_t position = 0;
  for (auto name : axes.getAsRange<StringAttr>()) {
    int64_t size = *getSize(name);
    position = position * size + rank / strideOf(getAxes(), name) % size;
  }
  return position;
}

SmallVector<int64_t> MeshAttr::groupOf(int64_t rank, ArrayAttr axes) const {
  int64_t first = rank;
  for (auto name : axes.getAsRange<StringAttr>()) {
    int64_t stride = strideOf(getAxes(), name);
    first -= rank / stride % *getSize(name) * stride;
  }
  SmallVector<int64_t> ranks{first};
  for (auto name : axes.getAsRange<StringAttr>()) {
    SmallVector<int64_t> more;
    for (int64_t begin : ranks)
      for (int64_t i = 0; i < *getSize(name); ++i)
        more.push_back(begin + i * strideOf(getAxes(), name));
    ranks = std::move(more);
  }
  return ranks;
}

LogicalResult
MeshAttr::verifyAxes(llvm::function_ref<InFlightDiagnostic()> error,
                     ArrayAttr axes) const {
  if (axes.empty())
    return error() << "expected at least one axis of the mesh";
  llvm::SmallDenseSet<Attribute> seen;
  for (Attribute axis : axes) {
    auto name = dyn_cast<StringAttr>(axis);
    if (!name || !getSize(name))
      return error() << "expected an axis of " << *this << ", but got " << axis;
    if (!seen.insert(axis).second)
      return error() << "expected each axis once, but got " << axis << " twice";
  }
  return success();
}
