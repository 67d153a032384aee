; RUN: tandem-llvm-opt tandem-single-lane-stores %s | FileCheck %s
; A masked store of one lane is a store of that element; LLVM's own version of
; it stored too many bytes of a vector that is truncated.
target triple = "x86_64-unknown-linux-gnu"

; CHECK-LABEL: define void @lane
; CHECK: %[[PLACE:[0-9]+]] = getelementptr i8, ptr %p, i64 2
; CHECK: %[[ELEMENT:[0-9]+]] = extractelement <4 x i8> %x, i64 2
; CHECK: store i8 %[[ELEMENT]], ptr %[[PLACE]], align 1
; CHECK-NOT: masked.store
; CHECK: ret void
define void @lane(ptr %p, <4 x i8> %x) {
  call void @llvm.masked.store.v4i8.p0(<4 x i8> %x, ptr align 1 %p, <4 x i1> <i1 false, i1 poison, i1 true, i1 false>)
  ret void
}

; CHECK-LABEL: define void @lanes
; CHECK: masked.store
; CHECK: masked.store
define void @lanes(ptr %p, <4 x i8> %x, <4 x i1> %mask) {
  call void @llvm.masked.store.v4i8.p0(<4 x i8> %x, ptr align 1 %p, <4 x i1> <i1 true, i1 false, i1 true, i1 false>)
  call void @llvm.masked.store.v4i8.p0(<4 x i8> %x, ptr align 1 %p, <4 x i1> %mask)
  ret void
}
