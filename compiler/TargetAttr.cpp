//===- TargetAttr.cpp - targets as attributes of modules ------------------===//
//
// What is read back may have been edited. Code is made of it as it is, so here
// it is checked: that LLVM knows processor and features, that vectors are as
// wide as some registers, that numbers of caches and processors can be.
//
//===----------------------------------------------------------------------===//
#include "compiler/Target.h"
#include "ir/Nearest.h"
#include "passes/target/Target.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace tandem;

DictionaryAttr tandem::targetAttr(const Target &target, MLIRContext *context) {
  Builder b(context);
  if (auto *cuda = std::get_if<CudaTarget>(&target))
    return b.getDictionaryAttr(
        {b.getNamedAttr("kind", b.getStringAttr("cuda")),
         b.getNamedAttr("arch", b.getStringAttr(cuda->arch))});
  const auto &cpu = std::get<CpuTarget>(target);
  SmallVector<StringRef> features(cpu.features.begin(), cpu.features.end());
  SmallVector<NamedAttribute> fields = {
      b.getNamedAttr("kind", b.getStringAttr("cpu")),
      b.getNamedAttr("arch", b.getStringAttr(cpu.arch)),
      b.getNamedAttr("features", b.getStrArrayAttr(features)),
      b.getNamedAttr("vector_bits", b.getI64IntegerAttr(cpu.vectorBits))};
  if (cpu.lastCacheBytes)
    fields.push_back(b.getNamedAttr(kLastCacheAttr,
                                    b.getI64IntegerAttr(cpu.lastCacheBytes)));
  if (cpu.processors)
    fields.push_back(
        b.getNamedAttr(kProcessorsAttr, b.getI64IntegerAttr(cpu.processors)));
  return b.getDictionaryAttr(fields);
}

namespace {
/// Reads the fields of an attribute; collects what is wrong with them.
class Fields {
public:
  explicit Fields(DictionaryAttr attr) : attr(attr) {}

  void wrong(const Twine &message) { problems.push_back(message.str()); }
  /// A field that is wrong as it stands.
  void unexpected(StringRef name, const Twine &expected,
                  const Twine &more = "");
  /// There is nothing but these.
  void known(ArrayRef<StringRef> names);
  /// A string; empty, and a problem, if there is none.
  StringRef text(StringRef name);
  /// One of these, if it is there.
  void choice(StringRef name, ArrayRef<StringRef> values);
  /// An i64 from `least` to `most`; 0 if there is none.
  int64_t number(StringRef name, int64_t least, int64_t most);
  void unit(StringRef name);
  std::vector<std::string> features();

  Status status() const {
    return problems.empty() ? Status::success()
                            : Status::failed("'tandem.target': " +
                                             llvm::join(problems, "; "));
  }

private:
  DictionaryAttr attr;
  std::vector<std::string> problems;
};
} // namespace

void Fields::unexpected(StringRef name, const Twine &expected,
                        const Twine &more) {
  std::string got = "none";
  if (Attribute value = attr.get(name)) {
    got.clear();
    llvm::raw_string_ostream(got) << value;
  }
  wrong("expected '" + name + "' to be " + expected + ", but got " + got +
        more);
}

void Fields::known(ArrayRef<StringRef> names) {
  for (NamedAttribute field : attr)
    if (StringRef name = field.getName(); !llvm::is_contained(names, name)) {
      std::string nearest = didYouMean(name, names);
      wrong("unknown field '" + name + "'" +
            (nearest.empty() ? "; known are '" + llvm::join(names, "', '") + "'"
                             : nearest));
    }
}

StringRef Fields::text(StringRef name) {
  auto value = attr.getAs<StringAttr>(name);
  if (!value)
    unexpected(name, "a string");
  return value ? value.getValue() : StringRef();
}

void Fields::choice(StringRef name, ArrayRef<StringRef> values) {
  auto value = attr.getAs<StringAttr>(name);
  if (attr.contains(name) && !(value && llvm::is_contained(values, value)))
    unexpected(name, "one of '" + llvm::join(values, "', '") + "'");
}

int64_t Fields::number(StringRef name, int64_t least, int64_t most) {
  if (!attr.contains(name))
    return 0;
  auto value = attr.getAs<IntegerAttr>(name);
  if (value && value.getType().isSignlessInteger(64) &&
      value.getInt() >= least && value.getInt() <= most)
    return value.getInt();
  unexpected(name, "an integer from " + Twine(least) + " to " + Twine(most));
  return 0;
}

void Fields::unit(StringRef name) {
  if (attr.contains(name) && !attr.getAs<UnitAttr>(name))
    unexpected(name, "a unit attribute");
}

std::vector<std::string> Fields::features() {
  auto list = attr.getAs<ArrayAttr>("features");
  if (!list || !llvm::all_of(list, llvm::IsaPred<StringAttr>)) {
    unexpected("features", "a list of strings");
    return {};
  }
  std::vector<StringRef> known = knownFeatures();
  std::vector<std::string> features;
  for (auto name : list.getAsRange<StringAttr>()) {
    features.push_back(name.str());
    if (!llvm::is_contained(known, name.getValue()))
      wrong("unknown feature '" + name.getValue() + "'" +
            didYouMean(name, known));
    else if (llvm::count(features, name.getValue()) == 2)
      wrong("the feature '" + name.getValue() + "' is there twice");
  }
  return features;
}

static Result<Target> cpuFromAttr(DictionaryAttr attr) {
  Fields fields(attr);
  fields.known({"kind", "arch", "features", "vector_bits", kLastCacheAttr,
                kProcessorsAttr, kFastMathAttr, "winograd"});
  CpuTarget target;
  target.arch = fields.text("arch").str();
  if (!target.arch.empty())
    if (Status s = checkProcessor(target.arch); !s)
      fields.wrong(s.message());
  target.features = fields.features();
  int widest = widestVectors(target.features);
  target.vectorBits = static_cast<int>(fields.number("vector_bits", 128, 512));
  if (!attr.contains("vector_bits"))
    fields.unexpected("vector_bits", "128, 256 or 512");
  else if (target.vectorBits && (target.vectorBits > widest ||
                                 !llvm::isPowerOf2_32(target.vectorBits)))
    fields.unexpected("vector_bits",
                      "128, 256 or 512, and at most " + Twine(widest) +
                          ", the width of registers with these features");
  target.lastCacheBytes = fields.number(kLastCacheAttr, 1, int64_t(1) << 40);
  target.processors = fields.number(kProcessorsAttr, 1, 1 << 20);
  fields.unit(kFastMathAttr);
  fields.choice("winograd", {"auto", "no"});
  if (Status s = fields.status(); !s)
    return s;
  return Target(std::move(target));
}

static Result<Target> cudaFromAttr(DictionaryAttr attr) {
  Fields fields(attr);
  // What products are made of: no option sets it, tests and measurements do.
  fields.known({"kind", "arch", "matmul_precision", "libraries", "products"});
  StringRef arch = fields.text("arch");
  auto target = cudaTarget(arch);
  if (!target && !arch.empty())
    fields.wrong(target.status().message());
  fields.choice("matmul_precision", {"f32", "tf32"});
  fields.choice("libraries", {"auto", "yes", "no"});
  fields.choice("products", {"mma", "wgmma"});
  if (Status s = fields.status(); !s)
    return s;
  return Target(std::move(*target));
}

Result<Target> tandem::targetFromAttr(DictionaryAttr attr) {
  auto kind = attr ? attr.getAs<StringAttr>("kind") : StringAttr();
  if (kind && kind == "cpu")
    return cpuFromAttr(attr);
  if (kind && kind == "cuda")
    return cudaFromAttr(attr);
  return Status::failed("expected 'tandem.target' to have the 'kind' \"cpu\" "
                        "or \"cuda\"");
}
