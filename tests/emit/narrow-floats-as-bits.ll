; RUN: tandem-llvm-opt tandem-narrow-floats-as-bits %s | FileCheck %s
; Numbers of 16 bits are chosen among and moved as integers.

; CHECK-LABEL: define void @moves
; CHECK: load <4 x i16>, ptr %p, align 8
; CHECK-NOT: bfloat{{>?}} %
; CHECK: shufflevector <4 x i16>
; CHECK: store <4 x i16> {{.*}}, ptr %q, align 8
; CHECK-NEXT: ret void
define void @moves(ptr %p, ptr %q) {
  %x = load <4 x bfloat>, ptr %p, align 8
  %y = shufflevector <4 x bfloat> %x, <4 x bfloat> poison, <4 x i32> <i32 3, i32 2, i32 1, i32 0>
  store <4 x bfloat> %y, ptr %q, align 8
  ret void
}

; f16 is selected so, but loaded as it is.
; CHECK-LABEL: define half @selects
; CHECK: load half
; CHECK: select i1 %c, i16
define half @selects(i1 %c, ptr %p, half %y) {
  %x = load half, ptr %p, align 2
  %z = select i1 %c, half %x, half %y
  ret half %z
}
