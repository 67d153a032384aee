// What plan says of kernels and programs is of a type: rubbish in a dump is
// refused where it is read.
//
// RUN: tandem-opt %s --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @right
// CHECK-SAME: tandem.plan = #tandem.plan<arena_bytes = 128, peak_bytes = 64, lower_bound_bytes = 16>
// CHECK: in_place = #tandem.in_place<0 over 1, 1 over 0>, non_temporal = array<i64: 1>, parts = array<i64: 1, 1>, schedule = #tandem.schedule<method = winograd, rows = 6, vectors = 2, block = 96, columns = 64, packs = true, ahead = false>
// CHECK: library = #tandem.library_call<op = "matmul", dtype = f32, tf32 = true, operands = [0, 1, 2], sizes = [1, 4, 4, 4], lds = [4, 4, 4], batch_strides = [0, 0, 0], transposes = [0, 0], workspace_bytes = 64, workspace = 0>
func.func @right(%a: tensor<4xf32>, %b: tensor<4xf32>, %m: tensor<4x4xf32>) attributes {tandem.plan = #tandem.plan<peak_bytes = 64, arena_bytes = 128, lower_bound_bytes = 16>} {
  %0:2 = tandem.kernel "k" (%a, %b) {
  ^bb0(%x: tensor<4xf32>, %y: tensor<4xf32>):
    tandem.yield %x, %y : tensor<4xf32>, tensor<4xf32>
  } {in_place = #tandem.in_place<0 over 1, 1 over 0>, parts = array<i64: 1, 1>, non_temporal = array<i64: 1>, schedule = #tandem.schedule<ahead = false, packs = true, columns = 64, block = 96, vectors = 2, rows = 6, method = winograd>} : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  %1 = tandem.kernel "m" (%m, %m) {
  ^bb0(%x: tensor<4x4xf32>, %y: tensor<4x4xf32>):
    %z = tandem.matmul %x, %y : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
    tandem.yield %z : tensor<4x4xf32>
  } {library = #tandem.library_call<op = "matmul", dtype = f32, tf32 = true, operands = [0, 1, 2], sizes = [1, 4, 4, 4], lds = [4, 4, 4], batch_strides = [0, 0, 0], transposes = [0, 0], workspace_bytes = 64, workspace = 0>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return
}

// -----

// expected-error @+1 {{expected result 0 to overwrite one input, but it stands twice in '#tandem.in_place'}}
func.func private @wrong() attributes {test.attr = #tandem.in_place<0 over 1, 0 over 2>}

// -----

// expected-error @+1 {{expected input 1 to be overwritten once, but it stands twice in '#tandem.in_place'}}
func.func private @wrong() attributes {test.attr = #tandem.in_place<0 over 1, 1 over 1>}

// -----

// expected-error @+1 {{expected '#tandem.in_place' to have a pair}}
func.func private @wrong() attributes {test.attr = #tandem.in_place<>}

// -----

// expected-error @+1 {{expected the number of a result, but got -1}}
func.func private @wrong() attributes {test.attr = #tandem.in_place<-1 over 0>}

// -----

// expected-error @+1 {{expected the number of an input, but got 99999999999}}
func.func private @wrong() attributes {test.attr = #tandem.in_place<0 over 99999999999>}

// -----

func.func @wrong(%a: tensor<4xf32>, %b: tensor<4xf32>) {
  // expected-error @+1 {{'tandem.kernel' op expected 'in_place' to pair one of 2 results with one of 2 inputs, but got result 0 over input 2}}
  %0:2 = tandem.kernel "k" (%a, %b) {
  ^bb0(%x: tensor<4xf32>, %y: tensor<4xf32>):
    tandem.yield %x, %y : tensor<4xf32>, tensor<4xf32>
  } {in_place = #tandem.in_place<0 over 2>} : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @wrong(%a: tensor<4xf32>, %b: tensor<4xf32>) {
  // expected-error @+1 {{'tandem.kernel' op expected 'in_place' to pair one of 2 results with one of 2 inputs, but got result 2 over input 0}}
  %0:2 = tandem.kernel "k" (%a, %b) {
  ^bb0(%x: tensor<4xf32>, %y: tensor<4xf32>):
    tandem.yield %x, %y : tensor<4xf32>, tensor<4xf32>
  } {in_place = #tandem.in_place<1 over 1, 2 over 0>} : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @wrong(%a: tensor<4xf32>, %b: tensor<4xf32>) {
  %0:2 = tandem.kernel "k" (%a, %b) {
  ^bb0(%x: tensor<4xf32>, %y: tensor<4xf32>):
    tandem.yield %x, %y : tensor<4xf32>, tensor<4xf32>
  // expected-error @+1 {{attribute 'in_place' failed to satisfy constraint: Which results of a kernel overwrite which inputs}}
  } {in_place = [array<i64: 0, 0>]} : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @wrong(%a: tensor<4xf32>, %b: tensor<4xf32>) {
  // expected-error @+2 {{'tandem.kernel' op expected 'parts' to cut its 2 results into parts of at least 1, but got array<i64: 1, 2>}}
  // expected-error @+1 {{'tandem.kernel' op expected 'non_temporal' to be rising numbers of its 2 results, but got array<i64: 1, 1>}}
  %0:2 = tandem.kernel "k" (%a, %b) {
  ^bb0(%x: tensor<4xf32>, %y: tensor<4xf32>):
    tandem.yield %x, %y : tensor<4xf32>, tensor<4xf32>
  } {parts = array<i64: 1, 2>, non_temporal = array<i64: 1, 1>} : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @wrong(%a: tensor<4xf32>, %b: tensor<4xf32>) {
  // expected-error @+2 {{'tandem.kernel' op expected 'parts' to have all of its 2 results, but got 1}}
  // expected-error @+1 {{'tandem.kernel' op expected 'non_temporal' to be rising numbers of its 2 results, but got array<i64: 2>}}
  %0:2 = tandem.kernel "k" (%a, %b) {
  ^bb0(%x: tensor<4xf32>, %y: tensor<4xf32>):
    tandem.yield %x, %y : tensor<4xf32>, tensor<4xf32>
  } {parts = array<i64: 1>, non_temporal = array<i64: 2>} : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @wrong(%a: tensor<4xf32>, %b: tensor<4xf32>) {
  // expected-error @+2 {{expected 'parts' to cut its 2 results}}
  // expected-error @+1 {{expected 'non_temporal' to be rising numbers}}
  %0:2 = tandem.kernel "k" (%a, %b) {
  ^bb0(%x: tensor<4xf32>, %y: tensor<4xf32>):
    tandem.yield %x, %y : tensor<4xf32>, tensor<4xf32>
  } {parts = array<i64: 2, 0>, non_temporal = array<i64: -1>} : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// expected-error @+1 {{expected 'rows' of a schedule to be 1 to 32, but got 33}}
func.func private @wrong() attributes {test.attr = #tandem.schedule<rows = 33>}

// -----

// expected-error @+1 {{expected 'vectors' of a schedule to be 1 to 8, but got 0}}
func.func private @wrong() attributes {test.attr = #tandem.schedule<vectors = 0>}

// -----

// expected-error @+1 {{expected 'block' of a schedule to be 1 to 1099511627776, but got -1}}
func.func private @wrong() attributes {test.attr = #tandem.schedule<block = -1>}

// -----

// expected-error @+1 {{expected 'columns' of a schedule to be 1 to 1099511627776}}
func.func private @wrong() attributes {test.attr = #tandem.schedule<columns = many>}

// -----

// expected-error @+1 {{expected 'method' of a schedule to be 'winograd', 'direct', 'windows', 'pixels', 'depthwise', 'pointwise', 'tiles', 'dots', 'gemm', 'wgmma', 'mma', 'simt', 'rows', 'columns', 'transposed', 'pooling', 'indexed' or 'lines', but got 'fft'}}
func.func private @wrong() attributes {test.attr = #tandem.schedule<method = fft>}

// -----

// expected-error @+1 {{but got 'windgrad' (did you mean 'winograd'?)}}
func.func private @wrong() attributes {test.attr = #tandem.schedule<method = "windgrad">}

// -----

// expected-error @+1 {{expected 'method' of a schedule to be a name, as winograd}}
func.func private @wrong() attributes {test.attr = #tandem.schedule<method = 3>}

// -----

// expected-error @+1 {{expected 'packs' of a schedule to be true or false}}
func.func private @wrong() attributes {test.attr = #tandem.schedule<packs = 1>}

// -----

// expected-error @+1 {{expected a schedule to have 'method', 'rows', 'vectors', 'block', 'columns', 'packs', 'ahead', 'block_m', 'block_n', 'block_k', 'warps_m', 'warps_n', 'stages', 'splits', but got 'row' (did you mean 'rows'?)}}
func.func private @wrong() attributes {test.attr = #tandem.schedule<row = 1>}

// -----

// expected-error @+1 {{expected 'rows' of a schedule once, but got it twice}}
func.func private @wrong() attributes {test.attr = #tandem.schedule<rows = 1, rows = 2>}

// -----

// expected-error @+1 {{expected 'splits' of a schedule to be 1 to 64, but got 128}}
func.func private @wrong() attributes {test.attr = #tandem.schedule<chosen(method = mma, splits = 128)>}

// -----

// expected-error @+1 {{expected 'rows' of a schedule once, but got it twice}}
func.func private @wrong() attributes {test.attr = #tandem.schedule<rows = 1, chosen(rows = 2)>}

// -----

// expected-error @+1 {{expected a schedule of one target, but got 'rows' of a CPU and 'stages' of CUDA}}
func.func private @wrong() attributes {test.attr = #tandem.schedule<rows = 1, stages = 2>}

// -----

// expected-error @+1 {{expected a schedule to have 'method'}}
func.func private @wrong() attributes {test.attr = #tandem.schedule<chosen(chosen(rows = 2))>}

// -----

// expected-error @+1 {{expected a schedule to say something}}
func.func private @wrong() attributes {test.attr = #tandem.schedule<>}

// -----

func.func @wrong(%a: tensor<4xf32>, %b: tensor<4xf32>) {
  %0:2 = tandem.kernel "k" (%a, %b) {
  ^bb0(%x: tensor<4xf32>, %y: tensor<4xf32>):
    tandem.yield %x, %y : tensor<4xf32>, tensor<4xf32>
  // expected-error @+1 {{attribute 'schedule' failed to satisfy constraint: How a kernel is computed and cut, and who chose that}}
  } {schedule = {rows = 3}} : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// expected-error @+1 {{expected 'op' of a library's call to be "matmul", "conv2d", "conv2d_input_grad", "conv2d_filter_grad", but got "gemm"}}
func.func private @wrong() attributes {test.attr = #tandem.library_call<op = "gemm", dtype = f32, operands = [0, 1, 2], sizes = [1, 4, 4, 4], lds = [4, 4, 4], batch_strides = [0, 0, 0], transposes = [0, 0]>}

// -----

// expected-error @+1 {{expected 'dtype' of a library's call to be a type of elements, but got 'index'}}
func.func private @wrong() attributes {test.attr = #tandem.library_call<op = "matmul", dtype = index, operands = [0, 1, 2], sizes = [1, 4, 4, 4], lds = [4, 4, 4], batch_strides = [0, 0, 0], transposes = [0, 0]>}

// -----

// expected-error @+1 {{expected 'sizes' of a call of "conv2d" to have 10 numbers, but got 4}}
func.func private @wrong() attributes {test.attr = #tandem.library_call<op = "conv2d", dtype = f32, operands = [0, 1, 2], sizes = [1, 4, 4, 4], lds = [4, 4, 4], batch_strides = [0, 0, 0], transposes = [0, 0]>}

// -----

// expected-error @+1 {{expected 'sizes' of a call of "matmul" to be at least 0, but got -1}}
func.func private @wrong() attributes {test.attr = #tandem.library_call<op = "matmul", dtype = f32, operands = [0, 1, 2], sizes = [-1, 4, 4, 4], lds = [4, 4, 4], batch_strides = [0, 0, 0], transposes = [0, 0]>}

// -----

// expected-error @+1 {{expected 'workspace_bytes' of a library's call from 0 to 2^40, but got -64}}
func.func private @wrong() attributes {test.attr = #tandem.library_call<op = "matmul", dtype = f32, operands = [0, 1, 2], sizes = [1, 4, 4, 4], lds = [4, 4, 4], batch_strides = [0, 0, 0], transposes = [0, 0], workspace_bytes = -64>}

// -----

// expected-error @+1 {{unknown struct parameter name: width}}
func.func private @wrong() attributes {test.attr = #tandem.library_call<op = "matmul", dtype = f32, operands = [0, 1, 2], sizes = [1, 4, 4, 4], lds = [4, 4, 4], batch_strides = [0, 0, 0], transposes = [0, 0], width = 1>}

// -----

func.func @wrong(%a: tensor<4xf32>, %b: tensor<4xf32>) {
  // expected-error @+1 {{'tandem.kernel' op expected 'operands' of its library's call to be below 4, the number of its inputs and results, but got 4}}
  %0:2 = tandem.kernel "k" (%a, %b) {
  ^bb0(%x: tensor<4xf32>, %y: tensor<4xf32>):
    tandem.yield %x, %y : tensor<4xf32>, tensor<4xf32>
  } {library = #tandem.library_call<op = "matmul", dtype = f32, operands = [0, 1, 4], sizes = [1, 4, 4, 4], lds = [4, 4, 4], batch_strides = [0, 0, 0], transposes = [0, 0]>} : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// expected-error @+1 {{expected a plan with 0 <= 'lower_bound_bytes' <= 'peak_bytes' <= 'arena_bytes', but got 16, 128 and 64}}
func.func private @wrong() attributes {test.attr = #tandem.plan<arena_bytes = 64, peak_bytes = 128, lower_bound_bytes = 16>}

// -----

// expected-error @+1 {{expected a plan with 0 <= 'lower_bound_bytes'}}
func.func private @wrong() attributes {test.attr = #tandem.plan<arena_bytes = 64, peak_bytes = 64, lower_bound_bytes = -1>}

// -----

// expected-error @+1 {{expected 'host_bytes' of a plan to be at least 0, but got -1}}
func.func private @wrong() attributes {test.attr = #tandem.plan<arena_bytes = 64, peak_bytes = 64, lower_bound_bytes = 64, host_bytes = -1>}

// -----

// expected-error @+1 {{struct is missing required parameter: lower_bound_bytes}}
func.func private @wrong() attributes {test.attr = #tandem.plan<arena_bytes = 64, peak_bytes = 64>}

// -----

// expected-error @+1 {{unknown struct parameter name: arena_byte}}
func.func private @wrong() attributes {test.attr = #tandem.plan<arena_byte = 64>}

// -----

// expected-error @+1 {{expected 'tandem.plan' to be '#tandem.plan', but got {arena_bytes = 64 : i64}}}
func.func @wrong() attributes {tandem.plan = {arena_bytes = 64}} {
  return
}

// -----

// What a module is compiled for, and what a lowered kernel says of itself.
// CHECK-LABEL: module @target
// CHECK-SAME: tandem.target = #tandem.target<cpu {arch = "x86-64-v3", fast_math, features = ["avx2"], processors = 2 : i64, vector_bits = 256 : i64}>
// CHECK: llvm.func @k
// CHECK-SAME: tandem.kernel = #tandem.kernel_facts<kind = "pointwise", ops = ["tandem.exp"], flops = 16, type = (tensor<4xf32>) -> tensor<4xf32>, items = 1, in_place = <0 over 0>>
module @target attributes {tandem.target = #tandem.target<cpu {processors = 2 : i64, fast_math, arch = "x86-64-v3", features = ["avx2"], vector_bits = 256 : i64}>} {
  llvm.func @k() attributes {tandem.kernel = #tandem.kernel_facts<items = 1, type = (tensor<4xf32>) -> tensor<4xf32>, kind = "pointwise", ops = ["tandem.exp"], flops = 16, in_place = <0 over 0>>}
}

// -----

// CHECK-LABEL: module @unsaid
// CHECK-SAME: tandem.target = #tandem.target<cuda>
module @unsaid attributes {tandem.target = #tandem.target<cuda>} {}

// -----

// expected-error @+1 {{expected the kind of a target to be cpu or cuda, but got 'tpu'}}
module attributes {tandem.target = #tandem.target<tpu>} {}

// -----

// expected-error @+1 {{'tandem.target': unknown field 'procesors' (did you mean 'processors'?); expected 'vector_bits' to be 128, 256 or 512, but got 192 : i64}}
module attributes {tandem.target = #tandem.target<cpu {procesors = 2 : i64, vector_bits = 192 : i64}>} {}

// -----

// A field of the other kind of machine.
// expected-error @+1 {{'tandem.target': unknown field 'vector_bits'}}
module attributes {tandem.target = #tandem.target<cuda {vector_bits = 256 : i64}>} {}

// -----

// expected-error @+1 {{'tandem.target': expected 'libraries' to be one of 'auto', 'yes', 'no', but got "maybe"}}
module attributes {tandem.target = #tandem.target<cuda {libraries = "maybe"}>} {}

// -----

// expected-error @+1 {{expected 'tandem.target' to be '#tandem.target', but got {arch = "sm_90"}}}
module attributes {tandem.target = {arch = "sm_90"}} {}

// -----

// expected-error @+1 {{expected 'flops' of a kernel to be at least 0, but got -1}}
llvm.func @k() attributes {tandem.kernel = #tandem.kernel_facts<kind = "pointwise", ops = [], flops = -1, type = () -> (), items = 1>}

// -----

// expected-error @+1 {{expected 'type' of a kernel to be a function of tensors, but got 'i32'}}
llvm.func @k() attributes {tandem.kernel = #tandem.kernel_facts<kind = "pointwise", ops = [], type = i32, items = 1>}

// -----

// expected-error @+1 {{expected 'in_place' to pair one of 1 results with one of 1 inputs, but got result 0 over input 3}}
llvm.func @k() attributes {tandem.kernel = #tandem.kernel_facts<kind = "pointwise", ops = [], type = (tensor<4xf32>) -> tensor<4xf32>, items = 1, in_place = <0 over 3>>}

// -----

// expected-error @below {{expected a tensor map with as many 'box' as 'sizes', and one of 'strides' less, but got 2 sizes, 1 of a box, 1 strides}}
// expected-error @below {{failed to parse KernelFactsAttr parameter 'tensor_maps'}}
llvm.func @k() attributes {tandem.kernel = #tandem.kernel_facts<kind = "contraction", ops = [], type = () -> (), items = 1, tensor_maps = [#tandem.tensor_map<buffer = 0, element = "f32", sizes = [4, 4], strides = [4], box = [4], swizzle = 128>]>}

// -----

// expected-error @+1 {{expected 'tandem.kernel' to be '#tandem.kernel_facts', but got {items = 1 : i64}}}
llvm.func @k() attributes {tandem.kernel = {items = 1 : i64}}

// -----

// expected-error @+1 {{expected 'tandem.grain' to be an i64 of at least 1, but got 0 : i64}}
llvm.func @k() attributes {tandem.grain = 0 : i64}

// -----

// expected-error @+1 {{'tandem.grain' belongs on a kernel's function}}
module attributes {tandem.grain = 1 : i64} {}

// -----

func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{expected 'tandem.function' to name a function of a module, as @cpu::@exp_0, but got @exp_0}}
  %0 = tandem.kernel "k" (%x) {
  ^bb0(%a: tensor<4xf32>):
    tandem.yield %a : tensor<4xf32>
  } {tandem.function = @exp_0} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{expected 'tandem.regions' to name 0 functions, one for each region of a branch or a loop, but got [@a]}}
  %0 = tandem.kernel "k" (%x) {
  ^bb0(%a: tensor<4xf32>):
    tandem.yield %a : tensor<4xf32>
  } {tandem.regions = [@a]} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'tandem.function' belongs on a kernel}}
  %0 = tandem.exp %x {tandem.function = @cpu::@exp_0} : tensor<4xf32>
  return %0 : tensor<4xf32>
}
