// Random numbers that repeated themselves passed without a word: a state that
// nobody advanced, two draws of one number, a loop with one state.
// RUN: tandem-opt %s -split-input-file -verify-diagnostics -tandem-check-random

module @never_written attributes {tandem.phase = "functionalize"} {
  func.func @graph(
      %x: tensor<4xf32> {tandem.role = #tandem.role<input "x">},
      %s: tensor<2xi64> {tandem.role = #tandem.role<state "random" {init = {kind = "seed"}}>})
      -> (tensor<4xf32> {tandem.role = #tandem.role<output "y">}) {
    // expected-error@+1 {{'tandem.dropout' draws from the state 'random', which the program never writes: every step would draw the same numbers; write 'random' plus [0, 1] to it once}}
    %y = tandem.dropout %x, %s draw 0 p 5.000000e-01 {training} : tensor<4xf32>
    return %y : tensor<4xf32>
  }
}

// -----

// random + random is 0 for the seed 0.
module @doubled attributes {tandem.phase = "functionalize"} {
  func.func @graph(
      %s: tensor<2xi64> {tandem.role = #tandem.role<state "random" {init = {kind = "seed"}}>})
      -> (tensor<4xf32> {tandem.role = #tandem.role<output "y">},
          tensor<2xi64> {tandem.role = #tandem.role<update of "random">}) {
    // expected-error@+1 {{'tandem.random_normal' draws from the state 'random', which the program writes and does not change}}
    %y = tandem.random_normal %s draw 0 : tensor<4xf32>
    %next = tandem.add %s, %s : tensor<2xi64>
    return %y, %next : tensor<4xf32>, tensor<2xi64>
  }
}

// -----

// Both ops are named; a third of another number is none of them.
module @twice attributes {tandem.phase = "functionalize"} {
  func.func @graph(
      %x: tensor<4xf32> {tandem.role = #tandem.role<input "x">},
      %s: tensor<2xi64> {tandem.role = #tandem.role<state "random" {init = {kind = "seed"}}>})
      -> (tensor<4xf32> {tandem.role = #tandem.role<output "y">},
          tensor<2xi64> {tandem.role = #tandem.role<update of "random">}) {
    // expected-note@+1 {{the other one is here}}
    %a = tandem.dropout %x, %s draw 0 p 5.000000e-01 {training} : tensor<4xf32>
    %b = tandem.dropout %a, %s draw 1 p 5.000000e-01 {training} : tensor<4xf32>
    // expected-error@+1 {{'tandem.dropout' has draw 0, as 'tandem.dropout' at check-random.mlir:41:10 of the same state: both would draw the same numbers}}
    %c = tandem.dropout %b, %s draw 0 p 1.000000e-01 {training} : tensor<4xf32>
    %step = tandem.constant dense<[0, 1]> : tensor<2xi64>
    %next = tandem.add %s, %step : tensor<2xi64>
    return %c, %next : tensor<4xf32>, tensor<2xi64>
  }
}

// -----

// Every iteration of a scan dropped the same elements.
module @loop attributes {tandem.phase = "functionalize"} {
  func.func @graph(
      %x: tensor<4xf32> {tandem.role = #tandem.role<input "x">},
      %s: tensor<2xi64> {tandem.role = #tandem.role<state "random" {init = {kind = "seed"}}>})
      -> (tensor<4xf32> {tandem.role = #tandem.role<output "y">},
          tensor<2xi64> {tandem.role = #tandem.role<update of "random">}) {
    %y = tandem.scan 3 carries(%x) inputs() constants(%s) {
    ^bb0(%h: tensor<4xf32>, %r: tensor<2xi64>):
      // expected-error@+1 {{'tandem.dropout' draws the same numbers in each iteration: carry the state, and add [0, 1] to it in the loop}}
      %d = tandem.dropout %h, %r draw 0 p 5.000000e-01 {training} : tensor<4xf32>
      tandem.yield %d : tensor<4xf32>
    } : (tensor<4xf32>, tensor<2xi64>) -> tensor<4xf32>
    %step = tandem.constant dense<[0, 1]> : tensor<2xi64>
    %next = tandem.add %s, %step : tensor<2xi64>
    return %y, %next : tensor<4xf32>, tensor<2xi64>
  }
}

// -----

// What is carried, and advanced, draws anew; so does what the caller gives.
module @fine attributes {tandem.phase = "functionalize"} {
  func.func @graph(
      %x: tensor<4xf32> {tandem.role = #tandem.role<input "x">},
      %given: tensor<2xi64> {tandem.role = #tandem.role<input "given">},
      %s: tensor<2xi64> {tandem.role = #tandem.role<state "random" {init = {kind = "seed"}}>})
      -> (tensor<4xf32> {tandem.role = #tandem.role<output "y">},
          tensor<2xi64> {tandem.role = #tandem.role<update of "random">}) {
    %step = tandem.constant dense<[0, 1]> : tensor<2xi64>
    %y:2 = tandem.scan 3 carries(%x, %s) inputs() constants(%step) {
    ^bb0(%h: tensor<4xf32>, %r: tensor<2xi64>, %one: tensor<2xi64>):
      %d = tandem.dropout %h, %r draw 0 p 5.000000e-01 {training} : tensor<4xf32>
      %more = tandem.add %r, %one : tensor<2xi64>
      tandem.yield %d, %more : tensor<4xf32>, tensor<2xi64>
    } : (tensor<4xf32>, tensor<2xi64>, tensor<2xi64>) -> (tensor<4xf32>, tensor<2xi64>)
    %z = tandem.dropout %y#0, %given draw 0 p 5.000000e-01 {training} : tensor<4xf32>
    return %z, %y#1 : tensor<4xf32>, tensor<2xi64>
  }
}

// -----

// A constant seed and a dropout of inference are said.
module @warned attributes {tandem.phase = "functionalize"} {
  func.func @graph(
      %x: tensor<4xf32> {tandem.role = #tandem.role<input "x">},
      %s: tensor<2xi64> {tandem.role = #tandem.role<state "random" {init = {kind = "constant", value = 0}}>})
      -> (tensor<4xf32> {tandem.role = #tandem.role<output "y">},
          tensor<2xi64> {tandem.role = #tandem.role<update of "random">}) {
    // expected-warning@+1 {{'tandem.dropout' without 'training' drops nothing}}
    %a = tandem.dropout %x, %s draw 0 p 5.000000e-01 : tensor<4xf32>
    // expected-warning@+1 {{'tandem.dropout' draws from the state 'random', which begins with the same numbers in every run, whatever --seed says; an initial value of kind 'seed' follows it}}
    %b = tandem.dropout %a, %s draw 0 p 5.000000e-01 {training} : tensor<4xf32>
    %step = tandem.constant dense<[0, 1]> : tensor<2xi64>
    %next = tandem.add %s, %step : tensor<2xi64>
    return %b, %next : tensor<4xf32>, tensor<2xi64>
  }
}
