//===- Attributes.td - roles, buffers, enums -------------------------------===//
#ifndef TANDEM_IR_ATTRIBUTES
#define TANDEM_IR_ATTRIBUTES

include "ir/OpBase.td"

class Tandem_Attr<string name, string mnem> : AttrDef<Tandem_Dialect, name> {
  let mnemonic = mnem;
}

def RoleKind : I32EnumAttr<"RoleKind", "what an argument or result is for", [
  I32EnumAttrCase<"Input", 0, "input">, I32EnumAttrCase<"Param", 1, "param">,
  I32EnumAttrCase<"State", 2, "state">, I32EnumAttrCase<"Output", 3, "output">,
  I32EnumAttrCase<"Saved", 4, "saved">, I32EnumAttrCase<"Cotangent", 5, "cotangent">,
  I32EnumAttrCase<"Grad", 6, "grad">, I32EnumAttrCase<"Update", 7, "update">,
  I32EnumAttrCase<"Prepared", 8, "prepared">]> {
  let cppNamespace = "::tandem";
  let genSpecializedAttr = 0;
}

def RoleAttr : Tandem_Attr<"Role", "role"> {
  let summary = "What an argument or result of a graph function is for";
  let description = [{
    `#tandem.role<param "w" {requires_grad}>` or, for the kinds that belong to
    another value, `#tandem.role<grad of "w">`. Links are by name; the cotangent
    of an input's new value is that of `"update of x"`, the new value of a
    cotangent the update of `"cotangent of o"`. Properties:

    - input, param, state: `requires_grad`; `init` (param, state); `high` (integer
      input: values are in [0, high)); `low` (values are in [low, high):
      those below 0 count from the end); `ranges` (the same of slices of it,
      `ir/IndexRange.h`); `ignored` (one value beside them, which means no
      class); `grad_type` (the gradient's elements);
      `alias` (what the caller's tensor shares storage with); `freed` (its
      storage is empty at the call); `metadata`, `storage` (what the handle
      shows afterwards, of its own or of another storage); `resize` (the
      elements of its storage afterwards); `pass = "backward"` (the value as the
      backward finds it).
    - output: `no_grad` (gets no cotangent), `alias`, `part_of` (the op that made
      it together with others); in `@evaluate` `inputs` (those that it follows
      from), `rows` (`"each"`: row i of it from row i of the inputs; `"mean"`: the
      mean over rows of what follows from one), `counted` (of a mean: the input
      whose `ignored` elements do not count).
    - update: `pass = "backward"`, `visible` (gradients flow through a write),
      `in_place`.
    - grad, update: `needs` (a list of lists of cotangents, each of which must
      have a defined one; else there is none).
    - saved: `reason`, `alias` (it is the storage of an output).
    - prepared (none): what `@prepare` computes of params and states alone, and
      `@evaluate`, `@step` or `@accumulate` takes.
    - any: `sharding` (for each dimension of the global value the axes of the mesh
      over which it is cut, outermost first: `[["data"], []]`; without it, whole on
      every rank).
    - `unchecked` (saved values, and what is saved by reference: may be
      overwritten), `where` (an op and its location, for messages).

    An alias is `{of = "x", views = [...]}`, or with `output` instead of `of`; a
    view is an op's attributes with its name, `{op = "permute", permutation =
    array<i64: 1, 0>}`.
  }];
  let parameters = (ins "RoleKind":$kind, "::mlir::StringAttr":$name,
                        "::mlir::DictionaryAttr":$properties);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let builders = [
    AttrBuilder<(ins "RoleKind":$kind, "::llvm::StringRef":$name)>,
  ];
  let extraClassDeclaration = [{
    /// True for cotangent, grad and update, printed `kind of "name"`.
    static bool belongs(RoleKind kind) {
      return kind == RoleKind::Cotangent || kind == RoleKind::Grad ||
             kind == RoleKind::Update;
    }
    /// Names of properties.
    static constexpr ::llvm::StringLiteral kRequiresGrad = "requires_grad";
    static constexpr ::llvm::StringLiteral kInit = "init";
    static constexpr ::llvm::StringLiteral kHigh = "high";
    static constexpr ::llvm::StringLiteral kLow = "low";
    static constexpr ::llvm::StringLiteral kIgnored = "ignored";
    static constexpr ::llvm::StringLiteral kGradType = "grad_type";
    static constexpr ::llvm::StringLiteral kAlias = "alias";
    static constexpr ::llvm::StringLiteral kFreed = "freed";
    static constexpr ::llvm::StringLiteral kMetadata = "metadata";
    static constexpr ::llvm::StringLiteral kStorage = "storage";
    static constexpr ::llvm::StringLiteral kResize = "resize";
    static constexpr ::llvm::StringLiteral kPass = "pass";
    static constexpr ::llvm::StringLiteral kNoGrad = "no_grad";
    static constexpr ::llvm::StringLiteral kPartOf = "part_of";
    static constexpr ::llvm::StringLiteral kInputs = "inputs";
    static constexpr ::llvm::StringLiteral kRows = "rows";
    static constexpr ::llvm::StringLiteral kCounted = "counted";
    static constexpr ::llvm::StringLiteral kVisible = "visible";
    static constexpr ::llvm::StringLiteral kInPlace = "in_place";
    static constexpr ::llvm::StringLiteral kNeeds = "needs";
    static constexpr ::llvm::StringLiteral kReason = "reason";
    static constexpr ::llvm::StringLiteral kUnchecked = "unchecked";
    static constexpr ::llvm::StringLiteral kWhere = "where";
    static constexpr ::llvm::StringLiteral kHost = "host";
    static constexpr ::llvm::StringLiteral kSharding = "sharding";

    bool has(::llvm::StringRef property) const {
      return getProperties().contains(property);
    }
    /// A property of the type T; null where there is none.
    template <typename T> T getProperty(::llvm::StringRef property) const {
      return getProperties().getAs<T>(property);
    }
    /// The property `sharding`; null where the value is whole on every rank.
    ::mlir::ArrayAttr getSharding() const {
      return getProperty<::mlir::ArrayAttr>(kSharding);
    }
    /// What the value shares storage with; false where nothing is said.
    Alias getAlias() const;
    /// This role with one property added or replaced.
    RoleAttr with(::llvm::StringRef property, ::mlir::Attribute value) const;
    RoleAttr withUnit(::llvm::StringRef property) const;
    RoleAttr without(::llvm::StringRef property) const;
    /// 'param "w"' or 'grad of "w"', for messages.
    std::string str() const;
  }];
}

def BufferPlace : I32EnumAttr<"BufferPlace", "where a planned value lives", [
  I32EnumAttrCase<"Arena", 0, "arena">, I32EnumAttrCase<"Argument", 1, "argument">,
  I32EnumAttrCase<"Result", 2, "result">, I32EnumAttrCase<"Constant", 3, "constant">]> {
  let cppNamespace = "::tandem";
  let genSpecializedAttr = 0;
}

def BufferAttr : Tandem_Attr<"Buffer", "buffer"> {
  let summary = "Where a planned value lives";
  let description = [{
    `#tandem.buffer<arena 4096>`: at byte 4096 of the program's arena;
    `#tandem.buffer<argument 2>`: in the storage of the program's third argument;
    `#tandem.buffer<result 0>`: in that of its first result;
    `#tandem.buffer<constant 64>`: at byte 64 of the constants.
  }];
  let parameters = (ins "BufferPlace":$place, "int64_t":$position);
  let hasCustomAssemblyFormat = 1;
}

// Of a kernel. The property of the same name of a role (RoleAttr::kInPlace) is of
// a program: an update that lies where the value lay that it replaces.
def InPlaceAttr : Tandem_Attr<"InPlace", "in_place"> {
  let summary = "Which results of a kernel overwrite which inputs";
  let description = [{
    `#tandem.in_place<0 over 2, 1 over 3>`: result 0 is computed where input 2 lies,
    result 1 where input 3 does. No result or input stands in two pairs.
  }];
  let parameters = (ins ArrayRefParameter<"::tandem::InPlacePair">:$pairs);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Checks the pairs against an op with so many results and inputs.
    ::llvm::LogicalResult verifyBounds(
        ::llvm::function_ref<::mlir::InFlightDiagnostic()> error,
        unsigned results, unsigned inputs) const;
  }];
}

// The names of the rows in the tables of methods (passes/lower/common/Method.h),
// once for all targets, so that a misspelt one is an error where it stands; which
// rows a kernel has, and which of them compute it, the tables say.
def ScheduleMethod : I32EnumAttr<"ScheduleMethod", "how a kernel is computed", [
  I32EnumAttrCase<"Winograd", 0, "winograd">, I32EnumAttrCase<"Direct", 1, "direct">,
  I32EnumAttrCase<"Windows", 2, "windows">, I32EnumAttrCase<"Pixels", 3, "pixels">,
  I32EnumAttrCase<"Depthwise", 4, "depthwise">, I32EnumAttrCase<"Pointwise", 5, "pointwise">,
  I32EnumAttrCase<"Tiles", 6, "tiles">, I32EnumAttrCase<"Dots", 7, "dots">,
  I32EnumAttrCase<"Gemm", 8, "gemm">, I32EnumAttrCase<"Wgmma", 9, "wgmma">,
  I32EnumAttrCase<"Mma", 10, "mma">, I32EnumAttrCase<"Simt", 11, "simt">,
  I32EnumAttrCase<"Rows", 12, "rows">, I32EnumAttrCase<"Columns", 13, "columns">,
  I32EnumAttrCase<"Transposed", 14, "transposed">, I32EnumAttrCase<"Pooling", 15, "pooling">,
  I32EnumAttrCase<"Indexed", 16, "indexed">, I32EnumAttrCase<"Lines", 17, "lines">]> {
  let cppNamespace = "::tandem";
  let genSpecializedAttr = 0;
}

def ScheduleAttr : Tandem_Attr<"Schedule", "schedule"> {
  let summary = "How a kernel is computed and cut, and who chose that";
  let description = [{
    `#tandem.schedule<rows = 6, chosen(method = gemm, vectors = 2, block = 96)>`:
    what stands in `chosen(...)` the tables of the target chose
    (tandem-choose-methods), the rest somebody asked for. `method` is a row of the
    target's table of methods (`passes/lower/common/Method.h`; `tandem inspect
    --methods` lists those of a kernel). The keys, their ranges and the targets
    that have them are the rows of `ir/Schedule.cpp`; what they count is in
    `passes/lower/common/ScheduleOverride.h`. Code is made of what a schedule says,
    and the tables complete one that says less than its method has. No bit of a
    result depends on the numbers for CPUs; it may on `method`, and for CUDA on
    `splits` and on `block_n` of attention.
  }];
  // Sorted by key; no key twice.
  let parameters = (ins ArrayRefParameter<"::tandem::ScheduleEntry">:$entries);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// What it says of a key; of a flag 0 or 1.
    std::optional<int64_t> valueOf(::tandem::ScheduleKey key) const;
    std::optional<::tandem::ScheduleMethod> getMethod() const;
    /// Without what the tables chose; null if nothing is left.
    ScheduleAttr getAsked() const;
    /// The same values, whoever chose them: what code is made of.
    ScheduleAttr withoutChoosers() const;
  }];
}

def LibraryCallAttr : Tandem_Attr<"LibraryCall", "library_call"> {
  let summary = "The call of a vendor's library that computes what a kernel does";
  let description = [{
    `#tandem.library_call<op = "matmul", dtype = f32, operands = [0, 1, 2], sizes =
    [1, 5, 7, 6], lds = [6, 7, 7], batch_strides = [0, 0, 0], transposes = [0, 0]>`.
    `operands` are positions among the inputs, then the results; the other numbers
    are those of `runtime/artifact/LibraryCall.h`. `tf32` and `relu` may be true.
    `workspace_bytes` is what the call asks for beside its operands, and
    `workspace`, once it has a place, its offset in the arena.
  }];
  let parameters = (ins "::mlir::StringAttr":$op, "::mlir::Type":$dtype,
                        OptionalParameter<"::mlir::BoolAttr">:$tf32,
                        OptionalParameter<"::mlir::BoolAttr">:$relu,
                        "::mlir::DenseI64ArrayAttr":$operands, "::mlir::DenseI64ArrayAttr":$sizes,
                        OptionalParameter<"::mlir::DenseI64ArrayAttr">:$lds,
                        OptionalParameter<"::mlir::DenseI64ArrayAttr">:$batch_strides,
                        OptionalParameter<"::mlir::DenseI64ArrayAttr">:$transposes,
                        OptionalParameter<"::mlir::DenseI64ArrayAttr">:$strides,
                        OptionalParameter<"::mlir::DenseI64ArrayAttr">:$padding,
                        OptionalParameter<"::mlir::DenseI64ArrayAttr">:$dilation,
                        DefaultValuedParameter<"int64_t", "0">:$workspace_bytes,
                        DefaultValuedParameter<"int64_t", "-1">:$workspace);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// This call with its workspace at `offset` of the arena.
    LibraryCallAttr at(int64_t offset) const;
    /// Checks the operands against an op with so many inputs and results.
    ::llvm::LogicalResult verifyBounds(
        ::llvm::function_ref<::mlir::InFlightDiagnostic()> error,
        unsigned values) const;
  }];
}

def PlanAttr : Tandem_Attr<"Plan", "plan"> {
  let summary = "The memory that a planned program needs of its own";
  let description = [{
    `#tandem.plan<arena_bytes = 4096, peak_bytes = 4096, lower_bound_bytes =
    2048>`: the size of the arena, the most that is in use of it at once, the same
    without alignment. `host_bytes` is the host's memory, where copies lead there.
  }];
  let parameters = (ins "int64_t":$arena_bytes, "int64_t":$peak_bytes,
                        "int64_t":$lower_bound_bytes,
                        DefaultValuedParameter<"int64_t", "0">:$host_bytes);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def TargetKind : I32EnumAttr<"TargetKind", "a kind of machine", [
  I32EnumAttrCase<"Cpu", 0, "cpu">, I32EnumAttrCase<"Cuda", 1, "cuda">]> {
  let cppNamespace = "::tandem";
  let genSpecializedAttr = 0;
}

def TargetAttr : Tandem_Attr<"Target", "target"> {
  let summary = "The machine that a module is compiled for";
  let description = [{
    `#tandem.target<cpu {arch = "x86-64-v3", features = ["avx2", "fma"],
    vector_bits = 256 : i64}>` or `#tandem.target<cuda {arch = "sm_90"}>`. A field
    that is absent is not known, and passes take the usual. Of both kinds: `arch`,
    LLVM's name of the processor or NVIDIA's of the architecture. Of `cpu`:
    `features`, the instruction sets that code may use; `vector_bits`, the width
    of the widest registers; `last_cache_bytes`, of the last cache before memory;
    `processors`, of the machine; `fast_math`; `winograd`. Of `cuda`:
    `matmul_precision`; `libraries`; `products` (what they are made of: set by
    tests and measurements alone). Whether LLVM knows the processor and the
    features is checked before code is made (compiler/Target.h).
  }];
  let parameters = (ins "TargetKind":$kind, "::mlir::DictionaryAttr":$fields);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    static constexpr ::llvm::StringLiteral kArch = "arch";
    static constexpr ::llvm::StringLiteral kFeatures = "features";
    static constexpr ::llvm::StringLiteral kVectorBits = "vector_bits";
    static constexpr ::llvm::StringLiteral kLastCacheBytes = "last_cache_bytes";
    static constexpr ::llvm::StringLiteral kProcessors = "processors";
    static constexpr ::llvm::StringLiteral kFastMath = "fast_math";
    static constexpr ::llvm::StringLiteral kWinograd = "winograd";
    static constexpr ::llvm::StringLiteral kMatmulPrecision = "matmul_precision";
    static constexpr ::llvm::StringLiteral kLibraries = "libraries";
    static constexpr ::llvm::StringLiteral kProducts = "products";

    bool isCpu() const { return getKind() == TargetKind::Cpu; }
    bool isCuda() const { return getKind() == TargetKind::Cuda; }
    /// Empty, 0, false: not said.
    ::llvm::StringRef getArch() const { return text(kArch); }
    ::llvm::SmallVector<::llvm::StringRef> getFeatures() const;
    bool hasFeature(::llvm::StringRef feature) const;
    int64_t getVectorBits() const { return number(kVectorBits); }
    int64_t getLastCacheBytes() const { return number(kLastCacheBytes); }
    int64_t getProcessors() const { return number(kProcessors); }
    bool getFastMath() const { return getFields().contains(kFastMath); }
    ::llvm::StringRef getWinograd() const { return text(kWinograd); }
    ::llvm::StringRef getMatmulPrecision() const { return text(kMatmulPrecision); }
    ::llvm::StringRef getLibraries() const { return text(kLibraries); }
    ::llvm::StringRef getProducts() const { return text(kProducts); }

    /// This target with one field added or replaced; not verified.
    TargetAttr with(::llvm::StringRef field, ::mlir::Attribute value) const;

    /// The target of the module around `op`; null if there is none.
    static TargetAttr of(::mlir::Operation *op);

  private:
    ::llvm::StringRef text(::llvm::StringRef field) const;
    int64_t number(::llvm::StringRef field) const;

  public:
  }];
}

def MeshAttr : Tandem_Attr<"Mesh", "mesh"> {
  let summary = "The ranks that a module is compiled for";
  let description = [{
    `#tandem.mesh<data = 4, tensor = 2>`: named axes with their sizes. Ranks are
    numbered row-major, the last axis fastest. The ranks that differ in some axes
    alone are a *group* over these; its order is row-major over the axes as they are
    listed.
  }];
  let parameters = (ins ArrayRefParameter<"::tandem::MeshAxis">:$axes);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The most ranks that a mesh has.
    static constexpr int64_t kMaxRanks = int64_t(1) << 20;
    /// The mesh of the module around `op`; null if there is none.
    static MeshAttr of(::mlir::Operation *op);

    /// Of all axes.
    int64_t getNumRanks() const;
    /// The size of an axis; nothing if there is none of the name.
    std::optional<int64_t> getSize(::llvm::StringRef axis) const;
    /// The ranks of a group over `axes`, strings that are axes of this mesh.
    int64_t groupSize(::mlir::ArrayAttr axes) const;
    /// The ranks of the group over `axes` that `rank` is in, in its order.
    ::llvm::SmallVector<int64_t> groupOf(int64_t rank, ::mlir::ArrayAttr axes) const;
    /// The place of `rank` in its group over `axes`.
    int64_t positionOf(int64_t rank, ::mlir::ArrayAttr axes) const;
    /// Fails unless `axes` has at least one axis and each once, all of this mesh.
    ::llvm::LogicalResult verifyAxes(
        ::llvm::function_ref<::mlir::InFlightDiagnostic()> error,
        ::mlir::ArrayAttr axes) const;
  }];
}

def TensorMapAttr : Tandem_Attr<"TensorMap", "tensor_map"> {
  let summary = "A tensor in a buffer of a launch, as bulk copies of a GPU see it";
  let description = [{
    `#tandem.tensor_map<buffer = 0, offset = 0, element = "bf16", sizes = [64, 32],
    strides = [128], box = [64, 32], swizzle = 128>`: innermost dimension first;
    sizes and box in elements, the rest in bytes; no stride of dimension 0.
    `element` may be `"tf32"`: f32 that is rounded on its way; `"i8"` is of any
    type of 8 bits.
  }];
  let parameters = (ins "int64_t":$buffer, DefaultValuedParameter<"int64_t", "0">:$offset,
                        "::mlir::StringAttr":$element, "::mlir::DenseI64ArrayAttr":$sizes,
                        "::mlir::DenseI64ArrayAttr":$strides, "::mlir::DenseI64ArrayAttr":$box,
                        "int64_t":$swizzle);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def KernelFactsAttr : Tandem_Attr<"KernelFacts", "kernel_facts"> {
  let summary = "What the function of a lowered kernel says of itself";
  let description = [{
    `#tandem.kernel_facts<kind = "pointwise", ops = ["tandem.exp"], flops = 16,
    bytes = 128, type = (tensor<4x4xf32>) -> tensor<4x4xf32>, items = 1>`. `kind`
    is a class of ops; `ops` are those of the model that the kernel computes;
    `flops` and `bytes` are what it costs; `summary` and `dtype` are of the op that
    computes most. A launch agrees with `type`, `items` (units of work), `blocks`
    (the grid, of a GPU) and `in_place`; `scratch_bytes` is what it gets beside its
    buffers. `schedule` is what the kernel was made with. Of a GPU:
    `block`, the threads; `shared_bytes`; `tensor_maps`, its last parameters.
  }];
  let parameters = (ins "::mlir::StringAttr":$kind, "::mlir::ArrayAttr":$ops,
                        DefaultValuedParameter<"int64_t", "0">:$flops,
                        DefaultValuedParameter<"int64_t", "0">:$bytes,
                        OptionalParameter<"::mlir::StringAttr">:$summary,
                        OptionalParameter<"::mlir::Type">:$dtype,
                        "::mlir::Type":$type,
                        "int64_t":$items,
                        DefaultValuedParameter<"int64_t", "0">:$scratch_bytes,
                        OptionalParameter<"::tandem::InPlaceAttr">:$in_place,
                        OptionalParameter<"::tandem::ScheduleAttr">:$schedule,
                        OptionalParameter<"::mlir::DenseI64ArrayAttr">:$blocks,
                        OptionalParameter<"::mlir::DenseI64ArrayAttr">:$block,
                        DefaultValuedParameter<"int64_t", "0">:$shared_bytes,
                        OptionalParameter<"::mlir::ArrayAttr">:$tensor_maps);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Those of `function`; null if it has none.
    static KernelFactsAttr of(::mlir::Operation *function);
  }];
}

def ComparePredicate : I32EnumAttr<"ComparePredicate", "a comparison", [
  I32EnumAttrCase<"eq", 0>, I32EnumAttrCase<"ne", 1>, I32EnumAttrCase<"lt", 2>,
  I32EnumAttrCase<"le", 3>, I32EnumAttrCase<"gt", 4>, I32EnumAttrCase<"ge", 5>]> {
  let cppNamespace = "::tandem";
  let genSpecializedAttr = 0;
}
def ComparePredicateAttr : EnumAttr<Tandem_Dialect, ComparePredicate, "predicate">;

def Combine : I32EnumAttr<"Combine", "what becomes of an element and what is scattered to it", [
  I32EnumAttrCase<"set", 0>, I32EnumAttrCase<"add", 1>, I32EnumAttrCase<"mul", 2>,
  I32EnumAttrCase<"min", 3>, I32EnumAttrCase<"max", 4>]> {
  let cppNamespace = "::tandem";
  let genSpecializedAttr = 0;
}
def CombineAttr : EnumAttr<Tandem_Dialect, Combine, "combine">;

def CollectiveReduce : I32EnumAttr<"CollectiveReduce", "what becomes of the elements of all ranks", [
  I32EnumAttrCase<"sum", 0>, I32EnumAttrCase<"max", 1>, I32EnumAttrCase<"min", 2>]> {
  let cppNamespace = "::tandem";
  let genSpecializedAttr = 0;
}
def CollectiveReduceAttr : EnumAttr<Tandem_Dialect, CollectiveReduce, "reduce">;

#endif
