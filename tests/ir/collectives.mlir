// What ranks do together, meshes and shardings: what is accepted is printed as
// it was read; each rule that is broken has its message.
//
// RUN: tandem-opt %s --split-input-file --verify-diagnostics | FileCheck %s

// CHECK: module attributes {tandem.mesh = #tandem.mesh<data = 2, "2d" = 3>}
module attributes {tandem.mesh = #tandem.mesh<data = 2, "2d" = 3>} {
  // CHECK-LABEL: func.func @all
  func.func @all(%x: tensor<12x6xf32>) -> tensor<12x6xf32> {
    // CHECK: tandem.all_reduce sum %{{.*}} over ["data", "2d"] : tensor<12x6xf32> -> tensor<12x6xf32>
    %0 = tandem.all_reduce sum %x over ["data", "2d"] : tensor<12x6xf32> -> tensor<12x6xf32>
    // CHECK: tandem.reduce_scatter max %{{.*}} dim 0 over ["data"] {number = 3 : i64} : tensor<12x6xf32> -> tensor<6x6xf32>
    %1 = tandem.reduce_scatter max %0 dim 0 over ["data"] {number = 3} : tensor<12x6xf32> -> tensor<6x6xf32>
    // CHECK: tandem.all_gather %{{.*}} dim 1 over ["2d"] : tensor<6x6xf32> -> tensor<6x18xf32>
    %2 = tandem.all_gather %1 dim 1 over ["2d"] : tensor<6x6xf32> -> tensor<6x18xf32>
    // CHECK: tandem.all_to_all %{{.*}} split 1 concat 0 over ["2d", "data"] : tensor<6x18xf32> -> tensor<36x3xf32>
    %3 = tandem.all_to_all %2 split 1 concat 0 over ["2d", "data"] : tensor<6x18xf32> -> tensor<36x3xf32>
    // CHECK: tandem.broadcast_from %{{.*}} root 2 over ["2d"] : tensor<36x3xf32> -> tensor<36x3xf32>
    %4 = tandem.broadcast_from %3 root 2 over ["2d"] : tensor<36x3xf32> -> tensor<36x3xf32>
    // CHECK: tandem.rank_slice %{{.*}} dim 1 over ["2d"] : tensor<36x3xf32> -> tensor<36x1xf32>
    %5 = tandem.rank_slice %4 dim 1 over ["2d"] : tensor<36x3xf32> -> tensor<36x1xf32>
    // CHECK: tandem.barrier over ["data"]
    tandem.barrier over ["data"]
    return %0 : tensor<12x6xf32>
  }
  // CHECK-LABEL: func.func @shards
  // CHECK-SAME: {sharding = {{\[}}["data"], ["2d"]]}
  func.func @shards(%x: tensor<4x6xf32> {tandem.role = #tandem.role<input "x" {sharding = [["data"], ["2d"]]}>})
      -> (tensor<4x6xf32> {tandem.role = #tandem.role<output "y" {sharding = [[], ["2d", "data"]]}>}) {
    return %x : tensor<4x6xf32>
  }
  // What is local need not be cut once more.
  // CHECK-LABEL: func.func @local
  // CHECK: attributes {tandem.local}
  func.func @local(%x: tensor<1xf32> {tandem.role = #tandem.role<input "x" {sharding = [["data"]]}>}) attributes {tandem.local} {
    return
  }
}

// -----

// expected-error @+1 {{expected '#tandem.mesh' to have an axis}}
module attributes {tandem.mesh = #tandem.mesh<>} {}

// -----

// expected-error @+1 {{expected names to be unique in '#tandem.mesh', but got 'a' twice}}
module attributes {tandem.mesh = #tandem.mesh<a = 2, a = 2>} {}

// -----

// expected-error @+1 {{expected the axis 'a' to have a size of at least 1, and a mesh to have at most 1048576 ranks, but got 0}}
module attributes {tandem.mesh = #tandem.mesh<a = 0>} {}

// -----

// expected-error @+1 {{expected the axis 'b' to have a size of at least 1, and a mesh to have at most 1048576 ranks, but got 1048576}}
module attributes {tandem.mesh = #tandem.mesh<a = 2, b = 1048576>} {}

// -----

// expected-error @+1 {{expected 'tandem.mesh' to be '#tandem.mesh', but got 4}}
module attributes {tandem.mesh = 4} {}

// -----

// expected-error @+1 {{expected 'tandem.bucket_bytes' to be an i64 from 4 to 1073741824, but got 3 : i64}}
module attributes {tandem.bucket_bytes = 3 : i64, tandem.mesh = #tandem.mesh<data = 2>} {}

// -----

// expected-error @+1 {{expected 'tandem.bucket_bytes' to be an i64 from 4 to 1073741824, but got 1073741825 : i64}}
module attributes {tandem.bucket_bytes = 1073741825 : i64, tandem.mesh = #tandem.mesh<data = 2>} {}

// -----

// expected-error @+1 {{expected 'tandem.bucket_bytes' to be an i64 from 4 to 1073741824, but got 4096 : i32}}
module attributes {tandem.bucket_bytes = 4096 : i32, tandem.mesh = #tandem.mesh<data = 2>} {}

// -----

// expected-error @+1 {{expected 'tandem.bucket_bytes' to be an i64 from 4 to 1073741824, but got "1 MiB"}}
module attributes {tandem.bucket_bytes = "1 MiB", tandem.mesh = #tandem.mesh<data = 2>} {}

// -----

// expected-error @+1 {{'tandem.local' belongs on a function}}
module attributes {tandem.local} {}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error @+1 {{expected its module to have 'tandem.mesh', the ranks that it is compiled for}}
  %0 = tandem.all_reduce sum %x over ["data"] : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

module attributes {tandem.mesh = #tandem.mesh<data = 2, tensor = 3>} {
  func.func @f(%x: tensor<4xf32>) {
    // expected-error @+1 {{expected an axis of #tandem.mesh<data = 2, tensor = 3>, but got "pipe"}}
    %0 = tandem.all_reduce sum %x over ["pipe"] : tensor<4xf32> -> tensor<4xf32>
    return
  }
}

// -----

module attributes {tandem.mesh = #tandem.mesh<data = 2, tensor = 3>} {
  func.func @f(%x: tensor<4xf32>) {
    // expected-error @+1 {{expected at least one axis of the mesh}}
    tandem.barrier over []
    return
  }
}

// -----

module attributes {tandem.mesh = #tandem.mesh<data = 2, tensor = 3>} {
  func.func @f(%x: tensor<4xf32>) {
    // expected-error @+1 {{expected each axis once, but got "data" twice}}
    tandem.barrier over ["data", "data"]
    return
  }
}

// -----

module attributes {tandem.mesh = #tandem.mesh<data = 2, tensor = 3>} {
  func.func @f(%x: tensor<4xf32>) {
    // expected-error @+1 {{expected 'number' of at least 0, but got -1}}
    tandem.barrier over ["data"] {number = -1}
    return
  }
}

// -----

module attributes {tandem.mesh = #tandem.mesh<data = 2, tensor = 3>} {
  func.func @f(%x: tensor<4xf32>) {
    // expected-error @+1 {{expected, over 2 ranks, a result of type 'tensor<4xf32>', but got 'tensor<2xf32>'}}
    %0 = tandem.all_reduce sum %x over ["data"] : tensor<4xf32> -> tensor<2xf32>
    return
  }
}

// -----

module attributes {tandem.mesh = #tandem.mesh<data = 2, tensor = 3>} {
  func.func @f(%x: tensor<4xf32>) {
    // expected-error @+1 {{expected, over 3 ranks, sizes that can be cut so, but got 'tensor<4xf32>'}}
    %0 = tandem.reduce_scatter sum %x dim 0 over ["tensor"] : tensor<4xf32> -> tensor<1xf32>
    return
  }
}

// -----

module attributes {tandem.mesh = #tandem.mesh<data = 2, tensor = 3>} {
  func.func @f(%x: tensor<4xf32>) {
    // expected-error @+1 {{expected a dimension of its operand, of 1, but got 1}}
    %0 = tandem.all_gather %x dim 1 over ["data"] : tensor<4xf32> -> tensor<8xf32>
    return
  }
}

// -----

module attributes {tandem.mesh = #tandem.mesh<data = 2, tensor = 3>} {
  func.func @f(%x: tensor<4xf32>) {
    // expected-error @+1 {{expected, over 2 ranks, a result of type 'tensor<8xf32>', but got 'tensor<4xf32>'}}
    %0 = tandem.all_gather %x dim 0 over ["data"] : tensor<4xf32> -> tensor<4xf32>
    return
  }
}

// -----

module attributes {tandem.mesh = #tandem.mesh<data = 2, tensor = 3>} {
  func.func @f(%x: tensor<4xf32>) {
    // expected-error @+1 {{expected, over 3 ranks, sizes that can be cut so, but got 'tensor<4xf32>'}}
    %0 = tandem.all_to_all %x split 0 concat 0 over ["tensor"] : tensor<4xf32> -> tensor<4xf32>
    return
  }
}

// -----

module attributes {tandem.mesh = #tandem.mesh<data = 2, tensor = 3>} {
  func.func @f(%x: tensor<4xf32>) {
    // expected-error @+1 {{expected a dimension of its operand, of 1, but got -1}}
    %0 = tandem.all_to_all %x split 0 concat -1 over ["data"] : tensor<4xf32> -> tensor<4xf32>
    return
  }
}

// -----

module attributes {tandem.mesh = #tandem.mesh<data = 2, tensor = 3>} {
  func.func @f(%x: tensor<4xf32>) {
    // expected-error @+1 {{expected 'root' to be one of the group's 3 ranks, but got 3}}
    %0 = tandem.broadcast_from %x root 3 over ["tensor"] : tensor<4xf32> -> tensor<4xf32>
    return
  }
}

// -----

module attributes {tandem.mesh = #tandem.mesh<data = 2, tensor = 3>} {
  func.func @f(%x: tensor<4xf32>) {
    // expected-error @+1 {{expected, over 2 ranks, a result of type 'tensor<2xf32>', but got 'tensor<4xf32>'}}
    %0 = tandem.rank_slice %x dim 0 over ["data"] : tensor<4xf32> -> tensor<4xf32>
    return
  }
}

// -----

module attributes {tandem.mesh = #tandem.mesh<data = 2, tensor = 3>} {
  func.func @f(%x: tensor<4xi1>) {
    // expected-error @+1 {{operand #0 must be tensor of floats or integers}}
    %0 = tandem.all_reduce max %x over ["data"] : tensor<4xi1> -> tensor<4xi1>
    return
  }
}

// -----

module attributes {tandem.mesh = #tandem.mesh<data = 4>} {
  func.func @f(%x: tensor<1099511627776xf32>) {
    // expected-error @+1 {{expected, over 4 ranks, sizes that can be cut so, but got 'tensor<1099511627776xf32>'}}
    %0 = tandem.all_gather %x dim 0 over ["data"] : tensor<1099511627776xf32> -> tensor<4xf32>
    return
  }
}

// -----

// X16: whether a rank comes to it depends on its data.
module attributes {tandem.mesh = #tandem.mesh<data = 2>} {
  func.func @f(%c: tensor<i1>, %x: tensor<4xf32>) {
    // expected-note @+1 {{the branch or loop}}
    %0 = tandem.if %c (%x) then {
    ^bb0(%a: tensor<4xf32>):
      // expected-error @+1 {{'tandem.all_reduce' op expected not to stand in 'tandem.if', which some ranks may run and others not: they would wait for each other}}
      %1 = tandem.all_reduce sum %a over ["data"] : tensor<4xf32> -> tensor<4xf32>
      tandem.yield %1 : tensor<4xf32>
    } else {
    ^bb0(%a: tensor<4xf32>):
      tandem.yield %a : tensor<4xf32>
    } : (tensor<4xf32>) -> tensor<4xf32>
    return
  }
}

// -----

module attributes {tandem.mesh = #tandem.mesh<data = 2>} {
  // expected-error @+1 {{expected the sharding of 'input "x"' to have a list of axes for each of its 2 dimensions, but got 1}}
  func.func @f(%x: tensor<4x6xf32> {tandem.role = #tandem.role<input "x" {sharding = [["data"]]}>}) {
    return
  }
}

// -----

module attributes {tandem.mesh = #tandem.mesh<data = 2>} {
  // expected-error @+1 {{expected the sharding of 'input "x"' to name axes of #tandem.mesh<data = 2>, but got "pipe"}}
  func.func @g(%x: tensor<4xf32> {tandem.role = #tandem.role<input "x" {sharding = [["pipe"]]}>}) {
    return
  }
}

// -----

module attributes {tandem.mesh = #tandem.mesh<data = 2>} {
  // expected-error @+1 {{expected the sharding of 'input "x"' to cut dimension 0, of size 5, over 2 ranks so that each has 3, but got 2}}
  func.func @h(%x: tensor<2xf32> {tandem.role = #tandem.role<input "x" {sharding = [["data"]], whole = array<i64: 5>}>}) attributes {tandem.local} {
    return
  }
}

// -----

module attributes {tandem.mesh = #tandem.mesh<data = 2>} {
  // expected-error @+1 {{expected the sharding of 'input "x"' to have no 'whole' beside it before the function is local to a rank}}
  func.func @i(%x: tensor<3xf32> {tandem.role = #tandem.role<input "x" {sharding = [["data"]], whole = array<i64: 5>}>}) {
    return
  }
}

// -----

module attributes {tandem.mesh = #tandem.mesh<data = 2>} {
  // expected-error @+1 {{expected the sharding of 'input "x"' to have as 'whole' beside it 1 sizes, but got 2}}
  func.func @j(%x: tensor<3xf32> {tandem.role = #tandem.role<input "x" {sharding = [["data"]], whole = array<i64: 5, 5>}>}) attributes {tandem.local} {
    return
  }
}

// -----

// expected-error @+1 {{expected 'whole' of role 'input "x"' to be sizes of at least 0, and a 'sharding' beside it}}
func.func private @k(%x: tensor<3xf32> {tandem.role = #tandem.role<input "x" {whole = array<i64: 5>}>})

// -----

// expected-error @+1 {{expected the sharding of 'input "x"' to stand in a module with 'tandem.mesh'}}
func.func @f(%x: tensor<4xf32> {tandem.role = #tandem.role<input "x" {sharding = [["data"]]}>}) {
  return
}

// -----

// expected-error @+1 {{expected 'sharding' of role 'input "x"' to be a list, for each dimension, of axes, of which each is there once}}
func.func private @f(%x: tensor<4x4xf32> {tandem.role = #tandem.role<input "x" {sharding = [["data"], ["data"]]}>})
