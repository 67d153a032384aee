; RUN: tandem-llvm-opt tandem-mark-non-temporal-stores %s | FileCheck %s
; Stores are ordinary ones, with a mark that is no access group of a loop.

; CHECK-LABEL: define void @stores
; CHECK: store float %x, ptr %p, align 4, !llvm.access.group ![[MARK:[0-9]+]]
; CHECK: store float %x, ptr %q, align 4{{$}}
; CHECK-NOT: !nontemporal
; CHECK: ![[MARK]] = distinct !{}
define void @stores(ptr %p, ptr %q, float %x) {
  store float %x, ptr %p, align 4, !nontemporal !0
  store float %x, ptr %q, align 4
  ret void
}

!0 = !{i32 1}
