//===- Quantized.cpp - AdamW with states of 8 bits ------------------------===//
//
// Dettmers et al. 2022, "8-bit Optimizers via Block-wise Quantization",
// arXiv:2110.02861. A state is cut into blocks of neighbours (row-major, the
// last block filled with zeros); each element is the nearest of 256 numbers
// times the largest magnitude of its block. The numbers are those of the
// dynamic map with 7 decades, as bitsandbytes' create_dynamic_map(signed)
// lists them: of decade d, from 0 to 6, the middles of as many equal parts of
// [0.1, 1] as fit, times 10^(d - 6); beside them 0 and 1. Signed, decade d has
// 2^d parts for each sign, unsigned 2^(d + 1).
//
// How a number is coded is not published, and chosen here so that it is found
// by arithmetic: the numbers above 0 count from 1 in their order, negative ones
// from -1 down, and -128 is the 1 of the signed map. So a whole update is
// pointwise, and its kernel holds no state in f32 but in registers.
//
// The update is computed from the new means before these are rounded.
//
//===----------------------------------------------------------------------===//
#include "passes/partition/optimizers/ParamUpdate.h"

#include "ir/Ops.h"

#include <cmath>

using namespace mlir;
using namespace tandem;

using Shape = OptimizerState::Shape;
using Options = llvm::StringMap<double>;

namespace {

/// The numbers above 0 of one of the maps.
class DynamicMap {
public:
  explicit DynamicMap(bool isSigned) : shift(isSigned ? 0 : 1) {}

  /// Parts of [0.1, 1] in a decade.
  double parts(int decade) const { return std::ldexp(1, decade + shift); }
  /// The codes of a decade are [first, first + parts).
  double first(int decade) const { return parts(decade) - parts(0) + 1; }
  /// The code of 1.
  double ofOne() const { return first(kDecades); }
  /// Number `code` of the decade is base + slope * code.
  double slope(int decade) const {
    return std::pow(10, decade - (kDecades - 1)) * 0.9 / parts(decade);
  }
  double base(int decade) const {
    return std::pow(10, decade - (kDecades - 1)) * 0.1 +
           slope(decade) * (0.5 - first(decade));
  }
  double number(int decade, double code) const {
    return base(decade) + slope(decade) * code;
  }
  /// Above it the decade's numbers are nearer than those of the one before.
  double above(int decade) const {
    double before = decade ? number(decade - 1, first(decade) - 1) : 0;
    double next = decade < kDecades ? number(decade, first(decade)) : 1;
    return (before + next) / 2;
  }

  /// The magnitudes, in [0, 1], as codes.
  Expr encode(const Expr &x) const {
    Expr code = x.like(0);
    for (int decade = 0; decade < kDecades; ++decade) {
      Expr near = round((x - base(decade)) / slope(decade));
      near = maximum(near, x.like(first(decade)));
      near = minimum(near, x.like(first(decade + 1) - 1));
      code = select(isAbove(x, decade), near, code);
    }
    return select(isAbove(x, kDecades), x.like(ofOne()), code);
  }
  Expr decode(const Expr &code) const {
    Expr slopes = code.like(0), bases = code.like(0);
    for (int decade = 0; decade < kDecades; ++decade) {
      Expr isIn = compare(ComparePredicate::ge, code, code.like(first(decade)));
      slopes = select(isIn, code.like(slope(decade)), slopes);
      bases = select(isIn, code.like(base(decade)), bases);
    }
    Expr isOne = compare(ComparePredicate::ge, code, code.like(ofOne()));
    return select(isOne, code.like(1), bases + slopes * code);
  }

  static constexpr int kDecades = 7;

private:
  Expr isAbove(const Expr &x, int decade) const {
    return compare(ComparePredicate::gt, x, x.like(above(decade)));
  }
  int shift;
};

/// A state in blocks: [blocks, elements of one].
class Blocks {
public:
  Blocks(ParamUpdate &u, StringRef name, bool isSigned)
      : u(u), name(name), isSigned(isSigned), map(isSigned) {}

  /// The old values, of the parameter's shape.
  Expr values() const {
    Expr codes = wide(u.oldState(name));
    Expr scale = wide(u.oldState(scaleName()));
    Expr magnitude = codes;
    if (isSigned)
      magnitude = abs(codes);
    Expr isOne = compare(ComparePredicate::le, codes, codes.like(-128));
    Expr number = map.decode(magnitude);
    if (isSigned)
      number =
          select(isOne, codes.like(1),
                 select(compare(ComparePredicate::lt, codes, codes.like(0)),
                        -number, number));
    Expr blocks = number * scale.broadcastTo(codes.shape(), {0});
    return fromBlocks(blocks);
  }

  void put(const Expr &values) const {
    Expr blocks = toBlocks(values);
    Expr magnitude = isSigned ? abs(blocks) : blocks;
    Expr scale = magnitude.reduceMax({1});
    // Of a block of zeros every code is 0.
    Expr isNone = compare(ComparePredicate::le, scale, scale.like(0));
    Expr factor = select(isNone, scale.like(0),
                         1.0 / select(isNone, scale.like(1), scale));
    Expr part = magnitude * factor.broadcastTo(blocks.shape(), {0});
    Expr code = map.encode(minimum(part, part.like(1)));
    if (isSigned) {
      Expr isNegative = compare(ComparePredicate::lt, blocks, blocks.like(0));
      Expr isOne = compare(ComparePredicate::ge, code, code.like(map.ofOne()));
      // There is no number of -1: the nearest is that of -127.
      code = select(isNegative, -minimum(code, code.like(127)),
                    select(isOne, code.like(-128), code));
    }
    u.put(name, code);
    u.put(scaleName(), scale);
  }

private:
  std::string scaleName() const { return name.str() + "_max"; }
  Expr wide(Value value) const {
    return Expr(u.builder, u.loc, value).cast(u.builder.getF32Type());
  }
  int64_t size() const {
    return cast<RankedTensorType>(u.oldParam.getType()).getNumElements();
  }
  ArrayRef<int64_t> shapeOfBlocks() const {
    return cast<RankedTensorType>(u.oldState(name).getType()).getShape();
  }

  Expr toBlocks(const Expr &values) const {
    Expr flat = values.reshape({size()});
    ArrayRef<int64_t> shape = shapeOfBlocks();
    int64_t more = shape[0] * shape[1] - size();
    if (more)
      flat = flat.wrap(PadOp::create(
          u.builder, u.loc,
          RankedTensorType::get({size() + more}, flat.type().getElementType()),
          flat, ArrayRef<int64_t>{0}, ArrayRef<int64_t>{more},
          ArrayRef<int64_t>{0},
          cast<TypedAttr>(
              u.builder.getFloatAttr(flat.type().getElementType(), 0))));
    return flat.reshape(shape);
  }
  Expr fromBlocks(const Expr &blocks) const {
    ArrayRef<int64_t> shape = shapeOfBlocks();
    Expr flat = blocks.reshape({shape[0] * shape[1]});
    if (shape[0] * shape[1] != size())
      flat = flat.wrap(SliceOp::create(
          u.builder, u.loc,
          RankedTensorType::get({size()}, flat.type().getElementType()), flat,
          ArrayRef<int64_t>{0}, ArrayRef<int64_t>{size()},
          ArrayRef<int64_t>{1}));
    return flat.reshape(u.shape());
  }

  ParamUpdate &u;
  StringRef name;
  bool isSigned;
  DynamicMap map;
};

int64_t elementsOf(ArrayRef<int64_t> shape) {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return count;
}

bool isQuantized(ArrayRef<int64_t> param, double leastElements) {
  return static_cast<double>(elementsOf(param)) >= leastElements;
}

std::optional<Shape> blocks(ArrayRef<int64_t> param, const Options &options) {
  if (!isQuantized(param, options.lookup("min_size")))
    return std::nullopt;
  auto size = static_cast<int64_t>(options.lookup("block"));
  return Shape{(elementsOf(param) + size - 1) / size, size};
}
std::optional<Shape> scales(ArrayRef<int64_t> param, const Options &options) {
  auto shape = blocks(param, options);
  return shape ? std::optional(Shape{shape->front()}) : std::nullopt;
}
std::optional<Shape> whole(ArrayRef<int64_t> param, const Options &options) {
  return isQuantized(param, options.lookup("min_size"))
             ? std::nullopt
             : std::optional(Shape(param));
}

} // namespace

static void adamw8bit(ParamUpdate &u) {
  bool inBlocks = isQuantized(u.shape(), u.option("min_size"));
  if (inBlocks)
    u.use("block");
  double beta2 = u.option("beta2");
  Blocks ofM(u, "m8", /*isSigned=*/true), ofV(u, "v8", /*isSigned=*/false);
  auto old = [&](StringRef name, const Blocks &state) {
    return inBlocks ? state.values().cast(u.param().type().getElementType())
                    : u.state(name);
  };
  Expr g = u.gradient();
  Expr m = lerp(old("m", ofM), g, 1 - u.option("beta1"));
  Expr v = beta2 * old("v", ofV) + (1 - beta2) * (g * g);
  if (inBlocks) {
    ofM.put(m.cast(u.builder.getF32Type()));
    ofV.put(v.cast(u.builder.getF32Type()));
  } else {
    u.put("m", m);
    u.put("v", v);
  }
  Expr rate = u.rate() / (1.0 - powerOf(u.option("beta1"), u.step()));
  Expr root = 1.0 / sqrt(1.0 - powerOf(beta2, u.step()));
  u.setParam(u.decayedParam() -
             u.spread(rate) *
                 (m / (sqrt(v) * u.spread(root) + u.option("eps"))));
}

static constexpr auto kInteger = OptimizerOption::Form::Integer;
static const OptimizerOption kAdamW8[] = {
    rateOption(1e-3),
    below1("beta1", 0.9, "decay of the mean of gradients"),
    below1("beta2", 0.999, "decay of the mean of squares"),
    epsOption(1e-8),
    decayOption(1e-2),
    {"block", 256, 2, 1 << 20, false, "elements that share a scale", kInteger},
    {"min_size", 4096, 1, 1e15, false,
     "parameters with fewer elements have states in f32", kInteger}};
static const OptimizerState kStates[] = {
    {"m", 0, "", "", whole},
    {"v", 0, "", "", whole},
    {"m8", 0, "", "", blocks, OptimizerState::Element::I8},
    {"m8_max", 0, "", "", scales, OptimizerState::Element::F32},
    {"v8", 0, "", "", blocks, OptimizerState::Element::U8},
    {"v8_max", 0, "", "", scales, OptimizerState::Element::F32}};

ArrayRef<OptimizerKind> tandem::quantizedKinds() {
  static const OptimizerKind kinds[] = {
      {"adamw8bit", kAdamW8, kStates, true, true, adamw8bit,
       "AdamW, whose means have 8 bits an element and a scale a block",
       "Dettmers et al. 2022, arXiv:2110.02861, with the step of "
       "torch.optim.AdamW"}};
  return kinds;
}
