// Every rule about operands, attributes and types that an op can break, with its
// message.
//
// RUN: tandem-opt %s --split-input-file --verify-diagnostics

//===--- elements and shapes that tensors do not have ---===//

// Sizes beside a 0 count as well.
func.func @f(%e: tensor<0x1099511627777xf32>) {
  // expected-error@+1 {{operand #0 must be tensor of floats or integers of static shape, at most 2^40 elements, but got 'tensor<0x1099511627777xf32>'}}
  %y = tandem.neg %e : tensor<0x1099511627777xf32>
  return
}

// -----

func.func @f(%dyn: tensor<?xf32>) {
  // expected-error@+1 {{operand #0 must be tensor of floats or integers of static shape, at most 2^40 elements, but got 'tensor<?xf32>'}}
  %y = tandem.neg %dyn : tensor<?xf32>
  return
}

// -----

func.func @f(%enc: tensor<3xf32, "sparse">) {
  // expected-error@+1 {{operand #0 must be tensor of floats or integers of static shape, at most 2^40 elements, but got 'tensor<3xf32, "sparse">'}}
  %y = tandem.neg %enc : tensor<3xf32, "sparse">
  return
}

// -----

func.func @f(%big: tensor<1099511627777xf32>) {
  // expected-error@+1 {{operand #0 must be tensor of floats or integers of static shape, at most 2^40 elements, but got 'tensor<1099511627777xf32>'}}
  %y = tandem.neg %big : tensor<1099511627777xf32>
  return
}

// -----

func.func @f(%i3: tensor<3xi3>) {
  // expected-error@+1 {{operand #0 must be tensor of floats or integers of static shape, at most 2^40 elements, but got 'tensor<3xi3>'}}
  %y = tandem.abs %i3 : tensor<3xi3>
  return
}

// -----

func.func @f(%vec: vector<3xf32>) {
  // expected-error@+1 {{operand #0 must be tensor of floats or integers of static shape, at most 2^40 elements, but got 'vector<3xf32>'}}
  %y = "tandem.neg"(%vec) : (vector<3xf32>) -> vector<3xf32>
  return
}

// -----

func.func @f(%unr: tensor<*xf32>) {
  // expected-error@+1 {{operand #0 must be tensor of floats or integers of static shape, at most 2^40 elements, but got 'tensor<*xf32>'}}
  %y = "tandem.neg"(%unr) : (tensor<*xf32>) -> tensor<*xf32>
  return
}

// -----

func.func @f(%n: tensor<3xi32>) {
  // expected-error@+1 {{operand #0 must be tensor of floats of static shape, at most 2^40 elements, but got 'tensor<3xi32>'}}
  %y = tandem.exp %n : tensor<3xi32>
  return
}

// -----

func.func @f(%t: tensor<3xi1>) {
  // expected-error@+1 {{operand #0 must be tensor of floats or integers of static shape, at most 2^40 elements, but got 'tensor<3xi1>'}}
  %y = tandem.add %t, %t : tensor<3xi1>
  return
}

// -----

func.func @f(%n: tensor<3xi32>) {
  // expected-error@+1 {{operand #0 must be tensor of bools of static shape, at most 2^40 elements, but got 'tensor<3xi32>'}}
  %y = tandem.logical_and %n, %n : tensor<3xi32>
  return
}

// -----

//===--- pointwise ---===//

func.func @f(%v: tensor<3xf32>, %m: tensor<2x3xf32>) {
  // expected-error@+1 {{requires the same type for all operands and results}}
  %y = "tandem.add"(%v, %m) : (tensor<3xf32>, tensor<2x3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @f(%v: tensor<3xf32>) {
  // expected-error@+1 {{requires the same type for all operands and results}}
  %y = "tandem.neg"(%v) : (tensor<3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @f(%dyn: tensor<?xf32>) {
  // expected-error@+1 {{expected a tensor of static shape, but got 'tensor<?xf32>'}}
  %y = tandem.compare lt %dyn, %dyn : tensor<?xf32>
  return
}

// -----

func.func @f(%v: tensor<3xf32>) {
  // expected-error@+2 {{custom op 'tandem.compare' expected ::tandem::ComparePredicate to be one of: eq, ne, lt, le, gt, ge}}
  // expected-error@+1 {{custom op 'tandem.compare' failed to parse ComparePredicateAttr parameter 'value' which is to be a `::tandem::ComparePredicate`}}
  %y = tandem.compare less %v, %v : tensor<3xf32>
  return
}

// -----

func.func @f(%v: tensor<3xf32>, %n: tensor<3xi32>) {
  // expected-error@+1 {{attribute 'predicate' failed to satisfy constraint: a comparison}}
  %y = "tandem.compare"(%v, %n) {predicate = 2 : i32} : (tensor<3xf32>, tensor<3xi32>) -> tensor<3xi1>
  return
}

// -----

func.func @f(%v: tensor<3xf32>) {
  // expected-error@+1 {{attribute 'predicate' failed to satisfy constraint: a comparison}}
  %y = "tandem.compare"(%v, %v) {predicate = 9 : i32} : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xi1>
  return
}

// -----

func.func @f(%v: tensor<3xf32>) {
  // expected-error@+1 {{requires attribute 'predicate'}}
  %y = "tandem.compare"(%v, %v) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xi1>
  return
}

// -----

func.func @f(%v: tensor<3xf32>) {
  // expected-error@+1 {{attribute 'predicate' failed to satisfy constraint: a comparison}}
  %y = "tandem.compare"(%v, %v) {predicate = 2 : i32} : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @f(%t: tensor<3xi1>, %v: tensor<3xf32>, %m: tensor<2x3xf32>) {
  // expected-error@+1 {{failed to verify that all of {lhs, rhs, y} have same type}}
  %y = "tandem.select"(%t, %v, %m) : (tensor<3xi1>, tensor<3xf32>, tensor<2x3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @f(%v: tensor<3xf32>) {
  // expected-error@+1 {{operand #0 must be tensor of bools of static shape, at most 2^40 elements, but got 'tensor<3xf32>'}}
  %y = "tandem.select"(%v, %v, %v) : (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @f(%v: tensor<3xf32>) {
  // expected-error@+1 {{requires the same shape for all operands and results}}
  %y = "tandem.cast"(%v) : (tensor<3xf32>) -> tensor<4xf16>
  return
}

// -----

func.func @f(%v: tensor<3xf32>) {
  // expected-error@+1 {{result #0 must be tensor of floats, integers or bools of static shape, at most 2^40 elements, but got 'tensor<3xsi8>'}}
  %y = tandem.cast %v : tensor<3xf32> to tensor<3xsi8>
  return
}

// -----

//===--- constant, iota ---===//

func.func @f() {
  // expected-error@+1 {{result #0 must be tensor of floats, integers or bools of static shape, at most 2^40 elements, but got 'tensor<0xi3>'}}
  %y = tandem.constant dense<> : tensor<0xi3>
  return
}

// -----

func.func @f() {
  // expected-error@+1 {{result #0 must be tensor of floats, integers or bools of static shape, at most 2^40 elements, but got 'tensor<2xi3>'}}
  %y = tandem.constant dense<1> : tensor<2xi3>
  return
}

// -----

func.func @f() {
  // expected-error@+1 {{result #0 must be tensor of floats, integers or bools of static shape, at most 2^40 elements, but got 'vector<2xi32>'}}
  %y = tandem.constant dense<1> : vector<2xi32>
  return
}

// -----

func.func @f() {
  // expected-error@+1 {{custom op 'tandem.constant' invalid kind of attribute specified}}
  %y = tandem.constant 5 : i32
  return
}

// -----

func.func @f() {
  // expected-error@+1 {{attribute 'value' failed to satisfy constraint: dense numbers}}
  %y = tandem.constant dense<"text"> : tensor<2x!tandem.ref<f32>>
  return
}

// -----

func.func @f() {
  // expected-error@+1 {{attribute 'value' failed to satisfy constraint: dense numbers}}
  %y = tandem.constant sparse<[[0]], [1.0]> : tensor<2xf32>
  return
}

// -----

func.func @f() {
  // expected-error@+2 {{inferred type(s) 'tensor<2xf32>' are incompatible with return type(s) of operation 'tensor<3xf32>'}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = "tandem.constant"() {value = dense<1.0> : tensor<2xf32>} : () -> tensor<3xf32>
  return
}

// -----

func.func @f() {
  // expected-error@+1 {{expected 'dim' in [0, 1), but got 1}}
  %y = tandem.iota dim 1 : tensor<3xf32>
  return
}

// -----

func.func @f() {
  // expected-error@+1 {{expected 'dim' in [0, 1), but got -1}}
  %y = tandem.iota dim -1 : tensor<3xf32>
  return
}

// -----

func.func @f() {
  // expected-error@+1 {{expected 'dim' in [0, 0), but got 0}}
  %y = tandem.iota dim 0 : tensor<f32>
  return
}

// -----

func.func @f() {
  // expected-error@+1 {{expected elements that hold 128, but got 'i8'}}
  %y = tandem.iota dim 0 : tensor<129xi8>
  return
}

// -----

//===--- broadcast, reshape, permute ---===//

func.func @f(%v: tensor<3xf32>) {
  // expected-error@+2 {{expected one entry of 'along' per operand dimension (1), but got []}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.broadcast %v to [2, 3] along [] : tensor<3xf32> -> tensor<2x3xf32>
  return
}

// -----

func.func @f(%v: tensor<3xf32>) {
  // expected-error@+2 {{expected 'along' to rise within [0, 2), but got [2]}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.broadcast %v to [2, 3] along [2] : tensor<3xf32> -> tensor<2x3xf32>
  return
}

// -----

func.func @f(%m: tensor<2x3xf32>) {
  // expected-error@+2 {{expected operand dimension 0 to be 1 or 3, but got 2}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.broadcast %m to [2, 3] along [1, 0] : tensor<2x3xf32> -> tensor<2x3xf32>
  return
}

// -----

func.func @f(%v: tensor<3xf32>) {
  // expected-error@+2 {{expected operand dimension 0 to be 1 or 4, but got 3}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.broadcast %v to [2, 4] along [1] : tensor<3xf32> -> tensor<2x4xf32>
  return
}

// -----

func.func @f(%v: tensor<3xf32>) {
  // expected-error@+2 {{expected operand dimension 0 to be 1 or 0, but got 3}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.broadcast %v to [3, 0] along [1] : tensor<3xf32> -> tensor<3x0xf32>
  return
}

// -----

func.func @f(%v: tensor<3xf32>) {
  // expected-error@+1 {{result #0 must be tensor of floats, integers or bools of static shape, at most 2^40 elements or ref to storage, but got 'tensor<9223372036854775807x3xf32>'}}
  %y = tandem.broadcast %v to [9223372036854775807, 3] along [1] : tensor<3xf32> -> tensor<9223372036854775807x3xf32>
  return
}

// -----

func.func @f(%v: tensor<3xf32>) {
  // expected-error@+2 {{inferred type(s) 'tensor<2x3xf32>' are incompatible with return type(s) of operation 'tensor<3x2xf32>'}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.broadcast %v to [2, 3] along [1] : tensor<3xf32> -> tensor<3x2xf32>
  return
}

// -----

func.func @f(%v: tensor<3xf32>) {
  // expected-error@+2 {{inferred type(s) 'tensor<2x3xf32>' are incompatible with return type(s) of operation '!tandem.ref<2x3xf32>'}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.broadcast %v to [2, 3] along [1] : tensor<3xf32> -> !tandem.ref<2x3xf32>
  return
}

// -----

func.func @f(%v: tensor<3xf32>) {
  // expected-error@+2 {{expected [2, 2] to have as many elements as [3], but it has 4}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.reshape %v to [2, 2] : tensor<3xf32> -> tensor<2x2xf32>
  return
}

// -----

func.func @f(%v: tensor<3xf32>) {
  // expected-error@+2 {{expected sizes of at least 0 and at most 2^40 elements in the result, but got [-1]}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.reshape %v to [-1] : tensor<3xf32> -> tensor<3xf32>
  return
}

// -----

func.func @f(%v: tensor<3xf32>) {
  // expected-error@+2 {{expected sizes of at least 0 and at most 2^40 elements in the result, but got [4611686018427387904, 4, 3]}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.reshape %v to [4611686018427387904, 4, 3] : tensor<3xf32> -> tensor<3xf32>
  return
}

// -----

func.func @f(%m: tensor<2x3xf32>) {
  // expected-error@+2 {{expected 'by' to be a permutation of 2 dimensions, but got [0]}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.permute %m by [0] : tensor<2x3xf32> -> tensor<2x3xf32>
  return
}

// -----

func.func @f(%m: tensor<2x3xf32>) {
  // expected-error@+2 {{expected 'by' to be a permutation of 2 dimensions, but got [0, 0]}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.permute %m by [0, 0] : tensor<2x3xf32> -> tensor<2x2xf32>
  return
}

// -----

func.func @f(%m: tensor<2x3xf32>) {
  // expected-error@+2 {{expected 'by' to be a permutation of 2 dimensions, but got [0, 2]}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.permute %m by [0, 2] : tensor<2x3xf32> -> tensor<2x3xf32>
  return
}

// -----

//===--- reverse ---===//

func.func @f(%m: tensor<2x3xf32>) {
  // expected-error@+2 {{expected 'along' to rise within [0, 2), but got [1, 0]}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.reverse %m along [1, 0] : tensor<2x3xf32> -> tensor<2x3xf32>
  return
}

// -----

func.func @f(%m: tensor<2x3xf32>) {
  // expected-error@+2 {{expected 'along' to rise within [0, 2), but got [2]}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.reverse %m along [2] : tensor<2x3xf32> -> tensor<2x3xf32>
  return
}

// -----

func.func @f(%m: tensor<2x3xf32>) {
  // expected-error@+2 {{expected 'along' to rise within [0, 2), but got [-1]}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.reverse %m along [-1] : tensor<2x3xf32> -> tensor<2x3xf32>
  return
}

// -----

//===--- slice, pad ---===//

func.func @f(%m: tensor<2x3xf32>) {
  // expected-error@+2 {{expected 'from' to have 2 entries of at least 0 and at most 2^40, but got [0]}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.slice %m from [0] to [1, 2] step [1, 1] : tensor<2x3xf32> -> tensor<1x2xf32>
  return
}

// -----

func.func @f(%m: tensor<2x3xf32>) {
  // expected-error@+2 {{expected 'to' to have 2 entries of at least 0 and at most 2^40, but got [1]}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.slice %m from [0, 0] to [1] step [1, 1] : tensor<2x3xf32> -> tensor<1x2xf32>
  return
}

// -----

func.func @f(%m: tensor<2x3xf32>) {
  // expected-error@+2 {{expected 'step' to have 2 entries of at least 1 and at most 2^40, but got [1]}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.slice %m from [0, 0] to [1, 2] step [1] : tensor<2x3xf32> -> tensor<1x2xf32>
  return
}

// -----

func.func @f(%m: tensor<2x3xf32>) {
  // expected-error@+2 {{expected 'from' to have 2 entries of at least 0 and at most 2^40, but got [-1, 0]}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.slice %m from [-1, 0] to [1, 2] step [1, 1] : tensor<2x3xf32> -> tensor<1x2xf32>
  return
}

// -----

func.func @f(%m: tensor<2x3xf32>) {
  // expected-error@+2 {{expected 0 <= from <= to <= 3 in dimension 1, but got from 2 and to 1}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.slice %m from [0, 2] to [1, 1] step [1, 1] : tensor<2x3xf32> -> tensor<1x1xf32>
  return
}

// -----

func.func @f(%m: tensor<2x3xf32>) {
  // expected-error@+2 {{expected 0 <= from <= to <= 2 in dimension 0, but got from 0 and to 3}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.slice %m from [0, 0] to [3, 2] step [1, 1] : tensor<2x3xf32> -> tensor<3x2xf32>
  return
}

// -----

func.func @f(%m: tensor<2x3xf32>) {
  // expected-error@+2 {{expected 'step' to have 2 entries of at least 1 and at most 2^40, but got [0, 1]}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.slice %m from [0, 0] to [1, 2] step [0, 1] : tensor<2x3xf32> -> tensor<1x2xf32>
  return
}

// -----

func.func @f(%m: tensor<2x3xf32>) {
  // expected-error@+2 {{expected 'step' to have 2 entries of at least 1 and at most 2^40, but got [9223372036854775807, 1]}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.slice %m from [0, 0] to [1, 2] step [9223372036854775807, 1] : tensor<2x3xf32> -> tensor<1x2xf32>
  return
}

// -----

func.func @f(%v: tensor<3xf32>) {
  // expected-error@+2 {{expected 'low' to have 1 entries of at least 0 and at most 2^40, but got [1, 1]}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.pad %v low [1, 1] high [0] interior [0] with 0.0 : f32 : tensor<3xf32> -> tensor<4xf32>
  return
}

// -----

func.func @f(%v: tensor<3xf32>) {
  // expected-error@+2 {{expected 'high' to have 1 entries of at least 0 and at most 2^40, but got []}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.pad %v low [1] high [] interior [0] with 0.0 : f32 : tensor<3xf32> -> tensor<4xf32>
  return
}

// -----

func.func @f(%v: tensor<3xf32>) {
  // expected-error@+2 {{expected 'interior' to have 1 entries of at least 0 and at most 2^40, but got [0, 0]}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.pad %v low [1] high [0] interior [0, 0] with 0.0 : f32 : tensor<3xf32> -> tensor<4xf32>
  return
}

// -----

func.func @f(%v: tensor<3xf32>) {
  // expected-error@+2 {{expected 'low' to have 1 entries of at least 0 and at most 2^40, but got [-1]}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.pad %v low [-1] high [0] interior [0] with 0.0 : f32 : tensor<3xf32> -> tensor<2xf32>
  return
}

// -----

func.func @f(%v: tensor<3xf32>) {
  // expected-error@+2 {{expected a fill value of type 'f32', but got 0 : i32}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.pad %v low [1] high [0] interior [0] with 0 : i32 : tensor<3xf32> -> tensor<4xf32>
  return
}

// -----

func.func @f(%v: tensor<3xf32>) {
  // expected-error@+2 {{expected a fill value of type 'f32', but got dense<0.000000e+00> : tensor<3xf32>}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.pad %v low [1] high [0] interior [0] with dense<0.0> : tensor<3xf32> : tensor<3xf32> -> tensor<4xf32>
  return
}

// -----

func.func @f(%v: tensor<3xf32>) {
  // expected-error@+2 {{expected 'high' to have 1 entries of at least 0 and at most 2^40, but got [9223372036854775807]}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.pad %v low [1] high [9223372036854775807] interior [0] with 0.0 : f32 : tensor<3xf32> -> tensor<4xf32>
  return
}

// -----

func.func @f(%v: tensor<3xf32>) {
  // expected-error@+2 {{expected 'interior' below 366503875925 in dimension 0, but got 1099511627776}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.pad %v low [0] high [0] interior [1099511627776] with 0.0 : f32 : tensor<3xf32> -> tensor<4xf32>
  return
}

// -----

func.func @f(%huge: tensor<1048576x1048576xf32>) {
  // expected-error@+1 {{result #0 must be tensor of floats, integers or bools of static shape, at most 2^40 elements, but got 'tensor<1048577x1048576xf32>'}}
  %y = tandem.pad %huge low [0, 0] high [1, 0] interior [0, 0] with 0.0 : f32 : tensor<1048576x1048576xf32> -> tensor<1048577x1048576xf32>
  return
}

// -----

//===--- reductions ---===//

func.func @f(%m: tensor<2x3xf32>) {
  // expected-error@+2 {{expected 'over' to rise within [0, 2), but got [2]}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.reduce_sum %m over [2] : tensor<2x3xf32> -> tensor<2x3xf32>
  return
}

// -----

func.func @f(%m: tensor<2x3xf32>) {
  // expected-error@+2 {{expected 'over' to rise within [0, 2), but got [1, 0]}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.reduce_max %m over [1, 0] : tensor<2x3xf32> -> tensor<f32>
  return
}

// -----

func.func @f(%m: tensor<2x3xf32>) {
  // expected-error@+2 {{expected 'over' to rise within [0, 2), but got [0, 0]}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.reduce_min %m over [0, 0] : tensor<2x3xf32> -> tensor<3xf32>
  return
}

// -----

func.func @f(%m: tensor<2x3xf32>) {
  // expected-error@+2 {{inferred type(s) 'tensor<3xf32>' are incompatible with return type(s) of operation 'tensor<2xf32>'}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.reduce_sum %m over [0] : tensor<2x3xf32> -> tensor<2xf32>
  return
}

// -----

func.func @f(%m: tensor<2x3xf32>) {
  // expected-error@+2 {{expected 'over' to rise within [0, 2), but got [-1]}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.reduce_mean %m over [-1] : tensor<2x3xf32> -> tensor<2xf32>
  return
}

// -----

func.func @f(%t: tensor<3xi1>) {
  // expected-error@+1 {{operand #0 must be tensor of floats or integers of static shape, at most 2^40 elements, but got 'tensor<3xi1>'}}
  %y = tandem.reduce_sum %t over [0] : tensor<3xi1> -> tensor<i1>
  return
}

// -----

//===--- matmul ---===//

func.func @f(%m: tensor<3x3xf32>) {
  // expected-error@+2 {{expected 'precision' to be 'f32' or 'tf32' but got 'tf23'}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.matmul %m, %m {precision = "tf23"} : tensor<3x3xf32>, tensor<3x3xf32> -> tensor<3x3xf32>
  return
}

// -----

func.func @f(%x: tensor<1x1x3x3xf32>) {
  // expected-error@+2 {{expected 'precision' to be 'f32', 'tf32' or 'sums' but got 'sum'}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.conv2d_filter_grad %x, %x to [1, 1, 1, 1] {precision = "sum"} : tensor<1x1x3x3xf32>, tensor<1x1x3x3xf32> -> tensor<1x1x1x1xf32>
  return
}

// -----

func.func @f(%x: tensor<1x1x3x3xf32>) {
  // expected-error@+2 {{'precision' of 'sums' is of operands of 'f16' or 'bf16', but they are of 'f32'}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.conv2d_filter_grad %x, %x to [1, 1, 1, 1] {precision = "sums"} : tensor<1x1x3x3xf32>, tensor<1x1x3x3xf32> -> tensor<1x1x1x1xf32>
  return
}

// -----

func.func @f(%m: tensor<3x3xbf16>) {
  // expected-error@+2 {{'precision' is of products of 'f32', but the operands are of 'bf16'}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.matmul %m, %m {precision = "tf32"} : tensor<3x3xbf16>, tensor<3x3xbf16> -> tensor<3x3xbf16>
  return
}

// -----

func.func @f(%v: tensor<3xf32>) {
  // expected-error@+2 {{expected operands of one rank of at least 2, but got ranks 1 and 1}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.matmul %v, %v : tensor<3xf32>, tensor<3xf32> -> tensor<f32>
  return
}

// -----

func.func @f(%m: tensor<2x3xf32>, %u: tensor<2x3x5xf32>) {
  // expected-error@+2 {{expected operands of one rank of at least 2, but got ranks 2 and 3}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.matmul %m, %u : tensor<2x3xf32>, tensor<2x3x5xf32> -> tensor<2x5xf32>
  return
}

// -----

func.func @f(%m: tensor<2x3xf32>) {
  // expected-error@+2 {{expected lhs columns (3) to equal rhs rows (2)}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.matmul %m, %m : tensor<2x3xf32>, tensor<2x3xf32> -> tensor<2x3xf32>
  return
}

// -----

func.func @f(%m: tensor<2x3xf32>, %k: tensor<4x3xf32>) {
  // expected-error@+2 {{expected lhs columns (2) to equal rhs rows (3)}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.matmul %m, %k {transpose_lhs, transpose_rhs} : tensor<2x3xf32>, tensor<4x3xf32> -> tensor<3x4xf32>
  return
}

// -----

func.func @f(%x: tensor<2x4x8x8xf32>, %w: tensor<6x4x3x3xf32>) {
  // expected-error@+2 {{expected equal leading dimensions, but got [2, 4, 8, 8] and [6, 4, 3, 3]}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.matmul %x, %w : tensor<2x4x8x8xf32>, tensor<6x4x3x3xf32> -> tensor<2x4x8x3xf32>
  return
}

// -----

func.func @f(%v: tensor<3xf32>, %h: tensor<3xf16>) {
  // expected-error@+2 {{expected operands of one element type, but got 'f32' and 'f16'}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = "tandem.matmul"(%v, %h) : (tensor<3xf32>, tensor<3xf16>) -> tensor<3xf32>
  return
}

// -----

func.func @f(%huge: tensor<1048576x1048576xf32>) {
  // expected-error@+2 {{inferred type(s) 'tensor<1048576x1048576xf32>' are incompatible with return type(s) of operation 'tensor<2xf32>'}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.matmul %huge, %huge {transpose_rhs} : tensor<1048576x1048576xf32>, tensor<1048576x1048576xf32> -> tensor<2xf32>
  return
}

// -----

//===--- convolution ---===//

func.func @f(%m: tensor<2x3xf32>, %w: tensor<6x4x3x3xf32>) {
  // expected-error@+2 {{expected an input [N, C, H, W] and a filter [O, C / groups, KH, KW], but got [2, 3] and [6, 4, 3, 3]}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.conv2d %m, %w : tensor<2x3xf32>, tensor<6x4x3x3xf32> -> tensor<2x6x6x6xf32>
  return
}

// -----

func.func @f(%x: tensor<2x4x8x8xf32>, %w: tensor<6x4x3x3xf32>) {
  // expected-error@+2 {{expected 'groups' to divide the channels (4) and the filters (6), but got 0}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.conv2d %x, %w groups 0 : tensor<2x4x8x8xf32>, tensor<6x4x3x3xf32> -> tensor<2x6x6x6xf32>
  return
}

// -----

func.func @f(%x: tensor<2x4x8x8xf32>, %w: tensor<6x4x3x3xf32>) {
  // expected-error@+2 {{expected 'groups' to divide the channels (4) and the filters (6), but got 4}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.conv2d %x, %w groups 4 : tensor<2x4x8x8xf32>, tensor<6x4x3x3xf32> -> tensor<2x6x6x6xf32>
  return
}

// -----

func.func @f(%x: tensor<2x4x8x8xf32>, %w: tensor<6x4x3x3xf32>) {
  // expected-error@+2 {{expected filters over 2 channels (4 in 2 groups), but got 4}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.conv2d %x, %w groups 2 : tensor<2x4x8x8xf32>, tensor<6x4x3x3xf32> -> tensor<2x6x6x6xf32>
  return
}

// -----

func.func @f(%x: tensor<2x4x8x8xf32>, %w: tensor<6x4x3x3xf32>) {
  // expected-error@+2 {{expected 'strides' to have 2 entries of at least 1 and at most 2^40, but got [1]}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.conv2d %x, %w strides [1] : tensor<2x4x8x8xf32>, tensor<6x4x3x3xf32> -> tensor<2x6x6x6xf32>
  return
}

// -----

func.func @f(%x: tensor<2x4x8x8xf32>, %w: tensor<6x4x3x3xf32>) {
  // expected-error@+2 {{expected 'strides' to have 2 entries of at least 1 and at most 2^40, but got [0, 1]}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.conv2d %x, %w strides [0, 1] : tensor<2x4x8x8xf32>, tensor<6x4x3x3xf32> -> tensor<2x6x6x6xf32>
  return
}

// -----

func.func @f(%x: tensor<2x4x8x8xf32>, %w: tensor<6x4x3x3xf32>) {
  // expected-error@+2 {{expected 'padding' to have 4 entries of at least 0 and at most 2^40, but got [1, 1]}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.conv2d %x, %w padding [1, 1] : tensor<2x4x8x8xf32>, tensor<6x4x3x3xf32> -> tensor<2x6x6x6xf32>
  return
}

// -----

func.func @f(%x: tensor<2x4x8x8xf32>, %w: tensor<6x4x3x3xf32>) {
  // expected-error@+2 {{expected 'padding' to have 4 entries of at least 0 and at most 2^40, but got [-1, 0, 0, 0]}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.conv2d %x, %w padding [-1, 0, 0, 0] : tensor<2x4x8x8xf32>, tensor<6x4x3x3xf32> -> tensor<2x6x6x6xf32>
  return
}

// -----

func.func @f(%x: tensor<2x4x8x8xf32>, %w: tensor<6x4x3x3xf32>) {
  // expected-error@+2 {{expected 'dilation' to have 2 entries of at least 1 and at most 2^40, but got [1, 0]}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.conv2d %x, %w dilation [1, 0] : tensor<2x4x8x8xf32>, tensor<6x4x3x3xf32> -> tensor<2x6x6x6xf32>
  return
}

// -----

func.func @f(%x: tensor<2x4x8x8xf32>, %w: tensor<6x4x3x3xf32>) {
  // expected-error@+2 {{expected the dilated kernel to fit into the padded height (8), but got kernel 3 with dilation 4}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.conv2d %x, %w dilation [4, 1] : tensor<2x4x8x8xf32>, tensor<6x4x3x3xf32> -> tensor<2x6x6x6xf32>
  return
}

// -----

func.func @f(%x: tensor<2x4x8x8xf32>, %w: tensor<6x4x3x3xf32>) {
  // expected-error@+2 {{expected 'dilation' to have 2 entries of at least 1 and at most 2^40, but got [1, 9223372036854775807]}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.conv2d %x, %w dilation [1, 9223372036854775807] : tensor<2x4x8x8xf32>, tensor<6x4x3x3xf32> -> tensor<2x6x6x6xf32>
  return
}

// -----

func.func @f(%x: tensor<2x4x8x8xf32>, %w: tensor<6x4x3x3xf32>) {
  // expected-error@+2 {{inferred type(s) 'tensor<2x6x6x6xf32>' are incompatible with return type(s) of operation 'tensor<2x6x6x7xf32>'}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.conv2d %x, %w : tensor<2x4x8x8xf32>, tensor<6x4x3x3xf32> -> tensor<2x6x6x7xf32>
  return
}

// -----

func.func @f(%x: tensor<2x4x8x8xf32>, %w: tensor<6x4x3x3xf32>) {
  // expected-error@+2 {{expected sizes of at least 0 and at most 2^40 elements in the result, but got [2, 6, 1099511627782, 6]}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.conv2d %x, %w padding [1099511627776, 0, 0, 0] : tensor<2x4x8x8xf32>, tensor<6x4x3x3xf32> -> tensor<2x6x6x6xf32>
  return
}

// -----

func.func @f(%y0: tensor<2x6x6x6xf32>, %w: tensor<6x4x3x3xf32>) {
  // expected-error@+2 {{expected 'dy' to have shape [2, 6, 7, 6], but got 'tensor<2x6x6x6xf32>'}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.conv2d_input_grad %y0, %w to [2, 4, 9, 8] : tensor<2x6x6x6xf32>, tensor<6x4x3x3xf32> -> tensor<2x4x9x8xf32>
  return
}

// -----

func.func @f(%y0: tensor<2x6x6x6xf32>, %w: tensor<6x4x3x3xf32>) {
  // expected-error@+2 {{expected an input [N, C, H, W] and a filter [O, C / groups, KH, KW], but got [2, 4, 8] and [6, 4, 3, 3]}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.conv2d_input_grad %y0, %w to [2, 4, 8] : tensor<2x6x6x6xf32>, tensor<6x4x3x3xf32> -> tensor<2x4x8x8xf32>
  return
}

// -----

func.func @f(%y0: tensor<2x6x6x6xf32>, %w: tensor<6x4x3x3xf32>) {
  // expected-error@+2 {{expected the dilated kernel to fit into the padded height (0), but got kernel 3 with dilation 1}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.conv2d_input_grad %y0, %w to [2, 4, 0, 8] : tensor<2x6x6x6xf32>, tensor<6x4x3x3xf32> -> tensor<2x4x8x8xf32>
  return
}

// -----

func.func @f(%x: tensor<2x4x8x8xf32>, %y0: tensor<2x6x6x6xf32>) {
  // expected-error@+2 {{expected 'dy' to have shape [2, 6, 6, 5], but got 'tensor<2x6x6x6xf32>'}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.conv2d_filter_grad %x, %y0 to [6, 4, 3, 4] : tensor<2x4x8x8xf32>, tensor<2x6x6x6xf32> -> tensor<6x4x3x4xf32>
  return
}

// -----

//===--- pooling ---===//

func.func @f(%m: tensor<2x3xf32>) {
  // expected-error@+2 {{expected an input [N, C, H, W] with H and W of at least 1 and at most 2^40 elements, but got [2, 3]}}
  // expected-error@+1 {{failed to infer returned types}}
  %y, %i = tandem.max_pool2d %m kernel [2, 2] : tensor<2x3xf32> -> tensor<2x3xf32>, tensor<2x3xi32>
  return
}

// -----

func.func @f(%x: tensor<2x4x8x8xf32>) {
  // expected-error@+2 {{expected 'kernel' to have 2 entries of at least 1 and at most 2^40, but got [2]}}
  // expected-error@+1 {{failed to infer returned types}}
  %y, %i = tandem.max_pool2d %x kernel [2] : tensor<2x4x8x8xf32> -> tensor<2x4x7x7xf32>, tensor<2x4x7x7xi32>
  return
}

// -----

func.func @f(%x: tensor<2x4x8x8xf32>) {
  // expected-error@+2 {{expected 'kernel' to have 2 entries of at least 1 and at most 2^40, but got [0, 2]}}
  // expected-error@+1 {{failed to infer returned types}}
  %y, %i = tandem.max_pool2d %x kernel [0, 2] : tensor<2x4x8x8xf32> -> tensor<2x4x7x7xf32>, tensor<2x4x7x7xi32>
  return
}

// -----

func.func @f(%x: tensor<2x4x8x8xf32>) {
  // expected-error@+2 {{expected 'padding' of at most half of the dilated kernel (1) along the height, but got [2, 0, 0, 0]}}
  // expected-error@+1 {{failed to infer returned types}}
  %y, %i = tandem.max_pool2d %x kernel [2, 2] padding [2, 0, 0, 0] : tensor<2x4x8x8xf32> -> tensor<2x4x7x7xf32>, tensor<2x4x7x7xi32>
  return
}

// -----

func.func @f(%x: tensor<2x4x8x8xf32>) {
  // expected-error@+2 {{expected the dilated kernel to fit into the padded height (8), but got kernel 9 with dilation 1}}
  // expected-error@+1 {{failed to infer returned types}}
  %y, %i = tandem.max_pool2d %x kernel [9, 2] : tensor<2x4x8x8xf32> -> tensor<2x4x7x7xf32>, tensor<2x4x7x7xi32>
  return
}

// -----

func.func @f(%x: tensor<2x4x8x8xf32>) {
  // expected-error@+1 {{result #1 must be tensor of 32-bit integers of static shape, at most 2^40 elements, but got 'tensor<2x4x7x7xi64>'}}
  %y, %i = tandem.max_pool2d %x kernel [2, 2] : tensor<2x4x8x8xf32> -> tensor<2x4x7x7xf32>, tensor<2x4x7x7xi64>
  return
}

// -----

func.func @f(%p: tensor<2x4x4x4xf32>, %q: tensor<2x4x4x4xi32>) {
  // expected-error@+2 {{expected planes [2, 4, H, W] as 'index' has, but got [2, 5, 8, 8]}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.max_pool2d_grad %p, %q to [2, 5, 8, 8] : tensor<2x4x4x4xf32>, tensor<2x4x4x4xi32> -> tensor<2x5x8x8xf32>
  return
}

// -----

func.func @f(%y0: tensor<2x6x6x6xf32>, %q: tensor<2x4x4x4xi32>) {
  // expected-error@+2 {{expected 'dy' to have shape [2, 4, 4, 4], but got 'tensor<2x6x6x6xf32>'}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.max_pool2d_grad %y0, %q to [2, 4, 8, 8] : tensor<2x6x6x6xf32>, tensor<2x4x4x4xi32> -> tensor<2x4x8x8xf32>
  return
}

// -----

func.func @f(%y0: tensor<2x6x6x6xf32>, %q: tensor<2x4x4x4xi32>) {
  // expected-error@+2 {{expected planes [2, 4, H, W] as 'index' has, but got [2, 6, 6, 6]}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.max_pool2d_take %y0, %q : tensor<2x6x6x6xf32>, tensor<2x4x4x4xi32> -> tensor<2x4x4x4xf32>
  return
}

// -----

func.func @f(%x: tensor<2x4x8x8xf32>) {
  // expected-error@+2 {{expected 'strides' to have 2 entries of at least 1 and at most 2^40, but got [1, -1]}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.avg_pool2d %x kernel [2, 2] strides [1, -1] : tensor<2x4x8x8xf32> -> tensor<2x4x7x7xf32>
  return
}

// -----

func.func @f(%p: tensor<2x4x4x4xf32>) {
  // expected-error@+2 {{expected 'dy' to have shape [2, 4, 8, 8], but got 'tensor<2x4x4x4xf32>'}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.avg_pool2d_grad %p to [2, 4, 9, 9] kernel [2, 2] strides [1, 1] : tensor<2x4x4x4xf32> -> tensor<2x4x9x9xf32>
  return
}

// -----

//===--- indexing ---===//

func.func @f(%z: tensor<f32>, %n: tensor<3xi32>) {
  // expected-error@+2 {{expected a table of rank at least 1, but got rank 0}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.take %z, %n : tensor<f32>, tensor<3xi32> -> tensor<3xf32>
  return
}

// -----

func.func @f(%m: tensor<2x3xf32>, %v: tensor<3xf32>) {
  // expected-error@+1 {{operand #1 must be tensor of integers of static shape, at most 2^40 elements, but got 'tensor<3xf32>'}}
  %y = tandem.take %m, %v : tensor<2x3xf32>, tensor<3xf32> -> tensor<3x3xf32>
  return
}

// -----

func.func @f(%m: tensor<2x3xf32>, %n: tensor<3xi32>) {
  // expected-error@+2 {{inferred type(s) 'tensor<3x3xf32>' are incompatible with return type(s) of operation 'tensor<2x3xf32>'}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.take %m, %n : tensor<2x3xf32>, tensor<3xi32> -> tensor<2x3xf32>
  return
}

// -----

func.func @f(%m: tensor<2x3xf32>, %n: tensor<3xi32>) {
  // expected-error@+2 {{expected 'dy' to have shape [3, 3], but got 'tensor<2x3xf32>'}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.take_grad %m, %n to [2, 3] : tensor<2x3xf32>, tensor<3xi32> -> tensor<2x3xf32>
  return
}

// -----

func.func @f(%m: tensor<2x3xf32>, %n: tensor<3xi32>) {
  // expected-error@+2 {{expected a table of rank at least 1, but got rank 0}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.take_grad %m, %n to [] : tensor<2x3xf32>, tensor<3xi32> -> tensor<f32>
  return
}

// -----

func.func @f(%z: tensor<f32>, %n: tensor<3xi32>, %v: tensor<3xf32>) {
  // expected-error@+2 {{expected a table of rank at least 1, but got rank 0}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.scatter add %z, %n, %v : tensor<f32>, tensor<3xi32>, tensor<3xf32> -> tensor<f32>
  return
}

// -----

func.func @f(%m: tensor<2x3xf32>, %n: tensor<3xi32>) {
  // expected-error@+2 {{expected 'updates' to have shape [3, 3], but got 'tensor<2x3xf32>'}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.scatter add %m, %n, %m : tensor<2x3xf32>, tensor<3xi32>, tensor<2x3xf32> -> tensor<2x3xf32>
  return
}

// -----

func.func @f(%m: tensor<2x3xf32>, %n: tensor<3xi32>, %s: tensor<3x3xf64>) {
  // expected-error@+2 {{expected operands of one element type, but got 'f32' and 'f64'}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.scatter add %m, %n, %s : tensor<2x3xf32>, tensor<3xi32>, tensor<3x3xf64> -> tensor<2x3xf32>
  return
}

// -----

func.func @f(%n: tensor<3xi32>, %t: tensor<3xi1>) {
  // expected-error@+2 {{expected bools to be 'set', but got 'max'}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.scatter max %t, %n, %t : tensor<3xi1>, tensor<3xi32>, tensor<3xi1> -> tensor<3xi1>
  return
}

// -----

func.func @f(%m: tensor<2x3xf32>) {
  // expected-error@+2 {{expected 'dim' in [0, 2), but got 2}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.cumsum %m dim 2 : tensor<2x3xf32> -> tensor<2x3xf32>
  return
}

// -----

func.func @f(%z: tensor<f32>) {
  // expected-error@+2 {{expected 'dim' in [0, 0), but got 0}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.cumsum %z dim 0 : tensor<f32> -> tensor<f32>
  return
}

// -----

func.func @f(%m: tensor<2x3xf32>) {
  // expected-error@+2 {{expected 'dim' in [0, 2), but got -1}}
  // expected-error@+1 {{failed to infer returned types}}
  %y, %i = tandem.sort %m dim -1 : tensor<2x3xf32> -> tensor<2x3xf32>, tensor<2x3xi64>
  return
}

// -----

func.func @f(%m: tensor<2x3xf32>) {
  // expected-error@+2 {{inferred type(s) 'tensor<2x3xf32>', 'tensor<2x3xi64>' are incompatible with return type(s) of operation 'tensor<2x3xf32>', 'tensor<2x3xi32>'}}
  // expected-error@+1 {{failed to infer returned types}}
  %y, %i = tandem.sort %m dim 1 : tensor<2x3xf32> -> tensor<2x3xf32>, tensor<2x3xi32>
  return
}

// -----

//===--- composites ---===//

func.func @f(%v: tensor<3xf32>) {
  // expected-error@+1 {{expected 'approximate' to be 'none' or 'tanh', but got 'erf'}}
  %y = tandem.gelu %v {approximate = "erf"} : tensor<3xf32>
  return
}

// -----

func.func @f(%m: tensor<2x3xf32>) {
  // expected-error@+1 {{expected 'dim' in [0, 2), but got 2}}
  %y = tandem.softmax %m dim 2 : tensor<2x3xf32>
  return
}

// -----

func.func @f(%m: tensor<2x3xf32>) {
  // expected-error@+1 {{expected 'dim' in [0, 2), but got -1}}
  %y = tandem.log_softmax %m dim -1 : tensor<2x3xf32>
  return
}

// -----

func.func @f(%m: tensor<2x3xf32>, %v: tensor<3xf32>) {
  // expected-error@+2 {{expected 'axis' in [0, 2), but got 2}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.layer_norm %m, %v, %v axis 2 : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32> -> tensor<2x3xf32>
  return
}

// -----

func.func @f(%m: tensor<2x3xf32>, %v: tensor<3xf32>) {
  // expected-error@+2 {{expected 'scale' to have shape [2, 3], but got 'tensor<3xf32>'}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.layer_norm %m, %v, %v axis 0 : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32> -> tensor<2x3xf32>
  return
}

// -----

func.func @f(%m: tensor<2x3xf32>, %v: tensor<3xf32>) {
  // expected-error@+1 {{expected 'epsilon' to be finite and at least 0, but got -1}}
  %y = tandem.layer_norm %m, %v, %v axis 1 {epsilon = -1.0 : f64} : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32> -> tensor<2x3xf32>
  return
}

// -----

func.func @f(%v: tensor<3xf32>) {
  // expected-error@+2 {{expected an input [N, C, ...], but got [3]}}
  // expected-error@+1 {{failed to infer returned types}}
  %y:3 = tandem.batch_norm %v, %v, %v, %v, %v : (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)
  return
}

// -----

func.func @f(%x: tensor<2x4x8x8xf32>, %v: tensor<3xf32>) {
  // expected-error@+2 {{expected 'scale' to have shape [4], but got 'tensor<3xf32>'}}
  // expected-error@+1 {{failed to infer returned types}}
  %y:3 = tandem.batch_norm %x, %v, %v, %v, %v : (tensor<2x4x8x8xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<2x4x8x8xf32>, tensor<3xf32>, tensor<3xf32>)
  return
}

// -----

func.func @f(%m: tensor<2x3xf32>, %v: tensor<3xf32>) {
  // expected-error@+1 {{expected 'epsilon' to be finite and at least 0, but got inf}}
  %y:3 = tandem.batch_norm %m, %v, %v, %v, %v {epsilon = 0x7FF0000000000000 : f64} : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>)
  return
}

// -----

func.func @f(%m: tensor<2x3xf32>, %n: tensor<3xi32>) {
  // expected-error@+2 {{expected 'labels' to have shape [2], but got 'tensor<3xi32>'}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.cross_entropy %m, %n : tensor<2x3xf32>, tensor<3xi32> -> tensor<f32>
  return
}

// -----

func.func @f(%z: tensor<f32>, %n: tensor<3xi32>) {
  // expected-error@+2 {{expected logits of rank at least 1, but got rank 0}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.cross_entropy %z, %n : tensor<f32>, tensor<3xi32> -> tensor<f32>
  return
}

// -----

func.func @f(%large: tensor<4x1000xf32>, %lb: tensor<4xi8>) {
  // expected-error@+2 {{expected labels of a type that holds 1000 classes, but got 'i8'}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.cross_entropy %large, %lb : tensor<4x1000xf32>, tensor<4xi8> -> tensor<f32>
  return
}

// -----

func.func @f(%u: tensor<2x3x5xf32>, %b: tensor<3xi8>) {
  // expected-error@+2 {{expected 'labels' to have shape [2, 3], but got 'tensor<3xi8>'}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.cross_entropy %u, %b {ignore_index = -1000} : tensor<2x3x5xf32>, tensor<3xi8> -> tensor<f32>
  return
}

// -----

func.func @f(%k0: tensor<3x5xf32>, %b: tensor<3xi8>) {
  // expected-error@+2 {{expected 'ignore_index' to be one that 'i8' holds, but got -1000}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.cross_entropy %k0, %b {ignore_index = -1000} : tensor<3x5xf32>, tensor<3xi8> -> tensor<f32>
  return
}

// -----

func.func @f(%k0: tensor<3x5xf32>, %b: tensor<3xi8>) {
  // expected-error@+1 {{expected 'reduction' to be 'mean', 'sum' or 'none', but got 'average'}}
  %y = tandem.cross_entropy %k0, %b {reduction = "average"} : tensor<3x5xf32>, tensor<3xi8> -> tensor<f32>
  return
}

// -----

func.func @f(%v: tensor<3xf32>, %m: tensor<2x3xf32>) {
  // expected-error@+2 {{expected 'target' to have shape [3], but got 'tensor<2x3xf32>'}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.mse_loss %v, %m : tensor<3xf32>, tensor<2x3xf32> -> tensor<f32>
  return
}

// -----

func.func @f(%v: tensor<3xf32>, %h: tensor<3xf16>) {
  // expected-error@+2 {{expected operands of one element type, but got 'f32' and 'f16'}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.mse_loss %v, %h : tensor<3xf32>, tensor<3xf16> -> tensor<f32>
  return
}

// -----

func.func @f(%v: tensor<3xf32>) {
  // expected-error@+1 {{expected 'reduction' to be 'mean', 'sum' or 'none', but got 'max'}}
  %y = tandem.mse_loss %v, %v {reduction = "max"} : tensor<3xf32>, tensor<3xf32> -> tensor<f32>
  return
}

// -----

func.func @f(%m: tensor<2x3xf32>, %v: tensor<3xf32>) {
  // expected-error@+2 {{expected 'w' to have rank 2, but got 'tensor<3xf32>'}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.linear %m, %v : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @f(%u: tensor<2x3x5xf32>, %m: tensor<2x3xf32>) {
  // expected-error@+2 {{expected the last dimension of 'x' to be 3 as 'w' [2, 3] has, but got [2, 3, 5]}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.linear %u, %m : (tensor<2x3x5xf32>, tensor<2x3xf32>) -> tensor<2x3x2xf32>
  return
}

// -----

func.func @f(%m: tensor<2x3xf32>, %k: tensor<4x3xf32>, %v: tensor<3xf32>) {
  // expected-error@+2 {{expected 'bias' to have shape [4], but got 'tensor<3xf32>'}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.linear %m, %k, %v : (tensor<2x3xf32>, tensor<4x3xf32>, tensor<3xf32>) -> tensor<2x4xf32>
  return
}

// -----

func.func @f(%m: tensor<2x3xf32>) {
  // expected-error@+1 {{expected 2 or more operands, but found 1}}
  %y = tandem.linear %m : (tensor<2x3xf32>) -> tensor<2x4xf32>
  return
}

// -----

func.func @f(%m: tensor<2x3xf32>, %k: tensor<4x3xf32>) {
  // expected-error@+2 {{expected 'q' [..., T, D], 'k' [..., S, D] and 'v' [..., S, E] with equal leading dimensions, but got [2, 3], [4, 3] and [2, 3]}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.attention %m, %k, %m : tensor<2x3xf32>, tensor<4x3xf32>, tensor<2x3xf32> -> tensor<2x3xf32>
  return
}

// -----

func.func @f(%v: tensor<3xf32>) {
  // expected-error@+2 {{expected 'q' [..., T, D], 'k' [..., S, D] and 'v' [..., S, E] with equal leading dimensions, but got [3], [3] and [3]}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.attention %v, %v, %v : tensor<3xf32>, tensor<3xf32>, tensor<3xf32> -> tensor<3xf32>
  return
}

// -----

func.func @f(%m: tensor<2x3xf32>) {
  // expected-error@+1 {{expected 'scale' to be finite, but got nan}}
  %y = tandem.attention %m, %m, %m {scale = 0x7FF8000000000000 : f64} : tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32> -> tensor<2x3xf32>
  return
}

// -----

func.func @f(%m: tensor<2x3xf32>, %mask: tensor<2x3xf32>) {
  // expected-error@+1 {{expected a mask of floats or bools of the shape [2, 2], but got 'tensor<2x3xf32>'}}
  %y = tandem.attention %m, %m, %m, %mask : tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32> -> tensor<2x3xf32>
  return
}

// -----

func.func @f(%m: tensor<2x3xf32>, %mask: tensor<2x2xi64>) {
  // expected-error@+1 {{expected a mask of floats or bools of the shape [2, 2], but got 'tensor<2x2xi64>'}}
  %y = tandem.attention %m, %m, %m, %mask : tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x2xi64> -> tensor<2x3xf32>
  return
}

// -----

func.func @f(%tall: tensor<2097152x1xf32>) {
  // expected-error@+2 {{expected scores of at most 2^40 elements, but got [2097152, 2097152]}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.attention %tall, %tall, %tall : tensor<2097152x1xf32>, tensor<2097152x1xf32>, tensor<2097152x1xf32> -> tensor<2097152x1xf32>
  return
}

// -----

func.func @f(%m: tensor<2x3xf32>, %k: tensor<4x3xf32>) {
  // expected-error@+2 {{expected 'q' [..., T, D], 'k' [..., S, D] and 'v' [..., S, E] with equal leading dimensions, but got [2, 3], [4, 3] and [2, 3]}}
  // expected-error@+1 {{failed to infer returned types}}
  %y, %l = tandem.attention_forward %m, %k, %m {scale = 1.0 : f64} : (tensor<2x3xf32>, tensor<4x3xf32>, tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2xf32>)
  return
}

// -----

func.func @f(%m: tensor<2x3xf32>) {
  // expected-error@+1 {{expected 'scale' to be finite, but got inf}}
  %y, %l = tandem.attention_forward %m, %m, %m {scale = 0x7FF0000000000000 : f64} : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2xf32>)
  return
}

// -----

func.func @f(%m: tensor<2x3xf32>, %r: tensor<2xf32>, %d: tensor<2x4xf32>) {
  // expected-error@+2 {{expected 'dy' to have shape [2, 3], but got 'tensor<2x4xf32>'}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.attention_query_grad %m, %m, %m, %d, %r, %r {scale = 1.0 : f64} : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x4xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @f(%m: tensor<2x3xf32>, %r: tensor<2xf32>, %d: tensor<3xf32>) {
  // expected-error@+2 {{expected 'delta' to have shape [2], but got 'tensor<3xf32>'}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.attention_query_grad %m, %m, %m, %m, %r, %d {scale = 1.0 : f64} : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @f(%m: tensor<2x3xbf16>, %r: tensor<2xbf16>, %d: tensor<2xf32>) {
  // expected-error@+2 {{expected 'lse' to have elements of 'f32', but got 'bf16'}}
  // expected-error@+1 {{failed to infer returned types}}
  %y, %z = tandem.attention_key_grad %m, %m, %m, %m, %r, %d {scale = 1.0 : f64} : (tensor<2x3xbf16>, tensor<2x3xbf16>, tensor<2x3xbf16>, tensor<2x3xbf16>, tensor<2xbf16>, tensor<2xf32>) -> (tensor<2x3xbf16>, tensor<2x3xbf16>)
  return
}

// -----

func.func @f(%m: tensor<2x3xf32>) {
  // expected-error@+2 {{expected 'dim' in [0, 2), but got 2}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.argmax %m dim 2 : tensor<2x3xf32> -> tensor<2xi64>
  return
}

// -----

func.func @f(%m: tensor<2x3xf32>) {
  // expected-error@+1 {{result #0 must be tensor of 64-bit integers of static shape, at most 2^40 elements, but got 'tensor<2xi32>'}}
  %y = tandem.argmax %m dim 1 : tensor<2x3xf32> -> tensor<2xi32>
  return
}

// -----

func.func @f() {
  // expected-error@+1 {{expected non-function type}}
  %y = tandem.concat dim 0 : -> tensor<2xf32>
  return
}

// -----

func.func @f() {
  // expected-error@+2 {{expected at least one operand}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = "tandem.concat"() {dim = 0 : i64} : () -> tensor<2xf32>
  return
}

// -----

func.func @f(%m: tensor<2x3xf32>, %u: tensor<2x3x5xf32>) {
  // expected-error@+2 {{expected operand #1 to have shape [2, 3] but for dimension 0, but got [2, 3, 5]}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.concat %m, %u dim 0 : tensor<2x3xf32>, tensor<2x3x5xf32> -> tensor<2xf32>
  return
}

// -----

func.func @f(%m: tensor<2x3xf32>, %k: tensor<4x3xf32>) {
  // expected-error@+2 {{expected operand #1 to have shape [2, 3] but for dimension 1, but got [4, 3]}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.concat %m, %k dim 1 : tensor<2x3xf32>, tensor<4x3xf32> -> tensor<2xf32>
  return
}

// -----

func.func @f(%v: tensor<3xf32>, %h: tensor<3xf16>) {
  // expected-error@+2 {{expected operands of one element type, but got 'f32' and 'f16'}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.concat %v, %h dim 0 : tensor<3xf32>, tensor<3xf16> -> tensor<6xf32>
  return
}

// -----

func.func @f(%m: tensor<2x3xf32>) {
  // expected-error@+2 {{expected 'dim' in [0, 2), but got 2}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.concat %m dim 2 : tensor<2x3xf32> -> tensor<2x3xf32>
  return
}

// -----

func.func @f(%huge: tensor<1048576x1048576xf32>) {
  // expected-error@+2 {{expected sizes of at least 0 and at most 2^40 elements in the result, but got [2097152, 1048576]}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.concat %huge, %huge dim 0 : tensor<1048576x1048576xf32>, tensor<1048576x1048576xf32> -> tensor<2x3xf32>
  return
}

// -----

//===--- optimizers ---===//

func.func @f(%v: tensor<3xf32>, %m: tensor<2x3xf32>, %z: tensor<f32>) {
  // expected-error@+2 {{expected 'grad' to have shape [3], but got 'tensor<2x3xf32>'}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.sgd %v, %m, %z : (tensor<3xf32>, tensor<2x3xf32>, tensor<f32>) -> tensor<3xf32>
  return
}

// -----

func.func @f(%v: tensor<3xf32>) {
  // expected-error@+2 {{expected 'lr' to have shape [], but got 'tensor<3xf32>'}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.sgd %v, %v, %v : (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @f(%v: tensor<3xf32>, %z: tensor<f32>) {
  // expected-error@+1 {{expected 'weight_decay' to be finite and at least 0, but got -0.1}}
  %y = tandem.sgd %v, %v, %z {weight_decay = -0.1} : (tensor<3xf32>, tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
  return
}

// -----

func.func @f(%v: tensor<3xf32>, %m: tensor<2x3xf32>, %z: tensor<f32>) {
  // expected-error@+2 {{expected 'velocity' to have shape [3], but got 'tensor<2x3xf32>'}}
  // expected-error@+1 {{failed to infer returned types}}
  %y:2 = tandem.momentum %v, %v, %m, %z : (tensor<3xf32>, tensor<3xf32>, tensor<2x3xf32>, tensor<f32>) -> (tensor<3xf32>, tensor<2x3xf32>)
  return
}

// -----

func.func @f(%v: tensor<3xf32>, %z: tensor<f32>) {
  // expected-error@+1 {{expected 'nesterov' with a momentum above 0 and without dampening}}
  %y:2 = tandem.momentum %v, %v, %v, %z {nesterov, dampening = 0.5} : (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<f32>) -> (tensor<3xf32>, tensor<3xf32>)
  return
}

// -----

func.func @f(%v: tensor<3xf32>, %z: tensor<f32>) {
  // expected-error@+2 {{expected 'beta1' to be in [0, 1), but got 1}}
  // expected-error@+1 {{expected 'beta2' to be in [0, 1), but got -0.5}}
  %y:3 = tandem.adam %v, %v, %v, %v, %z, %z {beta1 = 1.0, beta2 = -0.5} : (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<f32>, tensor<f32>) -> (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)
  return
}

// -----

func.func @f(%v: tensor<3xf32>, %z: tensor<f32>) {
  // expected-error@+2 {{expected 'step' to have shape [], but got 'tensor<3xf32>'}}
  // expected-error@+1 {{failed to infer returned types}}
  %y:3 = tandem.adamw %v, %v, %v, %v, %v, %z : (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<f32>) -> (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)
  return
}

// -----

//===--- refs ---===//

func.func @f(%v: tensor<3xf32>) {
  // expected-error@+1 {{expected a ref, but got 'tensor<3xf32>'}}
  %y = tandem.read %v : tensor<3xf32>
  return
}

// -----

func.func @f(%e: tensor<0x3xi3>) {
  // expected-error@+1 {{expected a tensor of static shape, at most 2^40 elements, but got 'tensor<0x3xi3>'}}
  %y = tandem.make_ref %e : tensor<0x3xi3>
  return
}

// -----

func.func @f(%r: !tandem.ref<3xf32>) {
  // expected-error@+1 {{custom op 'tandem.make_ref' invalid kind of type specified: expected builtin.tensor, but found '!tandem.ref<3xf32>'}}
  %y = tandem.make_ref %r : !tandem.ref<3xf32>
  return
}

// -----

func.func @f(%m: tensor<2x3xf32>, %r: !tandem.ref<3xf32>) {
  // expected-error@+1 {{expected a value of type 'tensor<3xf32>' but got 'tensor<2x3xf32>'}}
  tandem.write %m into %r : tensor<2x3xf32>, !tandem.ref<3xf32>
  return
}

// -----

func.func @f(%r: !tandem.ref<3xf32>) {
  // expected-error@+1 {{custom op 'tandem.neg' invalid kind of type specified: expected builtin.tensor, but found '!tandem.ref<3xf32>'}}
  %y = tandem.neg %r : !tandem.ref<3xf32>
  return
}

// -----

func.func @f() {
  // expected-error@+1 {{expected a ref's sizes to be at least 0 with at most 2^40 elements, but got [0, 1099511627777]}}
  %y = "builtin.unrealized_conversion_cast"() : () -> !tandem.ref<0x1099511627777xf32>
  return
}

// -----

func.func @f() {
  // expected-error@+1 {{expected static shape}}
  %y = "builtin.unrealized_conversion_cast"() : () -> !tandem.ref<?xf32>
  return
}

// -----

func.func @f() {
  // expected-error@+1 {{expected a ref's elements to be f64, f32, f16, bf16, f8E4M3FN, f8E5M2, i64, i32, i16, i8, ui64, ui32, ui16, ui8 or i1, but got 'index'}}
  %y = "builtin.unrealized_conversion_cast"() : () -> !tandem.ref<4xindex>
  return
}

// -----

func.func @f() {
  // expected-error@+1 {{expected a ref's sizes to be at least 0 with at most 2^40 elements, but got [9999999999, 9999999999]}}
  %y = "builtin.unrealized_conversion_cast"() : () -> !tandem.ref<9999999999x9999999999xf32>
  return
}

// -----

func.func @f() {
  // expected-error@+1 {{invalid dimension}}
  %y = "builtin.unrealized_conversion_cast"() : () -> !tandem.ref<99999999999999999999999xf32>
  return
}

// -----

func.func @f() {
  // expected-error@+1 {{expected non-function type}}
  %y = "builtin.unrealized_conversion_cast"() : () -> !tandem.ref<>
  return
}

// -----

//===--- kernels and launches ---===//

func.func @f(%v: tensor<3xf32>) {
  // expected-error@+1 {{expected the region's arguments to have the types of the inputs}}
  %y = "tandem.kernel"(%v) ({
  ^bb0(%a: tensor<2xf32>):
    tandem.yield %a : tensor<2xf32>
  }) {name = "k"} : (tensor<3xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @f(%v: tensor<3xf32>) {
  // expected-error@+1 {{expected the region to yield the types of the results}}
  %y = "tandem.kernel"(%v) ({
  ^bb0(%a: tensor<3xf32>):
    tandem.yield %a : tensor<3xf32>
  }) {name = "k"} : (tensor<3xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @f(%v: tensor<3xf32>) {
  // expected-error@+1 {{expects a non-empty block}}
  %y = "tandem.kernel"(%v) ({
  ^bb0(%a: tensor<3xf32>):
  }) {name = "k"} : (tensor<3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @f(%v: tensor<3xf32>) {
  // expected-error@+1 {{region #0 ('body') failed to verify constraint: region with 1 blocks}}
  %y = "tandem.kernel"(%v) ({
  }) {name = "k"} : (tensor<3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @f(%v: tensor<3xf32>) {
  // expected-error@+1 {{expected one buffer per result (1) but got 0}}
  %y = "tandem.kernel"(%v) ({
  ^bb0(%a: tensor<3xf32>):
    tandem.yield %a : tensor<3xf32>
  }) {name = "k", buffers = []} : (tensor<3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @f(%v: tensor<3xf32>) {
  // expected-error@+1 {{expected '#tandem.buffer' but got 1 : i64}}
  %y = "tandem.kernel"(%v) ({
  ^bb0(%a: tensor<3xf32>):
    tandem.yield %a : tensor<3xf32>
  }) {name = "k", buffers = [1]} : (tensor<3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @f(%v: tensor<3xf32>) {
  // expected-error@+1 {{expected 'work' of at least 0 and 'grain' of at least 1, but got -1 and 1}}
  %y = tandem.launch @k(%v) {buffers = [#tandem.buffer<result 0>], work = -1, grain = 1} : (tensor<3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @f(%v: tensor<3xf32>) {
  // expected-error@+1 {{expected 'work' of at least 0 and 'grain' of at least 1, but got 1 and 0}}
  %y = tandem.launch @k(%v) {buffers = [#tandem.buffer<result 0>], work = 1, grain = 0} : (tensor<3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @f(%v: tensor<3xf32>) {
  // expected-error@+1 {{expected arena, argument, result or constant, but got 'heap'}}
  %y = tandem.launch @k(%v) {buffers = [#tandem.buffer<heap 0>], work = 1, grain = 1} : (tensor<3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @f(%v: tensor<3xf32>) {
  // expected-error@+1 {{expected a position of at least 0, but got -1}}
  %y = tandem.launch @k(%v) {buffers = [#tandem.buffer<arena -1>], work = 1, grain = 1} : (tensor<3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @f(%v: tensor<3xf32>) {
  // expected-error@+1 {{expects parent op to be one of 'tandem.kernel, tandem.custom_vjp, tandem.if, tandem.scan, tandem.while'}}
  tandem.yield %v : tensor<3xf32>
  return
}

// -----

func.func @f(%v: tensor<3xf32>) {
  // expected-error@+1 {{expected 'needs' to be a list of lists of cotangents, but got ["a"]}}
  %y = tandem.or_zero %v needs ["a"] : tensor<3xf32>
  return
}

// -----

func.func @f(%v: tensor<3xf32>) {
  // expected-error@+1 {{expected 'when' to be a list of lists of cotangents, but got [[]]}}
  %y = tandem.if_defined %v else %v when [[]] : tensor<3xf32>
  return
}

// -----

func.func @f(%v: tensor<3xf32>) {
  // expected-error@+1 {{expected a state to have a 'name' or the position of an 'input' within [0, 1), but got {input = 1 : i64}}}
  %y, %s = tandem.custom_vjp "f" (%v) forward {
  ^bb0(%a: tensor<3xf32>):
    tandem.yield %a, %a : tensor<3xf32>, tensor<3xf32>
  } backward {
  ^bb0(%x: tensor<3xf32>, %d: tensor<3xf32>, %e: tensor<3xf32>):
    tandem.yield %d : tensor<3xf32>
  } {outputs = 1, saved = 1, differentiable = 1, states = [{input = 1}]} : (tensor<3xf32>), () -> tensor<3xf32>, tensor<3xf32>
  return
}

// -----

func.func @f(%v: tensor<3xf32>) {
  // expected-error@+1 {{expected a state to have a 'name' or the position of an 'input' within [0, 1), but got {written}}}
  %y, %s = tandem.custom_vjp "f" (%v) forward {
  ^bb0(%a: tensor<3xf32>):
    tandem.yield %a, %a : tensor<3xf32>, tensor<3xf32>
  } backward {
  ^bb0(%x: tensor<3xf32>, %d: tensor<3xf32>, %e: tensor<3xf32>):
    tandem.yield %d : tensor<3xf32>
  } {outputs = 1, saved = 1, differentiable = 1, states = [{written}]} : (tensor<3xf32>), () -> tensor<3xf32>, tensor<3xf32>
  return
}

// -----

func.func @f(%v: tensor<3xf32>) {
  // expected-error@+1 {{expected what is rejected to have a 'message', but got 1 : i64}}
  %y, %s = tandem.custom_vjp "f" (%v) forward {
  ^bb0(%a: tensor<3xf32>):
    tandem.yield %a, %a : tensor<3xf32>, tensor<3xf32>
  } backward {
  ^bb0(%x: tensor<3xf32>, %d: tensor<3xf32>):
    tandem.yield %d : tensor<3xf32>
  } {outputs = 1, saved = 1, differentiable = 1, rejected = [1]} : (tensor<3xf32>), () -> tensor<3xf32>, tensor<3xf32>
  return
}

// -----

func.func @f(%v: tensor<3xf32>) {
  // expected-error@+1 {{expected 'cotangent_writes' to be within [0, 1), but got 1}}
  %y, %s = tandem.custom_vjp "f" (%v) forward {
  ^bb0(%a: tensor<3xf32>):
    tandem.yield %a, %a : tensor<3xf32>, tensor<3xf32>
  } backward {
  ^bb0(%x: tensor<3xf32>, %d: tensor<3xf32>):
    tandem.yield %d : tensor<3xf32>
  } {outputs = 1, saved = 1, differentiable = 1, cotangent_writes = array<i64: 1>} : (tensor<3xf32>), () -> tensor<3xf32>, tensor<3xf32>
  return
}

// -----

func.func @f(%v: tensor<3xf32>) {
  // expected-error@+1 {{expected 'unchecked' to be within [0, 1), but got 1}}
  %y, %s = tandem.custom_vjp "f" (%v) forward {
  ^bb0(%a: tensor<3xf32>):
    tandem.yield %a, %a : tensor<3xf32>, tensor<3xf32>
  } backward {
  ^bb0(%x: tensor<3xf32>, %d: tensor<3xf32>):
    tandem.yield %d : tensor<3xf32>
  } {outputs = 1, saved = 1, differentiable = 1, unchecked = array<i64: 1>} : (tensor<3xf32>), () -> tensor<3xf32>, tensor<3xf32>
  return
}

// -----

func.func @f(%v: tensor<3xf32>) {
  // expected-error@+1 {{expected the backward to have 2 arguments (saved values, cotangents, states), but got 1}}
  %y, %s = tandem.custom_vjp "f" (%v) forward {
  ^bb0(%a: tensor<3xf32>):
    tandem.yield %a, %a : tensor<3xf32>, tensor<3xf32>
  } backward {
  ^bb0(%d: tensor<3xf32>):
    tandem.yield %d : tensor<3xf32>
  } {outputs = 1, saved = 1, differentiable = 1} : (tensor<3xf32>), () -> tensor<3xf32>, tensor<3xf32>
  return
}

// -----

func.func @f(%v: tensor<3xf32>) {
  // expected-error@+1 {{expected the backward's saved values and cotangents to have types ('tensor<3xf32>', 'tensor<3xf32>'), but got ('tensor<3xi32>', 'tensor<3xf32>')}}
  %y, %s = tandem.custom_vjp "f" (%v) forward {
  ^bb0(%a: tensor<3xf32>):
    tandem.yield %a, %a : tensor<3xf32>, tensor<3xf32>
  } backward {
  ^bb0(%x: tensor<3xi32>, %d: tensor<3xf32>):
    tandem.yield %d : tensor<3xf32>
  } {outputs = 1, saved = 1, differentiable = 1} : (tensor<3xf32>), () -> tensor<3xf32>, tensor<3xf32>
  return
}

// -----

func.func @f(%v: tensor<3xf32>) {
  // expected-error@+1 {{expected the functional form to have 'outputs', 'saved' and 'differentiable' within bounds and no refs}}
  %y, %s = tandem.custom_vjp "f" (%v) forward {
  ^bb0(%a: tensor<3xf32>):
    tandem.yield %a, %a : tensor<3xf32>, tensor<3xf32>
  } backward {
  ^bb0(%x: tensor<3xf32>, %d: tensor<3xf32>):
    tandem.yield %d : tensor<3xf32>
  } {outputs = 1, saved = 1, differentiable = -1} : (tensor<3xf32>), () -> tensor<3xf32>, tensor<3xf32>
  return
}

// -----

//===--- random ---===//

func.func @f(%s: tensor<3xi64>) {
  // expected-error@+1 {{operand #0 must be tensor<2xi64>: a seed and an offset, but got 'tensor<3xi64>'}}
  %y = "tandem.random_bits"(%s) {draw = 0 : i64} : (tensor<3xi64>) -> tensor<4xi32>
  return
}

// -----

func.func @f(%s: tensor<2xi64>) {
  // expected-error@+1 {{result #0 must be tensor of floats of static shape}}
  %y = tandem.random_uniform %s draw 0 : tensor<4xi32>
  return
}

// -----

func.func @f(%s: tensor<2xi64>) {
  // expected-error@+1 {{expected 'draw' to be in [0, 16777216), but got 16777216}}
  %y = tandem.random_bits %s draw 16777216 : tensor<4xi32>
  return
}

// -----

func.func @f(%s: tensor<2xi64>) {
  // expected-error@+1 {{expected 'draw' to be in [0, 16777216), but got -1}}
  %y = tandem.random_uniform %s draw -1 : tensor<4xf32>
  return
}

// -----

func.func @f(%s: tensor<2xi64>) {
  // expected-error@+1 {{expected 'draw' to be in [0, 8388608), but got 8388608}}
  %y = tandem.random_normal %s draw 8388608 : tensor<4xf32>
  return
}

// -----

func.func @f(%s: tensor<2xi64>) {
  // expected-error@+1 {{expected 'p' to be in [0, 1], but got 1.5}}
  %y = tandem.bernoulli %s draw 0 p 1.5 : tensor<4xi1>
  return
}

// -----

func.func @f(%x: tensor<4xf32>, %s: tensor<2xi64>) {
  // expected-error@+1 {{expected 'p' to be in [0, 1], but got}}
  %y = tandem.dropout %x, %s draw 0 p 0x7FF8000000000000 : tensor<4xf32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>, %s: tensor<2xi64>) {
  // expected-error@+1 {{expected 'draw' to be in [0, 16777216), but got 99999999}}
  %y = tandem.dropout %x, %s draw 99999999 p 0.5 : tensor<4xf32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>, %s: tensor<2xi64>) {
  // expected-error@+1 {{failed to verify that all of {x, y} have same type}}
  %y = "tandem.dropout"(%x, %s) {draw = 0 : i64, p = 0.5 : f64} : (tensor<4xf32>, tensor<2xi64>) -> tensor<5xf32>
  return
}

// -----

func.func @f(%a: tensor<4xi64>, %b: tensor<5xi64>) {
  // expected-error@+1 {{failed to verify that offset has the shape of y, and i64 elements}}
  %y = "tandem.philox"(%a, %b, %a, %a) : (tensor<4xi64>, tensor<5xi64>, tensor<4xi64>, tensor<4xi64>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%a: tensor<4xi64>) {
  // expected-error@+1 {{result #0 must be tensor of 32-bit integers or floats of static shape}}
  %y = "tandem.philox"(%a, %a, %a, %a) : (tensor<4xi64>, tensor<4xi64>, tensor<4xi64>, tensor<4xi64>) -> tensor<4xi64>
  return
}

// -----

func.func @f(%a: tensor<4xi64>) {
  // expected-error@+1 {{expected builtin.tensor, but found 'i32'}}
  %y = tandem.philox %a, %a, %a draw %a : i32
  return
}

// -----

func.func @f(%a: tensor<4xi64>) {
  %draw = tandem.constant dense<16777216> : tensor<4xi64>
  // expected-error@+1 {{expected 'draw' to be in [0, 16777216), but got 16777216}}
  %y = tandem.philox %a, %a, %a draw %draw : tensor<4xf32>
  return
}

// -----

// Floats of 8 bits are not computed with.
func.func @f(%v: tensor<3xf8E5M2>) {
  // expected-error@+1 {{operand #0 must be tensor of floats or integers of static shape, at most 2^40 elements, but got 'tensor<3xf8E5M2>'}}
  %y = tandem.add %v, %v : tensor<3xf8E5M2>
  return
}

// -----

func.func @f() {
  // expected-error@+1 {{expected elements that hold 256, but got 'ui8'}}
  %y = tandem.iota dim 0 : tensor<257xui8>
  return
}

// -----

//===--- nothing ---===//

func.func @f(%e: tensor<3x0xf32>) {
  // expected-error@+2 {{expected at least one element along dimension 1, but got [3, 0]}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = tandem.argmax %e dim 1 : tensor<3x0xf32> -> tensor<3xi64>
  return
}

// -----

func.func @f(%e: tensor<1x2x0x4xf32>) {
  // expected-error@+2 {{expected an input [N, C, H, W] with H and W of at least 1 and at most 2^40 elements, but got [1, 2, 0, 4]}}
  // expected-error@+1 {{failed to infer returned types}}
  %y, %i = tandem.max_pool2d %e kernel [2, 2] padding [1, 1, 1, 1] : tensor<1x2x0x4xf32> -> tensor<1x2x1x5xf32>, tensor<1x2x1x5xi32>
  return
}
