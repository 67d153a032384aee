// RUN: tandem-opt %s -split-input-file -tandem-expand-powers | FileCheck %s

// Each cube of an exported gelu was a logarithm and an exponential.
// CHECK-LABEL: func.func @joint
// CHECK-NOT: tandem.pow
// CHECK: %[[XX:.*]] = tandem.mul %[[X:.*]], %[[X]] {tandem.pass = "forward"} : tensor<4xf32>
// CHECK-NEXT: %[[CUBE:.*]] = tandem.mul %[[XX]], %[[X]] {tandem.pass = "forward", tandem.save} : tensor<4xf32>
// The exponent that a gradient asks for follows from constants.
// CHECK: %[[D:.*]] = tandem.mul %[[X]], %[[X]] {tandem.pass = "backward"} : tensor<4xf32>
// CHECK: return %[[CUBE]], %[[D]]
func.func @joint(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %3 = tandem.constant dense<3.0> : tensor<f32>
  %one = tandem.constant dense<1.0> : tensor<4xf32>
  %n = tandem.broadcast %3 to [4] along [] : tensor<f32> -> tensor<4xf32>
  %y = tandem.pow %x, %n {tandem.pass = "forward", tandem.save} : tensor<4xf32>
  %m = tandem.sub %n, %one : tensor<4xf32>
  %d = tandem.pow %x, %m {tandem.pass = "backward"} : tensor<4xf32>
  return %y, %d : tensor<4xf32>, tensor<4xf32>
}

// -----

// Narrow types are computed in f32, whose range an intermediate needs.
// CHECK-LABEL: func.func @narrow
// CHECK: tandem.cast %{{.*}} : tensor<4xf16> to tensor<4xf32>
// CHECK: tandem.div
// CHECK: tandem.mul {{.*}} : tensor<4xf32>
// CHECK: tandem.cast %{{.*}} : tensor<4xf32> to tensor<4xf16>
func.func @narrow(%x: tensor<4xf16>) -> tensor<4xf16> {
  %n = tandem.constant dense<-2.0> : tensor<4xf16>
  %y = tandem.pow %x, %n : tensor<4xf16>
  return %y : tensor<4xf16>
}

// -----

// CHECK-LABEL: func.func @roots
// CHECK: tandem.sqrt
// CHECK: tandem.rsqrt
// CHECK-NOT: tandem.pow
func.func @roots(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %half = tandem.constant dense<0.5> : tensor<4xf32>
  %less = tandem.constant dense<-1.5> : tensor<4xf32>
  %y = tandem.pow %x, %half : tensor<4xf32>
  %z = tandem.pow %x, %less : tensor<4xf32>
  return %y, %z : tensor<4xf32>, tensor<4xf32>
}

// -----

// What nothing is simpler for, and what is not known.
// CHECK-LABEL: func.func @stay
// CHECK-COUNT-3: tandem.pow
func.func @stay(%x: tensor<4xf32>, %i: tensor<4xi32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xi32>) {
  %n = tandem.constant dense<2.7> : tensor<4xf32>
  %m = tandem.constant dense<-1> : tensor<4xi32>
  %y = tandem.pow %x, %n : tensor<4xf32>
  %z = tandem.pow %x, %x : tensor<4xf32>
  %k = tandem.pow %i, %m : tensor<4xi32>
  return %y, %z, %k : tensor<4xf32>, tensor<4xf32>, tensor<4xi32>
}
