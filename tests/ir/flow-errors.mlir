// RUN: tandem-opt %s -split-input-file -verify-diagnostics

func.func @f(%c: tensor<i1>, %x: tensor<4xf32>) {
  // expected-error@+1 {{expected the arguments of the first region to have types ('tensor<4xf32>'), but got ()}}
  %y = tandem.if %c (%x) then {
    %k = tandem.constant dense<0.0> : tensor<4xf32>
    tandem.yield %k : tensor<4xf32>
  } else {
  ^bb0(%a: tensor<4xf32>):
    tandem.yield %a : tensor<4xf32>
  } : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%c: tensor<i1>, %x: tensor<4xf32>) {
  // expected-error@+1 {{expected what the second region yields to have types ('tensor<4xf32>'), but got ('tensor<4xf32>', 'tensor<4xf32>')}}
  %y = tandem.if %c (%x) then {
  ^bb0(%a: tensor<4xf32>):
    tandem.yield %a : tensor<4xf32>
  } else {
  ^bb0(%a: tensor<4xf32>):
    tandem.yield %a, %a : tensor<4xf32>, tensor<4xf32>
  } : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%c: tensor<4xi1>, %x: tensor<4xf32>) {
  // expected-error@+1 {{operand #0 must be one bool}}
  %y = "tandem.if"(%c, %x) ({
  ^bb0(%a: tensor<4xf32>):
    tandem.yield %a : tensor<4xf32>
  }, {
  ^bb0(%a: tensor<4xf32>):
    tandem.yield %a : tensor<4xf32>
  }) : (tensor<4xi1>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%c: tensor<i1>, %x: tensor<4xf32>) {
  // expected-error@+1 {{expected each region to end with 'tandem.yield'}}
  %y = "tandem.if"(%c, %x) ({
  ^bb0(%a: tensor<4xf32>):
  }, {
  ^bb0(%a: tensor<4xf32>):
    tandem.yield %a : tensor<4xf32>
  }) : (tensor<i1>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

// Regions see their arguments alone.
func.func @f(%c: tensor<i1>, %x: tensor<4xf32>) {
  // expected-note@+1 {{required by region isolation constraints}}
  %y = tandem.if %c () then {
    // expected-error@+1 {{using value defined outside the region}}
    tandem.yield %x : tensor<4xf32>
  } else {
    tandem.yield %x : tensor<4xf32>
  } : () -> tensor<4xf32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{expected a length within [0, 1099511627776], but got -1}}
  %y = tandem.scan -1 carries(%x) inputs() constants() {
  ^bb0(%a: tensor<4xf32>):
    tandem.yield %a : tensor<4xf32>
  } : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{expected input #0 to have 5 slices along dimension 0, but got 'tensor<4xf32>'}}
  %y = tandem.scan 5 carries() inputs(%x) constants() {
  ^bb0(%a: tensor<f32>):
    tandem.yield %a : tensor<f32>
  } : (tensor<4xf32>) -> tensor<5xf32>
  return
}

// -----

func.func @f(%x: tensor<f32>) {
  // expected-error@+1 {{expected input #0 to have 5 slices along dimension 0, but got 'tensor<f32>'}}
  %y = tandem.scan 5 carries() inputs(%x) constants() {
  ^bb0(%a: tensor<f32>):
    tandem.yield %a : tensor<f32>
  } : (tensor<f32>) -> tensor<5xf32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{expected the body's arguments to have types ('tensor<f32>'), but got ('tensor<4xf32>')}}
  %y = tandem.scan 4 carries() inputs(%x) constants() {
  ^bb0(%a: tensor<4xf32>):
    tandem.yield %a : tensor<4xf32>
  } : (tensor<4xf32>) -> tensor<4x4xf32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{expected the body to yield at least 1 values, one for each carry, but got 0}}
  %y = tandem.scan 4 carries(%x) inputs() constants() {
  ^bb0(%a: tensor<4xf32>):
    tandem.yield
  } : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{expected the carries that the body yields to have types ('tensor<4xf32>'), but got ('tensor<f32>')}}
  %y = tandem.scan 4 carries(%x) inputs() constants() {
  ^bb0(%a: tensor<4xf32>):
    %s = tandem.reduce_sum %a over [0] : tensor<4xf32> -> tensor<f32>
    tandem.yield %s : tensor<f32>
  } : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{expected the results to have types ('tensor<4xf32>', 'tensor<3x4xf32>'), but got ('tensor<4xf32>', 'tensor<4x4xf32>')}}
  %y, %s = tandem.scan 3 carries(%x) inputs() constants() {
  ^bb0(%a: tensor<4xf32>):
    tandem.yield %a, %a : tensor<4xf32>, tensor<4xf32>
  } : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4x4xf32>)
  return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{has no stack of 1099511627776 slices of type 'tensor<4xf32>'}}
  %y, %s = tandem.scan 1099511627776 carries(%x) inputs() constants() {
  ^bb0(%a: tensor<4xf32>):
    tandem.yield %a, %a : tensor<4xf32>, tensor<4xf32>
  } : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4x4xf32>)
  return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{expected what the condition yields to have types ('tensor<i1>'), but got ('tensor<4xf32>')}}
  %y = tandem.while carries(%x) constants() condition {
  ^bb0(%a: tensor<4xf32>):
    tandem.yield %a : tensor<4xf32>
  } body {
  ^bb0(%a: tensor<4xf32>):
    tandem.yield %a : tensor<4xf32>
  } : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%x: tensor<i1>) {
  // expected-error@+1 {{expected what the body yields to have types ('tensor<i1>'), but got ()}}
  %y = tandem.while carries(%x) constants() condition {
  ^bb0(%a: tensor<i1>):
    tandem.yield %a : tensor<i1>
  } body {
  ^bb0(%a: tensor<i1>):
    tandem.yield
  } : (tensor<i1>) -> tensor<i1>
  return
}

// -----

func.func @f(%x: tensor<i1>) {
  // expected-error@+1 {{expected at least one carry}}
  tandem.while carries() constants(%x) condition {
  ^bb0(%a: tensor<i1>):
    tandem.yield %a : tensor<i1>
  } body {
  ^bb0(%a: tensor<i1>):
    tandem.yield
  } : (tensor<i1>) -> ()
  return
}

// -----

func.func @f(%c: tensor<i1>, %x: tensor<4xf32>) {
  // expected-note@+1 {{the region's op is here}}
  %y = tandem.if %c (%x) then {
  ^bb0(%a: tensor<4xf32>):
    %r = tandem.make_ref %a : tensor<4xf32>
    // expected-error@+1 {{takes refs in a region of 'tandem.if'}}
    %v = tandem.custom_vjp "f" (%a) refs(%r) forward {
    ^bb0(%i: tensor<4xf32>, %j: !tandem.ref<4xf32>):
      tandem.yield %i : tensor<4xf32>
    } backward {
    ^bb0(%d: tensor<4xf32>, %j: !tandem.ref<4xf32>):
      tandem.yield %d : tensor<4xf32>
    } : (tensor<4xf32>), (!tandem.ref<4xf32>) -> tensor<4xf32>
    tandem.yield %v : tensor<4xf32>
  } else {
  ^bb0(%a: tensor<4xf32>):
    tandem.yield %a : tensor<4xf32>
  } : (tensor<4xf32>) -> tensor<4xf32>
  return
}
