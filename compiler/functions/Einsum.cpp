//===- Einsum.cpp - sums of products by an equation -----------------------===//
//
// "bij,bjk->bik": a letter for each dimension of each operand, and those of the
// result; "..." stands for any number of leading ones, which broadcast. Without
// "->" the result has the letters that occur once, in the alphabet's order. A
// letter that occurs twice in one operand is its diagonal. Operands are
// multiplied from left to right; a letter is summed as soon as no later operand
// and not the result has it.
//
//===----------------------------------------------------------------------===//
#include "compiler/functions/Products.h"
#include "ir/ops/Inference.h"

#include <map>

using namespace mlir;
using namespace tandem;
using namespace tandem::functions;

namespace {

/// What stands for a dimension: a letter, or for one of those behind "..." a
/// negative number, -1 for the last.
using Label = int;
using Labels = SmallVector<Label>;

/// An operand and what its dimensions are called.
struct Term {
  Expr value;
  Labels labels;

  int64_t find(Label label) const {
    const Label *at = llvm::find(labels, label);
    return at == labels.end() ? -1 : at - labels.begin();
  }
  bool has(Label label) const { return find(label) >= 0; }
};

class Einsum {
public:
  explicit Einsum(Call &call) : call(call) {}
  Expr run();

private:
  bool parse(StringRef text, int64_t rank, Labels &labels);
  bool readEquation();
  bool measure();
  bool takeDiagonals(Term &term);
  bool sumOut(Term &term, const Labels &needed);
  Term multiplied(const Term &a, const Term &b, const Labels &needed);
  Expr ordered(const Term &term, const Labels &order);
  int64_t sizeOf(const Labels &list) const {
    List sizes;
    for (Label label : list)
      sizes.push_back(size.at(label));
    return productOf(sizes);
  }

  Call &call;
  SmallVector<Term> terms;
  Labels output;
  int64_t ellipsis = 0; ///< the most dimensions that "..." stands for
  std::map<Label, int64_t> size;
};

} // namespace

/// The letters of one operand (or, with rank -1, of the result).
bool Einsum::parse(StringRef text, int64_t rank, Labels &labels) {
  std::string letters;
  size_t dots = StringRef::npos;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ' ')
      continue;
    if (text.substr(i).starts_with("...") && dots == StringRef::npos) {
      dots = letters.size();
      i += 2;
    } else if (llvm::isAlpha(text[i])) {
      letters.push_back(text[i]);
    } else {
      return succeeded(
          call.fail("expected letters and '...', but got '" + text + "'"));
    }
  }
  int64_t behind = dots == StringRef::npos ? 0
                   : rank < 0              ? ellipsis
                                           : rank - int64_t(letters.size());
  if (rank >= 0 && (behind < 0 || behind + int64_t(letters.size()) != rank))
    return succeeded(call.fail("expected '" + text + "' to name " +
                               Twine(rank) + " dimensions"));
  ellipsis = std::max(ellipsis, behind);
  for (size_t i = 0; i <= letters.size(); ++i) {
    if (i == dots)
      for (int64_t k = behind; k > 0; --k)
        labels.push_back(static_cast<Label>(-k));
    if (i < letters.size())
      labels.push_back(letters[i]);
  }
  return true;
}

bool Einsum::readEquation() {
  StringRef equation = call.text("equation", "");
  auto [left, right] = equation.split("->");
  bool isExplicit = equation.contains("->");
  SmallVector<StringRef> parts;
  left.split(parts, ',');
  if (parts.size() != call.size())
    return succeeded(call.fail("expected an equation of " + Twine(call.size()) +
                               " operands, but got '" + equation + "'"));
  for (auto [i, part] : llvm::enumerate(parts)) {
    Term term{call[i], {}};
    if (!parse(part, term.value.rank(), term.labels))
      return false;
    terms.push_back(term);
  }
  if (isExplicit) {
    if (!parse(right, -1, output))
      return false;
  } else {
    std::map<Label, int> count;
    for (const Term &term : terms)
      for (Label label : term.labels)
        ++count[label];
    for (int64_t k = ellipsis; k > 0; --k)
      output.push_back(static_cast<Label>(-k));
    for (auto [label, times] : count)
      if (label > 0 && times == 1)
        output.push_back(label);
  }
  for (Label label : output) {
    bool known =
        llvm::any_of(terms, [&](const Term &term) { return term.has(label); });
    if (!known || llvm::count(output, label) > 1)
      return succeeded(
          call.fail("expected each letter of the result once, and in an "
                    "operand, but got '" +
                    equation + "'"));
  }
  return true;
}

/// The size of each label; dimensions of 1 stretch.
bool Einsum::measure() {
  for (const Term &term : terms)
    for (auto [d, label] : llvm::enumerate(term.labels)) {
      int64_t given = term.value.dim(d);
      int64_t &known = size.emplace(label, given).first->second;
      if (known == 1)
        known = given;
      if (given != 1 && given != known) {
        std::string name = label > 0 ? std::string(1, char(label)) : "...";
        return succeeded(call.fail("expected one size of '" + name +
                                   "', but got " + Twine(known) + " and " +
                                   Twine(given)));
      }
    }
  return true;
}

bool Einsum::takeDiagonals(Term &term) {
  for (size_t i = 0; i < term.labels.size(); ++i)
    for (size_t j = i + 1; j < term.labels.size(); ++j) {
      if (term.labels[i] != term.labels[j])
        continue;
      if (term.value.dim(i) != term.value.dim(j))
        return succeeded(
            call.fail("expected dimensions of one size for a diagonal"));
      Label label = term.labels[i];
      term.value =
          call.call("diagonal", term.value.value,
                    {call.integerAttr("dim1", i), call.integerAttr("dim2", j)});
      if (!term.value)
        return false;
      term.labels.erase(term.labels.begin() + j);
      term.labels.erase(term.labels.begin() + i);
      term.labels.push_back(label);
      return takeDiagonals(term);
    }
  // A dimension of 1 that stretches is as good as none.
  for (size_t i = term.labels.size(); i-- > 0;)
    if (term.value.dim(i) == 1 && size.at(term.labels[i]) != 1) {
      term.value = reshaped(call, term.value, without(term.value.shape(), i));
      term.labels.erase(term.labels.begin() + i);
      if (!term.value)
        return false;
    }
  return true;
}

/// Sums over the labels that are not in `needed`.
bool Einsum::sumOut(Term &term, const Labels &needed) {
  List dims;
  Labels kept;
  for (auto [d, label] : llvm::enumerate(term.labels)) {
    if (llvm::is_contained(needed, label))
      kept.push_back(label);
    else
      dims.push_back(d);
  }
  term.value = reduced(call, "reduce_sum", term.value, dims);
  term.labels = kept;
  return bool(term.value);
}

Expr Einsum::ordered(const Term &term, const Labels &order) {
  List permutation;
  for (Label label : order)
    permutation.push_back(term.find(label));
  return permuted(call, term.value, permutation);
}

Term Einsum::multiplied(const Term &a, const Term &b, const Labels &needed) {
  Labels batch, inner, left, right;
  for (Label label : a.labels) {
    if (!b.has(label))
      left.push_back(label);
    else
      (llvm::is_contained(needed, label) ? batch : inner).push_back(label);
  }
  for (Label label : b.labels)
    if (!a.has(label))
      right.push_back(label);
  auto concat = [](std::initializer_list<Labels> parts) {
    Labels all;
    for (const Labels &part : parts)
      llvm::append_range(all, part);
    return all;
  };
  Term result{{}, concat({batch, left, right})};
  List shape;
  for (Label label : result.labels)
    shape.push_back(size.at(label));
  int64_t m = sizeOf(left), n = sizeOf(right), k = sizeOf(inner),
          count = sizeOf(batch);
  if (productOf({count, m, n}) > kMaxElements) {
    (void)call.fail("would make more elements than a tensor can have");
    return result;
  }
  Expr x = ordered(a, concat({batch, left, inner}));
  Expr y = ordered(b, concat({batch, inner, right}));
  Expr made;
  if (inner.empty()) {
    // Nothing is summed: each element is one product.
    x = along(call, reshaped(call, x, {count, m}), {count, m, n}, {0, 1});
    y = along(call, reshaped(call, y, {count, n}), {count, m, n}, {0, 2});
    if (x && y)
      made = x * y;
  } else if (batch.empty()) {
    made = batchedProduct(call, reshaped(call, x, {m, k}),
                          reshaped(call, y, {k, n}));
  } else {
    made = batchedProduct(call, reshaped(call, x, {count, m, k}),
                          reshaped(call, y, {count, k, n}));
  }
  result.value = reshaped(call, made, shape);
  return result;
}

Expr Einsum::run() {
  if (!readEquation() || !measure())
    return {};
  for (Term &term : terms)
    if (!takeDiagonals(term))
      return {};
  auto neededAfter = [&](size_t i) {
    Labels needed = output;
    for (size_t k = i; k < terms.size(); ++k)
      llvm::append_range(needed, terms[k].labels);
    return needed;
  };
  Term product = terms[0];
  if (!sumOut(product, neededAfter(1)))
    return {};
  for (size_t i = 1; i < terms.size(); ++i) {
    Labels needed = neededAfter(i + 1), here = needed;
    llvm::append_range(here, product.labels);
    if (!sumOut(terms[i], here))
      return {};
    product = multiplied(product, terms[i], needed);
    // What only the left one had, and nothing needs.
    if (!product.value || !sumOut(product, needed))
      return {};
  }
  return ordered(product, output);
}

static CallResults einsum(Call &call) {
  if (isBool(call[0]))
    return call.fail("expected operands to have numbers, but got bools");
  if (failed(expectOneType(call)))
    return failure();
  return results({Einsum(call).run()});
}

void tandem::addEinsumFunctions(FunctionTable &table) {
  table.family("Products");
  table.add("einsum(xs...; equation)",
            "sums of products by an equation such as 'bij,bjk->bik'", einsum);
}
