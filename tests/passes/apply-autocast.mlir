// RUN: tandem-opt %s -split-input-file -tandem-apply-autocast -verify-diagnostics | FileCheck %s

// Products are low, and relu behind one follows, with a bias that is a
// parameter; the sum with x, of f32, does not, nor does softmax. What leaves
// has its own type.
// CHECK: module {
// CHECK-LABEL: func.func @graph
// CHECK-SAME: (%[[X:.*]]: tensor<4x4xf32>{{.*}}, %[[W:.*]]: tensor<4x4xf32>{{.*}}, %[[B:.*]]: tensor<4xf32>
// CHECK: %[[XL:.*]] = tandem.cast %[[X]] : tensor<4x4xf32> to tensor<4x4xbf16>
// CHECK: %[[WL:.*]] = tandem.cast %[[W]] : tensor<4x4xf32> to tensor<4x4xbf16>
// CHECK: %[[P:.*]] = tandem.matmul %[[XL]], %[[WL]]
// CHECK: %[[BL:.*]] = tandem.cast %{{.*}} to tensor<4x4xbf16>
// CHECK: %[[S:.*]] = tandem.add %[[P]], %[[BL]] : tensor<4x4xbf16>
// CHECK: %[[R:.*]] = tandem.relu %[[S]] : tensor<4x4xbf16>
// CHECK: %[[Q:.*]] = tandem.matmul %[[R]], %[[WL]]
// CHECK: %[[F:.*]] = tandem.cast %[[Q]] : tensor<4x4xbf16> to tensor<4x4xf32>
// CHECK: %[[A:.*]] = tandem.add %[[F]], %[[X]] : tensor<4x4xf32>
// CHECK: tandem.softmax %[[A]] {{.*}} tensor<4x4xf32>
module attributes {tandem.amp = bf16} {
  func.func @graph(%x: tensor<4x4xf32> {tandem.role = #tandem.role<input "x">},
                   %w: tensor<4x4xf32> {tandem.role = #tandem.role<param "w" {requires_grad}>},
                   %b: tensor<4xf32> {tandem.role = #tandem.role<param "b" {requires_grad}>})
      -> (tensor<4x4xf32> {tandem.role = #tandem.role<output "y">}) {
    %p = tandem.matmul %x, %w : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
    %bb = tandem.broadcast %b to [4, 4] along [1] : tensor<4xf32> -> tensor<4x4xf32>
    %s = tandem.add %p, %bb : tensor<4x4xf32>
    %r = tandem.relu %s : tensor<4x4xf32>
    %q = tandem.matmul %r, %w : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
    %a = tandem.add %q, %x : tensor<4x4xf32>
    %y = tandem.softmax %a dim 1 : tensor<4x4xf32>
    return %y : tensor<4x4xf32>
  }
}

// -----

// A product whose precision is stated keeps its type: what it was stated for
// would be lost.
// CHECK-LABEL: func.func @graph
// CHECK: %[[P:.*]] = tandem.matmul %{{.*}}, %{{.*}} {precision = "tf32"} : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
// CHECK: %[[L:.*]] = tandem.cast %[[P]] : tensor<4x4xf32> to tensor<4x4xbf16>
// CHECK: tandem.matmul %[[L]], %{{.*}} -> tensor<4x4xbf16>
module attributes {tandem.amp = bf16} {
  func.func @graph(%x: tensor<4x4xf32> {tandem.role = #tandem.role<input "x">},
                   %w: tensor<4x4xf32> {tandem.role = #tandem.role<param "w" {requires_grad}>})
      -> (tensor<4x4xf32> {tandem.role = #tandem.role<output "y">}) {
    %p = tandem.matmul %x, %w {precision = "tf32"} : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
    %q = tandem.matmul %p, %w : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
    return %q : tensor<4x4xf32>
  }
}

// -----

// What an op says counts more than the module: off, and a type of its own.
// CHECK-LABEL: func.func @graph
// CHECK: tandem.matmul {{.*}} -> tensor<2x2xf32>
// CHECK: tandem.exp {{.*}} : tensor<2x2xf16>
// CHECK-NOT: tandem.autocast
// CHECK: return
module attributes {tandem.amp = bf16} {
  func.func @graph(%x: tensor<2x2xf32> {tandem.role = #tandem.role<input "x">})
      -> (tensor<2x2xf32> {tandem.role = #tandem.role<output "y">}) {
    %p = tandem.matmul %x, %x {tandem.autocast = f32} : tensor<2x2xf32>, tensor<2x2xf32> -> tensor<2x2xf32>
    %y = tandem.exp %p {tandem.compute_type = f16} : tensor<2x2xf32>
    return %y : tensor<2x2xf32>
  }
}

// -----

// -1e9 is no number of f16: a mask of it is added in f32.
// CHECK-LABEL: func.func @graph
// CHECK: tandem.add {{.*}} : tensor<2x2xf32>
// CHECK: tandem.mul {{.*}} : tensor<2x2xf16>
module attributes {tandem.amp = f16} {
  func.func @graph(%x: tensor<2x2xf32> {tandem.role = #tandem.role<input "x">})
      -> (tensor<2x2xf32> {tandem.role = #tandem.role<output "y">},
          tensor<2x2xf32> {tandem.role = #tandem.role<output "z">}) {
    %p = tandem.matmul %x, %x : tensor<2x2xf32>, tensor<2x2xf32> -> tensor<2x2xf32>
    %mask = tandem.constant dense<-1.0e9> : tensor<2x2xf32>
    %y = tandem.add %p, %mask : tensor<2x2xf32>
    %half = tandem.constant dense<0.5> : tensor<2x2xf32>
    %z = tandem.mul %p, %half : tensor<2x2xf32>
    return %y, %z : tensor<2x2xf32>, tensor<2x2xf32>
  }
}

// -----

// A body of a loop is low inside, and its carries keep their type; f64 stays.
// CHECK-LABEL: func.func @graph
// CHECK: tandem.scan
// CHECK: tandem.matmul {{.*}} -> tensor<2x2xbf16>
// CHECK: tandem.cast {{.*}} : tensor<2x2xbf16> to tensor<2x2xf32>
// CHECK: tandem.matmul {{.*}} -> tensor<2x2xf64>
module attributes {tandem.amp = bf16} {
  func.func @graph(%x: tensor<2x2xf32> {tandem.role = #tandem.role<input "x">},
                   %d: tensor<2x2xf64> {tandem.role = #tandem.role<input "d">})
      -> (tensor<2x2xf32> {tandem.role = #tandem.role<output "y">},
          tensor<2x2xf64> {tandem.role = #tandem.role<output "e">}) {
    %y = tandem.scan 3 carries(%x) inputs() constants() {
      ^bb0(%h: tensor<2x2xf32>):
      %p = tandem.matmul %h, %h : tensor<2x2xf32>, tensor<2x2xf32> -> tensor<2x2xf32>
      tandem.yield %p : tensor<2x2xf32>
    } : (tensor<2x2xf32>) -> tensor<2x2xf32>
    %e = tandem.matmul %d, %d : tensor<2x2xf64>, tensor<2x2xf64> -> tensor<2x2xf64>
    return %y, %e : tensor<2x2xf32>, tensor<2x2xf64>
  }
}

// -----

// expected-error @+1 {{expected 'tandem.amp' to be bf16 or f16, but got f32}}
module attributes {tandem.amp = f32} {
}

// -----

// expected-warning @+1 {{mixed precision changes nothing: the model has no product, convolution or attention of f32}}
module attributes {tandem.amp = bf16} {
  func.func @graph(%x: tensor<2x2xf64> {tandem.role = #tandem.role<input "x">})
      -> (tensor<2x2xf64> {tandem.role = #tandem.role<output "y">}) {
    %y = tandem.matmul %x, %x : tensor<2x2xf64>, tensor<2x2xf64> -> tensor<2x2xf64>
    return %y : tensor<2x2xf64>
  }
}
