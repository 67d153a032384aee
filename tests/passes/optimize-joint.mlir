// RUN: tandem-opt %s -split-input-file -tandem-optimize-joint | FileCheck %s

// Equal ops of the two passes merge, and the forward one stays; dead ops and
// detach go; what only the gradients need is backward wherever it stands.
// CHECK-LABEL: module @merge
// CHECK-SAME: tandem.phase = "optimize"
module @merge attributes {tandem.phase = "joint"} {
  func.func @joint(
      %x: tensor<4xf32> {tandem.role = #tandem.role<param "x" {requires_grad}>},
      %dy: tensor<4xf32> {tandem.role = #tandem.role<cotangent of "y">})
      -> (tensor<4xf32> {tandem.role = #tandem.role<output "y">},
          tensor<4xf32> {tandem.role = #tandem.role<grad of "x">}) {
    // CHECK: func.func @joint(%[[X:[a-z0-9]+]]: {{.*}}, %[[DY:[a-z0-9]+]]:
    // CHECK-NEXT: %[[E:.*]] = tandem.exp %[[X]] {tandem.pass = "forward"}
    // CHECK-NEXT: %[[S:.*]] = tandem.sigmoid %[[X]] {tandem.pass = "backward"}
    // CHECK-NEXT: %[[M:.*]] = tandem.mul %[[DY]], %[[E]] {tandem.pass = "backward"}
    // CHECK-NEXT: %[[N:.*]] = tandem.mul %[[M]], %[[S]] {tandem.pass = "backward"}
    // CHECK-NEXT: return %[[E]], %[[N]]
    %d = tandem.detach %x {tandem.pass = "forward"} : tensor<4xf32>
    %y = tandem.exp %d {tandem.pass = "forward"} : tensor<4xf32>
    %s = tandem.sigmoid %x {tandem.pass = "forward"} : tensor<4xf32>
    %dead = tandem.tanh %x {tandem.pass = "forward"} : tensor<4xf32>
    %y2 = tandem.exp %x {tandem.pass = "backward"} : tensor<4xf32>
    %m = tandem.mul %dy, %y2 {tandem.pass = "backward"} : tensor<4xf32>
    %n = tandem.mul %m, %s {tandem.pass = "backward"} : tensor<4xf32>
    return %y, %n : tensor<4xf32>, tensor<4xf32>
  }
  func.func @evaluate(
      %x: tensor<4xf32> {tandem.role = #tandem.role<param "x" {requires_grad}>})
      -> (tensor<4xf32> {tandem.role = #tandem.role<output "y">}) {
    %y = tandem.exp %x : tensor<4xf32>
    return %y : tensor<4xf32>
  }
}

// -----

// Views of equal elements are constants, and multiplying by one is nothing.
// CHECK-LABEL: module @splat
module @splat attributes {tandem.phase = "joint"} {
  func.func @evaluate(%x: tensor<2x3xf32> {tandem.role = #tandem.role<input "x">})
      -> (tensor<2x3xf32> {tandem.role = #tandem.role<output "y">},
          tensor<4xf32> {tandem.role = #tandem.role<output "z">},
          tensor<4xf32> {tandem.role = #tandem.role<output "p">}) {
    // CHECK: func.func @evaluate(%[[X:[a-z0-9]+]]:
    // CHECK-DAG: %[[P:.*]] = tandem.pad
    // CHECK-DAG: %[[Z:.*]] = tandem.constant dense<1.000000e+00> : tensor<4xf32>
    // CHECK: return %[[X]], %[[Z]], %[[P]]
    %one = tandem.constant dense<1.0> : tensor<2xf32>
    %b = tandem.broadcast %one to [2, 3] along [0] : tensor<2xf32> -> tensor<2x3xf32>
    %y = tandem.mul %b, %x : tensor<2x3xf32>
    %z = tandem.pad %one low [1] high [1] interior [0] with 1.0 : f32 : tensor<2xf32> -> tensor<4xf32>
    %p = tandem.pad %one low [1] high [1] interior [0] with 0.0 : f32 : tensor<2xf32> -> tensor<4xf32>
    return %y, %z, %p : tensor<2x3xf32>, tensor<4xf32>, tensor<4xf32>
  }
}

// -----

// An op in a no-grad region is not one outside of it.
// CHECK-LABEL: module @no_grad
module @no_grad attributes {tandem.phase = "joint"} {
  func.func @evaluate(%x: tensor<4xf32> {tandem.role = #tandem.role<input "x">})
      -> (tensor<4xf32> {tandem.role = #tandem.role<output "y">},
          tensor<4xf32> {tandem.role = #tandem.role<output "z">}) {
    // CHECK: %[[Y:.*]] = tandem.exp
    // CHECK: %[[Z:.*]] = tandem.exp
    // CHECK: return %[[Y]], %[[Z]]
    %y = tandem.exp %x {tandem.no_grad} : tensor<4xf32>
    %z = tandem.exp %x : tensor<4xf32>
    return %y, %z : tensor<4xf32>, tensor<4xf32>
  }
}

// -----

// J04: a gradient that folds to zeros stays undefined where it was.
// CHECK-LABEL: module @undefined
module @undefined attributes {tandem.phase = "joint"} {
  func.func @joint(
      %x: tensor<2xf32> {tandem.role = #tandem.role<param "x" {requires_grad}>},
      %a: tensor<2xf32> {tandem.role = #tandem.role<cotangent of "a">},
      %b: tensor<2xf32> {tandem.role = #tandem.role<cotangent of "b">})
      -> (tensor<2xf32> {tandem.role = #tandem.role<output "a">},
          tensor<2xf32> {tandem.role = #tandem.role<output "b">},
          tensor<2xf32> {tandem.role = #tandem.role<grad of "x">}) {
    // CHECK: %[[ZERO:.*]] = tandem.constant {{.*}} dense<0.000000e+00>
    // CHECK: %[[G:.*]] = tandem.or_zero %[[ZERO]] needs {{\[\[}}"b"]]
    // CHECK: return {{.*}}, %[[G]]
    %never = tandem.constant {tandem.pass = "backward"} dense<false> : tensor<2xi1>
    %zero = tandem.constant {tandem.pass = "backward"} dense<0.0> : tensor<2xf32>
    %g = tandem.select %never, %b, %zero {tandem.pass = "backward"} : tensor<2xi1>, tensor<2xf32>
    return %x, %x, %g : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
  }
  func.func @evaluate(%x: tensor<2xf32> {tandem.role = #tandem.role<param "x" {requires_grad}>})
      -> (tensor<2xf32> {tandem.role = #tandem.role<output "a">},
          tensor<2xf32> {tandem.role = #tandem.role<output "b">}) {
    return %x, %x : tensor<2xf32>, tensor<2xf32>
  }
}

// -----

// What the compilation asks of products stands at each that says nothing.
// CHECK-LABEL: module @precision
module @precision attributes {tandem.phase = "joint", tandem.target = #tandem.target<cuda {arch = "sm_90", matmul_precision = "tf32"}>} {
  func.func @evaluate(
      %x: tensor<4x4xf32> {tandem.role = #tandem.role<input "x">},
      %h: tensor<4x4xbf16> {tandem.role = #tandem.role<input "h">})
      -> (tensor<4x4xf32> {tandem.role = #tandem.role<output "a">},
          tensor<4x4xf32> {tandem.role = #tandem.role<output "b">},
          tensor<4x4xbf16> {tandem.role = #tandem.role<output "c">}) {
    // CHECK: tandem.matmul %{{.*}}, %{{.*}} {precision = "tf32"} :
    // CHECK: tandem.matmul %{{.*}}, %{{.*}} {precision = "f32"} :
    // CHECK: tandem.matmul %{{.*}}, %{{.*}} : tensor<4x4xbf16>
    %a = tandem.matmul %x, %x : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
    %b = tandem.matmul %x, %x {precision = "f32"} : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
    %c = tandem.matmul %h, %h : tensor<4x4xbf16>, tensor<4x4xbf16> -> tensor<4x4xbf16>
    return %a, %b, %c : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xbf16>
  }
}
