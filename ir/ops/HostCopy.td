//===- HostCopy.td - copies to the host's memory and back ------------------===//
#ifndef TANDEM_IR_OPS_HOSTCOPY
#define TANDEM_IR_OPS_HOSTCOPY

include "ir/OpBase.td"
include "ir/Attributes.td"

/// A copy between a device's memory and the host's. It is no kernel's business:
/// nothing fuses with it.
class HostCopyOp<string mnemonic> : Tandem_PureOp<mnemonic, [NotDifferentiable,
    SameOperandsAndResultType, DeclareOpInterfaceMethods<CostOpInterface, ["getFlops"]>,
    DeclareOpInterfaceMethods<ReferenceOpInterface>]> {
  let arguments = (ins AnyTensor_:$x, OptionalAttr<BufferAttr>:$buffer, OptionalAttr<ArrayAttr>:$needs);
  let results = (outs AnyTensor_:$y);
  let assemblyFormat = "$x attr-dict `:` type($y)";
  let extraClassDefinition = [{
    ::tandem::OpClass $cppClass::getOpClass() { return ::tandem::OpClass::Program; }
    int64_t $cppClass::getFlops() { return 0; }
  }];
}

def ToHostOp : HostCopyOp<"to_host"> {
  let summary = "The same elements in the host's memory";
  let description = [{
    What is saved for the backward and tagged `tandem.offload` leaves the device
    by it. Only `to_device`, or the program's result, can be its user. `plan` puts it
    into a kernel of its own, in whose order it stands where the copy is
    expected to have ended; its result's arena is the program's memory of the
    host. In a lowered program it stands by itself, `buffer` and `needs` as of a
    launch.
  }];
}

def ToDeviceOp : HostCopyOp<"to_device"> {
  let summary = "The same elements in the device's memory";
  let description = [{
    The way back of what `to_host`, or an argument in the host's memory, holds. In
    the order of a plan it stands where the copy is expected to begin.
  }];
}

#endif
