//===- Formats.cpp - the formats of StableHLO's ops -----------------------===//
//
// A format is a list of words, read from left to right:
//
//     %        an operand                  %*   operands between commas
//     %,       operands, each with a comma behind it
//     , = [ ] ( ) { }   themselves         KEY  a keyword (lower case)
//     #NAME    an integer                  #[NAME   a list of integers
//     $NAME    a keyword or a string       @NAME    a symbol
//     !NAME    true or false               ?KEY ... ;  if KEY is next: the rest
//     {}       a dictionary of attributes  <WHAT>   what a function here reads
//     :same    the type of all, or a function's    :func  a function's type
//     :one     the type of the result      :each    a type for each operand
//     :select  the condition's and the others'
//     :to      types, an arrow, types
//
//===----------------------------------------------------------------------===//
#include "compiler/import/stablehlo/SourceDialect.h"

#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace tandem;

namespace {

struct Format {
  StringRef format, ops;
};

constexpr Format formats[] = {
    {"% {} :same",
     "abs cbrt ceil convert count_leading_zeros cosine exponential "
     "exponential_minus_one floor imag log log_plus_one logistic not negate "
     "popcnt real round_nearest_afz round_nearest_even rsqrt sign sine sqrt "
     "tan tanh uniform_quantize uniform_dequantize"},
    {"% , % {} :same",
     "add and atan2 divide maximum minimum multiply or power remainder "
     "shift_left shift_right_arithmetic shift_right_logical subtract xor"},
    {"%* {} :func",
     "bitcast_convert dynamic_pad dynamic_reshape dynamic_update_slice "
     "is_finite real_dynamic_slice reshape"},
    {"%* {} :same", "after_all"},
    {"%* {} :complex", "complex"},
    {"% , % , % {} :same", "clamp"},
    {"{} :one", "create_token partition_id replica_id"},
    {"{} <value>", "constant"},
    {"dim = #iota_dimension {} :one", "iota"},
    {"% , dim = #iota_dimension {} :func", "dynamic_iota"},
    {"$comparison_direction , % , % ?, $compare_type ; {} :func", "compare"},
    {"% <ranges> {} :func", "slice"},
    {"% , %, sizes = #[slice_sizes {} :func", "dynamic_slice"},
    {"% , sizes = #[broadcast_sizes {} :func", "broadcast"},
    {"% , dims = #[broadcast_dimensions {} :func", "broadcast_in_dim"},
    {"% , % , dims = #[broadcast_dimensions {} :func",
     "dynamic_broadcast_in_dim"},
    {"%, dim = #dimension {} :func", "concatenate"},
    {"% , dims = #[permutation {} :func", "transpose"},
    {"% , dims = #[dimensions {} :same", "reverse"},
    {"% , % , low = #[edge_padding_low , high = #[edge_padding_high , "
     "interior = #[interior_padding {} :func",
     "pad"},
    {"% , % , <dot> <precision> {} :func", "dot_general"},
    {"% , % <precision> {} :func", "dot"},
    {"( %* ) dim_numbers = <convolution> , window = { <window> } {} :func",
     "convolution"},
    {"%* {} :select", "select"},
    {"%* {} ?: <types> ;", "return"},
    {"{} %* :each", "optimization_barrier"},
    {"% , % , % , distribution = $rng_distribution {} :func", "rng"},
    {"% , algorithm = $rng_algorithm {} :func", "rng_bit_generator"},
    {"% , format = <exponent> {} :same", "reduce_precision"},
    {"% ?, lower = !lower ; {} :same", "cholesky"},
    {"% , type = $fft_type , length = #[fft_length {} :func", "fft"},
    {"% , % , config = $einsum_config {} :func", "einsum"},
    {"% , config = $einsum_config {} :func", "unary_einsum"},
    {"% , dim = #dimension {} :func", "get_dimension_size"},
    {"% , % , dim = #dimension {} :func", "set_dimension_size"},
    {"% [ #index ] {} :func", "get_tuple_element"},
    {"%* {} :one", "tuple"},
    {"@call_target_name ( %* ) {} :func", "custom_call"},
    {"$name %* {} :func", "composite"},
    {"<reduce>", "reduce"},
    {"<while>", "while"},
};

constexpr Format chloFormats[] = {
    {"% {} :to",
     "_asin_acos_kernel acos acosh asin asinh atan atanh bessel_i1e conj cosh "
     "sinh tan digamma erf erf_inv erfc is_inf is_neg_inf is_pos_inf lgamma "
     "square"},
    {"% , % {} :to",
     "next_after polygamma zeta mulhi broadcast_add broadcast_atan2 "
     "broadcast_divide broadcast_maximum broadcast_minimum broadcast_multiply "
     "broadcast_power broadcast_remainder broadcast_subtract broadcast_and "
     "broadcast_or broadcast_xor"},
    {"{} <value>", "constant"},
    {"( % , k = #k ?, is_stable = !is_stable ; ) {} :to", "top_k"},
};

constexpr Format sdyFormats[] = {
    {"@sym_name = <angles> {}", "mesh"},
    {"% <angles> {} :same", "sharding_constraint"},
};

} // namespace

StringRef stablehlo::formatOf(StringRef op) {
  static const llvm::StringMap<StringRef> table = [] {
    llvm::StringMap<StringRef> made;
    auto add = [&](ArrayRef<Format> list, StringRef dialect) {
      for (const Format &one : list) {
        SmallVector<StringRef> names;
        one.ops.split(names, ' ');
        for (StringRef name : names)
          made[(dialect + "." + name).str()] = one.format;
      }
    };
    add(formats, "stablehlo");
    add(chloFormats, "chlo");
    add(sdyFormats, "sdy");
    return made;
  }();
  // The hook gets the name with its dialect or without.
  auto it = table.find(op);
  return it == table.end() ? StringRef() : it->second;
}
