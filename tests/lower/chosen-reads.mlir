// RUN: tandem-opt %s --tandem-plan-programs --tandem-lower-to-cpu --split-input-file | FileCheck %s

// What is concatenated of many tensors is read by one load: the pointer is
// chosen by the row, in front of the loop over the columns.
// CHECK-LABEL: module @rows
// CHECK: llvm.func internal @fused_{{.*}}.body(
// CHECK-COUNT-5: llvm.select {{.*}}struct
// CHECK-NOT: llvm.select
// CHECK-COUNT-1: llvm.load {{.*}} -> f32
// CHECK-NOT: -> f32
// CHECK: llvm.return
module @rows attributes {tandem.phase = "partition"} {
  func.func @forward(%x0: tensor<1x64xf32> {tandem.role = #tandem.role<input "x0">}, %x1: tensor<1x64xf32> {tandem.role = #tandem.role<input "x1">}, %x2: tensor<1x64xf32> {tandem.role = #tandem.role<input "x2">}, %x3: tensor<1x64xf32> {tandem.role = #tandem.role<input "x3">}, %x4: tensor<1x64xf32> {tandem.role = #tandem.role<input "x4">}, %x5: tensor<1x64xf32> {tandem.role = #tandem.role<input "x5">}) -> (tensor<6x64xf32> {tandem.role = #tandem.role<output "y">}) {
    %i = tandem.iota dim 0 : tensor<6x64xi32>
    %p0 = tandem.pad %x0 low [0, 0] high [5, 0] interior [0, 0] with 0.0 : f32 : tensor<1x64xf32> -> tensor<6x64xf32>
    %p1 = tandem.pad %x1 low [1, 0] high [4, 0] interior [0, 0] with 0.0 : f32 : tensor<1x64xf32> -> tensor<6x64xf32>
    %p2 = tandem.pad %x2 low [2, 0] high [3, 0] interior [0, 0] with 0.0 : f32 : tensor<1x64xf32> -> tensor<6x64xf32>
    %p3 = tandem.pad %x3 low [3, 0] high [2, 0] interior [0, 0] with 0.0 : f32 : tensor<1x64xf32> -> tensor<6x64xf32>
    %p4 = tandem.pad %x4 low [4, 0] high [1, 0] interior [0, 0] with 0.0 : f32 : tensor<1x64xf32> -> tensor<6x64xf32>
    %p5 = tandem.pad %x5 low [5, 0] high [0, 0] interior [0, 0] with 0.0 : f32 : tensor<1x64xf32> -> tensor<6x64xf32>
    %c1 = tandem.constant dense<1> : tensor<6x64xi32>
    %b1 = tandem.compare lt %i, %c1 : tensor<6x64xi32>
    %s1 = tandem.select %b1, %p0, %p1 : tensor<6x64xi1>, tensor<6x64xf32>
    %c2 = tandem.constant dense<2> : tensor<6x64xi32>
    %b2 = tandem.compare lt %i, %c2 : tensor<6x64xi32>
    %s2 = tandem.select %b2, %s1, %p2 : tensor<6x64xi1>, tensor<6x64xf32>
    %c3 = tandem.constant dense<3> : tensor<6x64xi32>
    %b3 = tandem.compare lt %i, %c3 : tensor<6x64xi32>
    %s3 = tandem.select %b3, %s2, %p3 : tensor<6x64xi1>, tensor<6x64xf32>
    %c4 = tandem.constant dense<4> : tensor<6x64xi32>
    %b4 = tandem.compare lt %i, %c4 : tensor<6x64xi32>
    %s4 = tandem.select %b4, %s3, %p4 : tensor<6x64xi1>, tensor<6x64xf32>
    %c5 = tandem.constant dense<5> : tensor<6x64xi32>
    %b5 = tandem.compare lt %i, %c5 : tensor<6x64xi32>
    %s5 = tandem.select %b5, %s4, %p5 : tensor<6x64xi1>, tensor<6x64xf32>
    return %s5 : tensor<6x64xf32>
  }
}

// -----

// Where the first piece is zeros, the next one's row is loaded there, and is not
// taken.
// CHECK-LABEL: module @zeros
// CHECK: llvm.func internal @fused_{{.*}}.body(
// CHECK-COUNT-5: llvm.select {{.*}}struct
// CHECK-NOT: llvm.select {{.*}}struct
// CHECK-COUNT-1: llvm.load {{.*}} -> f32
// CHECK: llvm.select {{.*}} f32
// CHECK-NOT: -> f32
// CHECK: llvm.return
module @zeros attributes {tandem.phase = "partition"} {
  func.func @forward(%x1: tensor<1x64xf32> {tandem.role = #tandem.role<input "x1">}, %x2: tensor<1x64xf32> {tandem.role = #tandem.role<input "x2">}, %x3: tensor<1x64xf32> {tandem.role = #tandem.role<input "x3">}, %x4: tensor<1x64xf32> {tandem.role = #tandem.role<input "x4">}, %x5: tensor<1x64xf32> {tandem.role = #tandem.role<input "x5">}) -> (tensor<6x64xf32> {tandem.role = #tandem.role<output "y">}) {
    %i = tandem.iota dim 0 : tensor<6x64xi32>
    %x0 = tandem.constant dense<0.0> : tensor<1x64xf32>
    %p0 = tandem.pad %x0 low [0, 0] high [5, 0] interior [0, 0] with 0.0 : f32 : tensor<1x64xf32> -> tensor<6x64xf32>
    %p1 = tandem.pad %x1 low [1, 0] high [4, 0] interior [0, 0] with 0.0 : f32 : tensor<1x64xf32> -> tensor<6x64xf32>
    %p2 = tandem.pad %x2 low [2, 0] high [3, 0] interior [0, 0] with 0.0 : f32 : tensor<1x64xf32> -> tensor<6x64xf32>
    %p3 = tandem.pad %x3 low [3, 0] high [2, 0] interior [0, 0] with 0.0 : f32 : tensor<1x64xf32> -> tensor<6x64xf32>
    %p4 = tandem.pad %x4 low [4, 0] high [1, 0] interior [0, 0] with 0.0 : f32 : tensor<1x64xf32> -> tensor<6x64xf32>
    %p5 = tandem.pad %x5 low [5, 0] high [0, 0] interior [0, 0] with 0.0 : f32 : tensor<1x64xf32> -> tensor<6x64xf32>
    %c1 = tandem.constant dense<1> : tensor<6x64xi32>
    %b1 = tandem.compare lt %i, %c1 : tensor<6x64xi32>
    %s1 = tandem.select %b1, %p0, %p1 : tensor<6x64xi1>, tensor<6x64xf32>
    %c2 = tandem.constant dense<2> : tensor<6x64xi32>
    %b2 = tandem.compare lt %i, %c2 : tensor<6x64xi32>
    %s2 = tandem.select %b2, %s1, %p2 : tensor<6x64xi1>, tensor<6x64xf32>
    %c3 = tandem.constant dense<3> : tensor<6x64xi32>
    %b3 = tandem.compare lt %i, %c3 : tensor<6x64xi32>
    %s3 = tandem.select %b3, %s2, %p3 : tensor<6x64xi1>, tensor<6x64xf32>
    %c4 = tandem.constant dense<4> : tensor<6x64xi32>
    %b4 = tandem.compare lt %i, %c4 : tensor<6x64xi32>
    %s4 = tandem.select %b4, %s3, %p4 : tensor<6x64xi1>, tensor<6x64xf32>
    %c5 = tandem.constant dense<5> : tensor<6x64xi32>
    %b5 = tandem.compare lt %i, %c5 : tensor<6x64xi32>
    %s5 = tandem.select %b5, %s4, %p5 : tensor<6x64xi1>, tensor<6x64xf32>
    return %s5 : tensor<6x64xf32>
  }
}

// -----

// One row of it is read where it comes from.
// CHECK-LABEL: module @row
// CHECK: llvm.func internal @{{.*}}.body(
// CHECK-NOT: struct
// CHECK-COUNT-1: llvm.load {{.*}} -> f32
// CHECK-NOT: llvm.load
// CHECK: llvm.return
module @row attributes {tandem.phase = "partition"} {
  func.func @evaluate(%x0: tensor<1x64xf32> {tandem.role = #tandem.role<input "x0">}, %x1: tensor<1x64xf32> {tandem.role = #tandem.role<input "x1">}, %x2: tensor<1x64xf32> {tandem.role = #tandem.role<input "x2">}, %x3: tensor<1x64xf32> {tandem.role = #tandem.role<input "x3">}, %x4: tensor<1x64xf32> {tandem.role = #tandem.role<input "x4">}, %x5: tensor<1x64xf32> {tandem.role = #tandem.role<input "x5">}) -> (tensor<64xf32> {tandem.role = #tandem.role<output "z">}) {
    %i = tandem.iota dim 0 : tensor<6x64xi32>
    %p0 = tandem.pad %x0 low [0, 0] high [5, 0] interior [0, 0] with 0.0 : f32 : tensor<1x64xf32> -> tensor<6x64xf32>
    %p1 = tandem.pad %x1 low [1, 0] high [4, 0] interior [0, 0] with 0.0 : f32 : tensor<1x64xf32> -> tensor<6x64xf32>
    %p2 = tandem.pad %x2 low [2, 0] high [3, 0] interior [0, 0] with 0.0 : f32 : tensor<1x64xf32> -> tensor<6x64xf32>
    %p3 = tandem.pad %x3 low [3, 0] high [2, 0] interior [0, 0] with 0.0 : f32 : tensor<1x64xf32> -> tensor<6x64xf32>
    %p4 = tandem.pad %x4 low [4, 0] high [1, 0] interior [0, 0] with 0.0 : f32 : tensor<1x64xf32> -> tensor<6x64xf32>
    %p5 = tandem.pad %x5 low [5, 0] high [0, 0] interior [0, 0] with 0.0 : f32 : tensor<1x64xf32> -> tensor<6x64xf32>
    %c1 = tandem.constant dense<1> : tensor<6x64xi32>
    %b1 = tandem.compare lt %i, %c1 : tensor<6x64xi32>
    %s1 = tandem.select %b1, %p0, %p1 : tensor<6x64xi1>, tensor<6x64xf32>
    %c2 = tandem.constant dense<2> : tensor<6x64xi32>
    %b2 = tandem.compare lt %i, %c2 : tensor<6x64xi32>
    %s2 = tandem.select %b2, %s1, %p2 : tensor<6x64xi1>, tensor<6x64xf32>
    %c3 = tandem.constant dense<3> : tensor<6x64xi32>
    %b3 = tandem.compare lt %i, %c3 : tensor<6x64xi32>
    %s3 = tandem.select %b3, %s2, %p3 : tensor<6x64xi1>, tensor<6x64xf32>
    %c4 = tandem.constant dense<4> : tensor<6x64xi32>
    %b4 = tandem.compare lt %i, %c4 : tensor<6x64xi32>
    %s4 = tandem.select %b4, %s3, %p4 : tensor<6x64xi1>, tensor<6x64xf32>
    %c5 = tandem.constant dense<5> : tensor<6x64xi32>
    %b5 = tandem.compare lt %i, %c5 : tensor<6x64xi32>
    %s5 = tandem.select %b5, %s4, %p5 : tensor<6x64xi1>, tensor<6x64xf32>
    %r = tandem.slice %s5 from [3, 0] to [4, 64] step [1, 1] : tensor<6x64xf32> -> tensor<1x64xf32>
    %e = tandem.exp %r : tensor<1x64xf32>
    %z = tandem.reshape %e to [64] : tensor<1x64xf32> -> tensor<64xf32>
    return %z : tensor<64xf32>
  }
}

// -----

// A piece of three rows among pieces of one: what is chosen is the row of it, too.
// CHECK-LABEL: module @of_several_rows
// CHECK: llvm.func internal @fused_{{.*}}.body(
// CHECK: llvm.select {{.*}} i64
// CHECK-COUNT-1: llvm.load {{.*}} -> f32
// CHECK-NOT: -> f32
// CHECK: llvm.return
module @of_several_rows attributes {tandem.phase = "partition"} {
  func.func @forward(%x0: tensor<1x64xf32> {tandem.role = #tandem.role<input "x0">}, %x1: tensor<1x64xf32> {tandem.role = #tandem.role<input "x1">}, %x2: tensor<3x64xf32> {tandem.role = #tandem.role<input "x2">}, %x3: tensor<1x64xf32> {tandem.role = #tandem.role<input "x3">}, %x4: tensor<1x64xf32> {tandem.role = #tandem.role<input "x4">}) -> (tensor<7x64xf32> {tandem.role = #tandem.role<output "y">}) {
    %i = tandem.iota dim 0 : tensor<7x64xi32>
    %p0 = tandem.pad %x0 low [0, 0] high [6, 0] interior [0, 0] with 0.0 : f32 : tensor<1x64xf32> -> tensor<7x64xf32>
    %p1 = tandem.pad %x1 low [1, 0] high [5, 0] interior [0, 0] with 0.0 : f32 : tensor<1x64xf32> -> tensor<7x64xf32>
    %c1 = tandem.constant dense<1> : tensor<7x64xi32>
    %b1 = tandem.compare lt %i, %c1 : tensor<7x64xi32>
    %s1 = tandem.select %b1, %p0, %p1 : tensor<7x64xi1>, tensor<7x64xf32>
    %p2 = tandem.pad %x2 low [2, 0] high [2, 0] interior [0, 0] with 0.0 : f32 : tensor<3x64xf32> -> tensor<7x64xf32>
    %c2 = tandem.constant dense<2> : tensor<7x64xi32>
    %b2 = tandem.compare lt %i, %c2 : tensor<7x64xi32>
    %s2 = tandem.select %b2, %s1, %p2 : tensor<7x64xi1>, tensor<7x64xf32>
    %p3 = tandem.pad %x3 low [5, 0] high [1, 0] interior [0, 0] with 0.0 : f32 : tensor<1x64xf32> -> tensor<7x64xf32>
    %c3 = tandem.constant dense<5> : tensor<7x64xi32>
    %b3 = tandem.compare lt %i, %c3 : tensor<7x64xi32>
    %s3 = tandem.select %b3, %s2, %p3 : tensor<7x64xi1>, tensor<7x64xf32>
    %p4 = tandem.pad %x4 low [6, 0] high [0, 0] interior [0, 0] with 0.0 : f32 : tensor<1x64xf32> -> tensor<7x64xf32>
    %c4 = tandem.constant dense<6> : tensor<7x64xi32>
    %b4 = tandem.compare lt %i, %c4 : tensor<7x64xi32>
    %s4 = tandem.select %b4, %s3, %p4 : tensor<7x64xi1>, tensor<7x64xf32>
    return %s4 : tensor<7x64xf32>
  }
}
