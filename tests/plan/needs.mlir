// RUN: tandem-opt %s --tandem-plan-programs --split-input-file | FileCheck %s

// J04: a gradient that one cotangent feeds needs it; where two meet, what is
// defined is copied. Kernels that wait for different cotangents are not one.
// CHECK-LABEL: module @two
// CHECK: #tandem.role<grad of "x">
// CHECK-SAME: #tandem.role<grad of "w" {needs = {{\[\[}}"a"]]}>
// CHECK: %[[B:.*]] = tandem.kernel "mul"
// CHECK: needs = {{\[\[}}"b"]]
// CHECK: %[[A:.*]]:2 = tandem.kernel "fused_mul_exp"
// CHECK: needs = {{\[\[}}"a"]]
// CHECK: tandem.kernel "accumulate"(%[[A]]#0, %[[B]])
// CHECK: choices = [{when = {{\[\[}}"a"], ["b"]]}, {copy = 0 : i64, when = {{\[\[}}"a"]]}, {copy = 1 : i64, when = {{\[\[}}"b"]]}]
// CHECK-NOT: needs
// CHECK: return
module @two attributes {tandem.phase = "partition"} {
  func.func @backward(%x: tensor<8xf32> {tandem.role = #tandem.role<input "x">}, %a: tensor<8xf32> {tandem.role = #tandem.role<cotangent of "a">}, %b: tensor<8xf32> {tandem.role = #tandem.role<cotangent of "b">}) -> (tensor<8xf32> {tandem.role = #tandem.role<grad of "x">}, tensor<8xf32> {tandem.role = #tandem.role<grad of "w">}) {
    %0 = tandem.mul %a, %x : tensor<8xf32>
    %1 = tandem.mul %b, %x : tensor<8xf32>
    %2 = tandem.accumulate %0, %1 : tensor<8xf32>
    %3 = tandem.exp %a : tensor<8xf32>
    return %2, %3 : tensor<8xf32>, tensor<8xf32>
  }
}

// -----

// J04: recomputation runs for those who read it: exp for a or c, sin for b. Who
// reads it last follows at once.
// CHECK-LABEL: module @recompute
// CHECK: tandem.kernel "exp"
// CHECK: needs = {{\[\[}}"a", "c"]]
// CHECK: tandem.kernel "mul"
// CHECK: needs = {{\[\[}}"a"]]
// CHECK: tandem.kernel "mul"
// CHECK: needs = {{\[\[}}"c"]]
// CHECK: tandem.kernel "fused_sin_mul"
// CHECK: needs = {{\[\[}}"b"]]
module @recompute attributes {tandem.phase = "partition"} {
  func.func @backward(%x: tensor<8xf32> {tandem.role = #tandem.role<input "x">}, %a: tensor<8xf32> {tandem.role = #tandem.role<cotangent of "a">}, %b: tensor<8xf32> {tandem.role = #tandem.role<cotangent of "b">}, %c: tensor<8xf32> {tandem.role = #tandem.role<cotangent of "c">}) -> (tensor<8xf32> {tandem.role = #tandem.role<grad of "x">}, tensor<8xf32> {tandem.role = #tandem.role<grad of "y">}, tensor<8xf32> {tandem.role = #tandem.role<grad of "z">}) {
    %e = tandem.exp %x : tensor<8xf32>
    %s = tandem.sin %x : tensor<8xf32>
    %0 = tandem.mul %a, %e : tensor<8xf32>
    %1 = tandem.mul %b, %s : tensor<8xf32>
    %2 = tandem.mul %c, %e : tensor<8xf32>
    return %0, %1, %2 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
  }
}

// -----

// B17: the update happens where one of its writes does; a write that is not
// done leaves what there was. Both are in place.
// CHECK-LABEL: module @chain
// CHECK: #tandem.role<update of "s" {in_place, needs = {{\[\[}}"a", "b"]], pass = "backward"}>
// CHECK: tandem.kernel "add"
// CHECK: needs = {{\[\[}}"a"]]
// CHECK: tandem.kernel "if_defined"
// CHECK: choices = [{copy = 0 : i64, when = {{\[\[}}"a"]]}, {copy = 1 : i64, when = []}]
// CHECK-SAME: needs = {{\[\[}}"a", "b"]]
// CHECK: tandem.kernel "if_defined"
// CHECK: buffers = [#tandem.buffer<argument 0>]
// CHECK-SAME: choices = [{copy = 0 : i64, when = {{\[\[}}"b"]]}, {copy = 1 : i64, when = []}]
// CHECK-SAME: needs = {{\[\[}}"a", "b"]]
module @chain attributes {tandem.phase = "partition"} {
  func.func @backward(%s: tensor<8xf32> {tandem.role = #tandem.role<state "s" {pass = "backward"}>}, %a: tensor<8xf32> {tandem.role = #tandem.role<cotangent of "a">}, %b: tensor<8xf32> {tandem.role = #tandem.role<cotangent of "b">}, %c: tensor<8xf32> {tandem.role = #tandem.role<cotangent of "c">}) -> (tensor<8xf32> {tandem.role = #tandem.role<update of "s" {pass = "backward"}>}, tensor<8xf32> {tandem.role = #tandem.role<grad of "x">}) {
    %0 = tandem.add %s, %a : tensor<8xf32>
    %1 = tandem.if_defined %0 else %s when [["a"]] : tensor<8xf32>
    %2 = tandem.if_defined %b else %1 when [["b"]] : tensor<8xf32>
    %3 = tandem.exp %c : tensor<8xf32>
    return %2, %3 : tensor<8xf32>, tensor<8xf32>
  }
}

// -----

// A copy for a result waits for what the result waits for.
// CHECK-LABEL: module @returned
// CHECK: #tandem.role<grad of "x" {needs = {{\[\[}}"a"]]}>
// CHECK: tandem.kernel "copy"(%arg0)
// CHECK: needs = {{\[\[}}"a"]]
// CHECK: tandem.kernel "copy"(%arg1)
// CHECK: needs = {{\[\[}}"b"]]
module @returned attributes {tandem.phase = "partition"} {
  func.func @backward(%a: tensor<8xf32> {tandem.role = #tandem.role<cotangent of "a">}, %b: tensor<8xf32> {tandem.role = #tandem.role<cotangent of "b">}) -> (tensor<8xf32> {tandem.role = #tandem.role<grad of "x">}, tensor<8xf32> {tandem.role = #tandem.role<grad of "y">}) {
    return %a, %b : tensor<8xf32>, tensor<8xf32>
  }
}

// -----

// Whoever asks for a graph of the gradients gives every cotangent.
// CHECK-LABEL: module @graph
// CHECK: tandem.kernel "fused_mul_mul_accumulate"
// CHECK-NOT: needs
// CHECK-NOT: choices
module @graph attributes {tandem.phase = "partition"} {
  func.func @grad_forward(%x: tensor<8xf32> {tandem.role = #tandem.role<input "x">}, %a: tensor<8xf32> {tandem.role = #tandem.role<cotangent of "a">}, %b: tensor<8xf32> {tandem.role = #tandem.role<cotangent of "b">}) -> (tensor<8xf32> {tandem.role = #tandem.role<grad of "x">}) {
    %0 = tandem.mul %a, %x : tensor<8xf32>
    %1 = tandem.mul %b, %x : tensor<8xf32>
    %2 = tandem.accumulate %0, %1 : tensor<8xf32>
    return %2 : tensor<8xf32>
  }
}

// -----

// T06: gradients are to an update what cotangents are to a backward. Kernels of
// two parameters that read one rate are two; what depends on no gradient waits
// for the one that its role names.
// CHECK-LABEL: module @update
// CHECK: #tandem.role<update of "v" {in_place, needs = {{\[\[}}"v"]]}>
// CHECK-SAME: #tandem.role<update of "w" {in_place, needs = {{\[\[}}"w"]]}>
// CHECK-SAME: #tandem.role<update of "n:w" {in_place, needs = {{\[\[}}"w"]]}>
// CHECK-SAME: #tandem.role<update of "n" {in_place}>
// CHECK: tandem.kernel "fused_mul_sub"(%arg4, %arg2, %arg0)
// CHECK: buffers = [#tandem.buffer<argument 0>]{{.*}} needs = {{\[\[}}"v"]]
// CHECK: tandem.kernel "fused_mul_sub"(%arg4, %arg3, %arg1)
// CHECK: buffers = [#tandem.buffer<argument 1>]{{.*}} needs = {{\[\[}}"w"]]
// CHECK: tandem.kernel "add"(%arg5)
// CHECK: buffers = [#tandem.buffer<argument 5>]{{.*}} needs = {{\[\[}}"w"]]
// CHECK: tandem.kernel "add"(%arg6)
// CHECK-NOT: needs
// CHECK: return
module @update attributes {tandem.phase = "partition"} {
  func.func @update(%v: tensor<1xf32> {tandem.role = #tandem.role<param "v">}, %w: tensor<1xf32> {tandem.role = #tandem.role<param "w">}, %gv: tensor<1xf32> {tandem.role = #tandem.role<grad of "v">}, %gw: tensor<1xf32> {tandem.role = #tandem.role<grad of "w">}, %lr: tensor<1xf32> {tandem.role = #tandem.role<state "lr">}, %nw: tensor<1xf32> {tandem.role = #tandem.role<state "n:w">}, %n: tensor<1xf32> {tandem.role = #tandem.role<state "n">}) -> (tensor<1xf32> {tandem.role = #tandem.role<update of "v">}, tensor<1xf32> {tandem.role = #tandem.role<update of "w">}, tensor<1xf32> {tandem.role = #tandem.role<update of "n:w" {needs = [["w"]]}>}, tensor<1xf32> {tandem.role = #tandem.role<update of "n">}) {
    %one = tandem.constant dense<1.0> : tensor<1xf32>
    %0 = tandem.mul %lr, %gv : tensor<1xf32>
    %1 = tandem.sub %v, %0 : tensor<1xf32>
    %2 = tandem.mul %lr, %gw : tensor<1xf32>
    %3 = tandem.sub %w, %2 : tensor<1xf32>
    %4 = tandem.add %nw, %one : tensor<1xf32>
    %5 = tandem.add %n, %one : tensor<1xf32>
    return %1, %3, %4, %5 : tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>
  }
}
