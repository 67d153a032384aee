//===- Sizes.cpp - sizes that are expressions of symbols ------------------===//
#include "compiler/import/torch/Sizes.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"

#include <algorithm>

using namespace tandem;
using namespace tandem::torch;
using llvm::StringRef;

namespace {
/// A recursive descent over both forms; nothing once something is not known.
class Evaluator {
public:
  Evaluator(StringRef text, const Symbols &symbols,
            std::vector<std::string> *unknown)
      : text(text), symbols(symbols), unknown(unknown) {}

  std::optional<int64_t> run() {
    auto value = comparison();
    skip();
    return text.empty() ? value : std::nullopt;
  }

private:
  using Value = std::optional<int64_t>;
  static constexpr int kMostDepth = 200;

  void skip() { text = text.ltrim(); }
  bool take(StringRef token) {
    skip();
    return text.consume_front(token);
  }
  Value symbol(StringRef name) {
    auto it = symbols.find(name.str());
    if (it != symbols.end())
      return it->second;
    if (unknown)
      unknown->push_back(name.str());
    return std::nullopt;
  }

  Value comparison();
  Value sum();
  Value product();
  Value power();
  Value atom();
  Value call(StringRef name);
  static Value apply(StringRef name, llvm::ArrayRef<Value> x);

  StringRef text;
  const Symbols &symbols;
  std::vector<std::string> *unknown;
  int depth = 0;
};
} // namespace

static std::optional<int64_t> floorDiv(int64_t a, int64_t b) {
  if (b == 0 || (b == -1 && a == INT64_MIN))
    return std::nullopt;
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

using Value = std::optional<int64_t>;

static Value add(Value a, Value b) {
  int64_t made;
  if (!a || !b || __builtin_add_overflow(*a, *b, &made))
    return std::nullopt;
  return made;
}

static Value multiply(Value a, Value b) {
  int64_t made;
  if (!a || !b || __builtin_mul_overflow(*a, *b, &made))
    return std::nullopt;
  return made;
}

static Value raise(Value a, Value b) {
  if (!a || !b || *b < 0 || *b > 64)
    return std::nullopt;
  Value made = 1;
  for (int64_t i = 0; i < *b; ++i)
    made = multiply(made, a);
  return made;
}

Value Evaluator::apply(StringRef name, llvm::ArrayRef<Value> x) {
  for (const Value &value : x)
    if (!value)
      return std::nullopt;
  auto fold = [&](auto f) {
    Value made = x.empty() ? std::nullopt : x[0];
    for (const Value &value : x.drop_front(x.empty() ? 0 : 1))
      made = f(made, value);
    return made;
  };
  bool isPair = x.size() == 2;
  if (name == "Add")
    return fold(add);
  if (name == "Mul")
    return fold(multiply);
  if (name == "Max")
    return fold([](Value a, Value b) { return Value(std::max(*a, *b)); });
  if (name == "Min")
    return fold([](Value a, Value b) { return Value(std::min(*a, *b)); });
  if (name == "Pow" && isPair)
    return raise(x[0], x[1]);
  if ((name == "FloorDiv" || name == "CleanDiv") && isPair)
    return floorDiv(*x[0], *x[1]);
  if (name == "CeilDiv" && isPair) {
    Value down = floorDiv(*x[0], *x[1]);
    return down ? add(down, *x[0] % *x[1] != 0) : down;
  }
  if ((name == "Mod" || name == "PythonMod") && isPair) {
    Value down = floorDiv(*x[0], *x[1]);
    return down ? add(*x[0], -*down * *x[1]) : down;
  }
  if ((name == "Integer" || name == "TruncToInt" || name == "Identity" ||
       name == "ToFloat") &&
      x.size() == 1)
    return x[0];
  if (name == "Not" && x.size() == 1)
    return *x[0] == 0;
  if (!isPair)
    return std::nullopt;
  if (name == "Eq" || name == "Equality")
    return *x[0] == *x[1];
  if (name == "Ne" || name == "Unequality")
    return *x[0] != *x[1];
  if (name == "StrictLessThan" || name == "Lt")
    return *x[0] < *x[1];
  if (name == "LessThan" || name == "Le")
    return *x[0] <= *x[1];
  if (name == "StrictGreaterThan" || name == "Gt")
    return *x[0] > *x[1];
  if (name == "GreaterThan" || name == "Ge")
    return *x[0] >= *x[1];
  if (name == "And")
    return *x[0] && *x[1];
  if (name == "Or")
    return *x[0] || *x[1];
  return std::nullopt;
}

/// After the parenthesis that opens.
Value Evaluator::call(StringRef name) {
  if (name == "Symbol") {
    // Symbol('s0', positive=True, integer=True)
    auto end = text.find(')');
    StringRef inside = text.take_front(end);
    text = end == StringRef::npos ? "" : text.drop_front(end + 1);
    inside = inside.split(',').first.trim();
    if (inside.size() < 2)
      return std::nullopt;
    return symbol(inside.drop_front().drop_back());
  }
  llvm::SmallVector<Value> values;
  if (take(")"))
    return apply(name, values);
  do
    values.push_back(comparison());
  while (take(","));
  return take(")") ? apply(name, values) : std::nullopt;
}

Value Evaluator::atom() {
  if (++depth > kMostDepth)
    return std::nullopt;
  struct Leave {
    int &depth;
    ~Leave() { --depth; }
  } leave{depth};
  if (take("-"))
    return multiply(-1, atom());
  if (take("(")) {
    Value inside = comparison();
    return take(")") ? inside : std::nullopt;
  }
  skip();
  if (text.empty())
    return std::nullopt;
  if (llvm::isDigit(text[0])) {
    StringRef digits = text.take_while(llvm::isDigit);
    text = text.drop_front(digits.size());
    int64_t number;
    if (digits.getAsInteger(10, number) || text.starts_with("."))
      return std::nullopt;
    return number;
  }
  StringRef name =
      text.take_while([](char c) { return llvm::isAlnum(c) || c == '_'; });
  if (name.empty())
    return std::nullopt;
  text = text.drop_front(name.size());
  if (text.consume_front("("))
    return call(name);
  if (name == "True" || name == "true")
    return 1;
  if (name == "False" || name == "false")
    return 0;
  return symbol(name);
}

Value Evaluator::power() {
  Value base = atom();
  return take("**") ? raise(base, atom()) : base;
}

Value Evaluator::product() {
  Value made = power();
  while (true) {
    if (take("//")) {
      Value by = power();
      made = made && by ? floorDiv(*made, *by) : std::nullopt;
    } else if (take("%")) {
      made = apply("Mod", {made, power()});
    } else if (take("*")) {
      made = multiply(made, power());
    } else {
      return made;
    }
  }
}

Value Evaluator::sum() {
  Value made = product();
  while (true) {
    if (take("+"))
      made = add(made, product());
    else if (take("-"))
      made = add(made, multiply(-1, product()));
    else
      return made;
  }
}

Value Evaluator::comparison() {
  Value made = sum();
  for (auto [token, name] : {std::pair{"==", "Eq"},
                             {"!=", "Ne"},
                             {"<=", "Le"},
                             {">=", "Ge"},
                             {"<", "Lt"},
                             {">", "Gt"}})
    if (take(token))
      return apply(name, {made, sum()});
  return made;
}

std::optional<int64_t> torch::evaluate(const Size &size, const Symbols &symbols,
                                       std::vector<std::string> *unknown) {
  if (size.number)
    return size.number;
  return Evaluator(size.expression, symbols, unknown).run();
}

std::optional<std::pair<std::string, int64_t>>
torch::solve(const Size &size, const Symbols &symbols, int64_t value) {
  std::vector<std::string> unknown;
  (void)evaluate(size, symbols, &unknown);
  if (unknown.empty() || !llvm::all_equal(unknown))
    return std::nullopt;
  auto at = [&](int64_t x) {
    Symbols all = symbols;
    all[unknown[0]] = x;
    return evaluate(size, all);
  };
  Value zero = at(0), one = at(1);
  if (!zero || !one || *zero == *one)
    return std::nullopt;
  // What divides, or has a least or a largest value, is on no line.
  int64_t slope = *one - *zero;
  for (int64_t x : {2, 3, 4, 5, 6, 7, 8, 1000003, 1000000007})
    if (auto there = at(x); !there || there != add(zero, multiply(slope, x)))
      return std::nullopt;
  Value rise = add(value, multiply(-1, zero));
  if (!rise || *rise % slope != 0)
    return std::nullopt;
  return std::pair(unknown[0], *rise / slope);
}

std::string torch::textOf(const Size &size) {
  if (size.number)
    return std::to_string(*size.number);
  std::string made;
  for (StringRef text = size.expression; !text.empty();) {
    bool isSymbol = text.consume_front("Symbol(");
    if (isSymbol || text.consume_front("Integer(")) {
      auto [inside, rest] = text.split(')');
      made += inside.split(',').first.trim(" '\"").str();
      text = rest;
      continue;
    }
    made += text.front();
    text = text.drop_front();
  }
  return made;
}

std::string torch::symbolOf(const Size &size) {
  StringRef text = StringRef(size.expression).trim();
  if (text.consume_front("Symbol(") && text.consume_back(")")) {
    StringRef name = text.split(',').first.trim();
    return name.size() > 2 ? name.drop_front().drop_back().str() : "";
  }
  bool isName =
      !text.empty() && !llvm::isDigit(text[0]) &&
      llvm::all_of(text, [](char c) { return llvm::isAlnum(c) || c == '_'; });
  return isName ? text.str() : "";
}
