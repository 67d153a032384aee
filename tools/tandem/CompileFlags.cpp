//===- CompileFlags.cpp - the options that say how to compile -------------===//
//
// Values are checked by those who read them later, so that what is wrong is
// said at once, without a place in the model, and with exit code 2.
//
//===----------------------------------------------------------------------===//
#include "tools/tandem/CompileFlags.h"

#include "compiler/CheckOptions.h"
#include "compiler/InputTypes.h"
#include "compiler/Phases.h"
#include "compiler/Precision.h"
#include "compiler/Target.h"
#include "compiler/emit/KernelCache.h"
#include "compiler/import/Losses.h"
#include "compiler/tune/ScheduleCache.h"
#include "ir/UserText.h"
#include "passes/precision/Fp8Spec.h"
#include "passes/shard/ParallelSpec.h"
#include "tools/tandem/FlagParts.h"
#include "tools/tandem/ScheduleTable.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::commands;

/// Of models in ONNX and archives of torch.export.
static constexpr std::string_view kOthers =
    "models in ONNX and archives of PyTorch";

/// True if the targets `text` have one of the kind `kind`.
static bool hasKind(std::string_view text, std::string_view kind) {
  for (const std::string &name : targetNames(text))
    if (StringRef(name).split(':').first == StringRef(kind))
      return true;
  return false;
}

Option &commands::actsIn(const OptionTable &table, Option &option,
                         StringRef phase) {
  static constexpr std::string_view before[] = {
      "stop-after=capture",  "stop-after=functionalize", "stop-after=joint",
      "stop-after=optimize", "stop-after=partition",     "stop-after=plan",
      "stop-after=lower"};
  if (table.find("stop-after"))
    for (std::string_view condition : before) {
      if (StringRef(condition).ends_with(phase))
        break;
      option.excludes(condition, "it acts later");
    }
  return option;
}

static Status checkTarget(std::string_view text) {
  Status status = parseTargets(std::string(text)).status();
  // What this build cannot compile for is said when it comes to that.
  return status.code() == Code::Usage ? status : Status::success();
}

ValueCheck commands::checkRegex(const char *name) {
  return [name](std::string_view text) {
    std::string error;
    return isRegex(text, error)
               ? Status::success()
               : Status::usage("expected " + std::string(name) +
                               " to be a regular expression, but got '" +
                               std::string(text) + "': " + error);
  };
}

/// Reads "x=2x3"; false if that is not what `text` is.
static bool readShape(StringRef text, std::string &name,
                      std::vector<int64_t> &shape) {
  auto [input, list] = text.rsplit('=');
  name = input.str();
  if (name.empty() || input.size() == text.size())
    return false;
  SmallVector<StringRef> sizes;
  list.split(sizes, 'x', /*MaxSplit=*/-1, /*KeepEmpty=*/!list.empty());
  for (StringRef size : sizes)
    if (size.getAsInteger(10, shape.emplace_back()) || shape.back() < 1)
      return false;
  return true;
}

static Status checkShape(std::string_view text) {
  std::string name;
  std::vector<int64_t> shape;
  return readShape(text, name, shape)
             ? Status::success()
             : Status::usage("expected --shape=INPUT=AxBxC with sizes of at "
                             "least 1, but got '" +
                             std::string(text) + "'");
}

static Status checkDim(std::string_view text) {
  auto [name, size] = StringRef(text).rsplit('=');
  int64_t number = 0;
  return !name.empty() && !size.getAsInteger(10, number) && number > 0
             ? Status::success()
             : Status::usage("expected --dim=NAME=N with N of at least 1, but "
                             "got '" +
                             std::string(text) + "'");
}

static void declareKernelCache(CompileFlags &flags, OptionTable &table) {
  CompileOptions &options = flags.options;
  actsIn(table,
         table
             .text("kernel-cache", "DIR|off", options.kernelCache,
                   "the folder that keeps kernels' code for later "
                   "compilations, or none. Artifacts do not depend on it")
             .byDefault("$TANDEM_KERNEL_CACHE, or tandem/kernels in the "
                        "user's folder for caches")
             .excludes("dump-phases", "a dump has the code of all kernels")
             .excludes("dump-passes", "a dump has the code of all kernels"),
         "emit");
  actsIn(table,
         table
             .text("kernel-cache-size", "BYTES", options.kernelCacheSize,
                   "the most that the folder keeps: what was used longest ago "
                   "goes first")
             .byDefault("1GiB")
             .check([](std::string_view text) {
               return cacheBytes(std::string(text))
                          ? Status::success()
                          : Status::usage("expected --kernel-cache-size to be "
                                          "bytes, as 2GiB, but got '" +
                                          std::string(text) + "'");
             })
             .example("2GiB")
             .excludes("kernel-cache=off", "nothing is kept")
             .excludes("dump-phases", "a dump has the code of all kernels")
             .excludes("dump-passes", "a dump has the code of all kernels"),
         "emit");
}

static void declarePrecision(CompileFlags &flags, OptionTable &table) {
  CompileOptions &options = flags.options;
  table.group("precision");
  table
      .list("input", "NAME:TYPE[,KEY=VALUE,...]", options.inputs,
            "an input of floats arrives as u8, i8, u16, i16, f16 or bf16, and "
            "the program makes (x * scale - mean) / std of it: scale=N or N/N, "
            "mean and std=N or [N,...], of each index along dimension axis=1")
      .check(checkParsed("--input", parseInputSpec))
      .example("x:u8,scale=1/255");
  actsIn(table,
         table
             .text("amp", "bf16|f16", options.amp,
                   "mixed precision: matrix products, convolutions and "
                   "attention of f32 in a low type; softmax, normalizations, "
                   "losses and sums in f32; others as what they read. "
                   "Parameters, gradients and the update stay in f32")
             .oneOf({"bf16", "f16"})
             .example("bf16"),
         "joint");
  actsIn(table,
         table
             .text("fp8", "REGEX[:amax_history_len=N,margin=N]", options.fp8,
                   "multiply the weights whose names the expression matches a "
                   "part of in 8 bits: factors in f8E4M3FN and gradients in "
                   "f8E5M2, scaled by the largest magnitude of the last N "
                   "(1024) calls and by 2^-margin (0). Tensor cores from sm_89 "
                   "on multiply f8 values; other targets cast them to f32, "
                   "which is slower")
             .check(checkSpec("--fp8", parseFp8Spec))
             .example(".*:amax_history_len=16")
             .excludes("order=2", "its backward is not differentiated")
             .excludes("precision=backward", "its backward says its types"),
         "joint");
  actsIn(table,
         table
             .list("precision", "REGEX:TYPE|backward:TYPE", options.precision,
                   "compute ops whose path (as h0.attn.matmul, 'tandem help "
                   "paths') the expression matches a part of in f32, bf16 or "
                   "f16, or the whole backward (whose ops have the types of "
                   "their forward ops); the last that matches counts")
             .check(checkPrecisionRule)
             .matching([](std::string_view rule, std::string_view of) {
               return of != "backward" || rule.starts_with("backward:");
             })
             .example("backward:f32"),
         "joint");
}

static void declareInference(CompileFlags &flags, OptionTable &table) {
  CompileOptions &options = flags.options;
  table.group("inference");
  table
      .flag("inference", options.inference,
            "no gradients: the program `evaluate` alone")
      .excludes("loss")
      .excludes("optimizer")
      .excludes("freeze", "nothing is trained")
      .excludes("train", "nothing is trained")
      .excludes("partition")
      .excludes("memory-budget")
      .excludes("recompute")
      .excludes("save")
      .excludes("offload")
      .excludes("order")
      .excludes("mixup", "nothing is trained")
      .excludes("precision=backward", "there is none");
  table
      .flag("prepare", options.prepare,
            "compute what follows from parameters and states alone once, and "
            "again where they were set; memory grows by it, and nobody may "
            "write them but through the model")
      .needs("inference", "in training parameters change with every step");
}

/// The table keeps no copy.
static std::string_view kindsHelp() {
  static const std::string help = [] {
    std::string kinds;
    for (const ParallelKind &kind : parallelKinds())
      kinds += (kinds.empty() ? "" : "; ") + kind.name.str() + " (axis " +
               kind.axis.str() + "): " + kind.meaning.str();
    return "what is cut over the axes: " + kinds;
  }();
  return help;
}

static void declareRanks(CompileFlags &flags, OptionTable &table) {
  CompileOptions &options = flags.options;
  table.group("several ranks");
  actsIn(
      table,
      table
          .text("mesh", "AXIS=N,...", options.mesh,
                "compile for an array of ranks with these axes; the last one "
                "is the fastest")
          .check(checkSpec("--mesh", parseMeshSpec))
          .example("data=2")
          .excludes("mixup", "a rank does not have the batch's other rows")
          .excludes("fp8", "histories are those of one process")
          .excludes("order")
          .excludes("prepare")
          .onlyWith("target", "cpu"),
      "optimize");
  actsIn(table,
         table.text("parallel", "KIND[+KIND]", options.parallel, kindsHelp())
             .example("ddp")
             .needs("mesh", "it says what is cut over the axes of a mesh"),
         "optimize");
  actsIn(table,
         table
             .text("batch-norm", "synchronized|per-rank", options.batchNorm,
                   "the rows whose statistics batch norm uses in training: "
                   "the whole batch's, as one process, or each rank's own, "
                   "without communication; the running statistics are then "
                   "the mean of the ranks'")
             .oneOf({"synchronized", "per-rank"})
             .byDefault("synchronized")
             .needs("mesh", "it speaks of ranks"),
         "joint");
  actsIn(table,
         table
             .number("bucket-mb", "MIB", options.bucketMb,
                     "small sums over ranks go together when there is so much "
                     "of them: those of at most a quarter of it, in one "
                     "exchange of at most four times as much")
             .atLeast(CompileOptions::leastBucketMb)
             .atMost(CompileOptions::mostBucketMb)
             .byDefault("what the exchange's begin is a small part of")
             .example("0.5")
             .needs("mesh", "it speaks of ranks"),
         "plan");
  actsIn(
      table,
      table
          .text("shard", "F.json", options.shard,
                "regular expressions for the names of inputs, parameters, "
                "states and outputs, each with the axis, the list of axes or "
                "null for every dimension")
          .needs("mesh", "it says what is cut over the axes of a mesh"),
      "optimize");
}

static void declareCuda(CompileFlags &flags, OptionTable &table) {
  CompileOptions &options = flags.options;
  table.group("for the target cuda");
  actsIn(table,
         table
             .text("cubin", "auto|yes|no", options.cubin,
                   "assemble the PTX too, with nvJitLink or ptxas; auto: "
                   "where one is found")
             .oneOf({"auto", "yes", "no"})
             .byDefault("auto")
             .onlyWith("target", "cuda"),
         "emit");
  actsIn(
      table,
      table
          .text("matmul-precision", "f32|tf32", options.matmulPrecision,
                "tf32 lets the tensor cores multiply f32, of which they see 10 "
                "bits after the point")
          .oneOf({"f32", "tf32"})
          .byDefault("f32")
          .onlyWith("target", "cuda"),
      "functionalize");
  actsIn(
      table,
      table
          .text(
              "libraries", "auto|yes|no", options.libraries,
              "which products and convolutions may be calls of cuBLASLt and "
              "cuDNN where a program runs: auto, those where that is expected "
              "to be faster; yes, all that can be")
          .oneOf({"auto", "yes", "no"})
          .byDefault("auto")
          .onlyWith("target", "cuda"),
      "functionalize");
  actsIn(table,
         table
             .flag("emulation", options.emulation,
                   "an image of the kernels for the device cuda-emu too")
             .onlyWith("target", "cuda"),
         "emit");
}

static void declareCpu(CompileFlags &flags, OptionTable &table) {
  CompileOptions &options = flags.options;
  table.group("for the target cpu");
  actsIn(
      table,
      table
          .integer("effort", "N", flags.effort, 0, 3,
                   "how much the code of kernels is optimized: 0, hardly, in "
                   "about half the time, to look at what a model does; 3, "
                   "most. Products and sums may be rounded otherwise")
          .byDefault("2")
          .onlyWith("target", "cpu"),
      "emit");
  actsIn(
      table,
      table
          .text("winograd", "auto|no", options.winograd,
                "no forbids Winograd's method for convolutions of 3x3, whose "
                "results are a little less exact; auto: where that is expected "
                "to "
                "be faster")
          .oneOf({"auto", "no"})
          .byDefault("auto")
          .onlyWith("target", "cpu"),
      "functionalize");
  actsIn(
      table,
      table
          .flag(
              "fast-math", options.fastMath,
              "exp, tanh and sigmoid of f32 in fewer steps (off by up to 2e-6 "
              "of the result, without denormal ones), products and sums "
              "rounded "
              "as one, and values of f16 and bf16 inside of a kernel with the "
              "digits of f32")
          .onlyWith("target", "cpu"),
      "functionalize");
  actsIn(table,
         table
             .number("tune", "SECONDS", flags.tune,
                     "compile and measure other schedules of products and "
                     "convolutions on this machine for so long, and use those "
                     "that are faster (0: those alone that were found before)")
             .atLeast(0)
             .atMost(1e6)
             .onlyWith("target", "cpu"),
         "plan");
  table
      .text("tune-cache", "F.json", options.tuneCache,
            "where --tune keeps what it finds")
      .byDefault("tandem/schedules.json in the user's folder for caches")
      .needs("tune");
}

static void declareImporters(CompileFlags &flags, OptionTable &table) {
  CompileOptions &options = flags.options;
  table.group("for models in ONNX and archives of PyTorch (.pt2)");
  table.list("dim", "NAME=N", flags.dims, "the size of a symbolic dimension")
      .keyed()
      .check(checkDim)
      .example("batch=4")
      .onlyFor(kImported, kOthers);
  table.list("shape", "INPUT=AxBxC", flags.shapes, "the shape of an input")
      .keyed()
      .check(checkShape)
      .example("x=2x3")
      .onlyFor(kImported, kOthers);
  table
      .list("value", "INPUT=FILE|N|[N,...]", options.importValues,
            "the value of an input that decides a shape (.npy, .pb, or "
            "written down); it is no input of the programs then")
      .keyed()
      .example("n=4")
      .onlyFor(".onnx", "models in ONNX");
  table
      .text("train", "REGEX", options.import.train,
            "what is trained, and nothing else: parameters of an archive of "
            "PyTorch, initializers of a model in ONNX, arguments of a module "
            "of StableHLO")
      .byDefault(
          "in PyTorch's archives what requires grad, in ONNX floats with a "
          "dimension and more than one element, in StableHLO what is called "
          "'params'")
      .onlyFor(".onnx|.pt2|.mlir|.bin", "models of other formats");
  table
      .flag("keep-eval", options.import.keepEval,
            "leave batch normalization and dropout as in inference")
      .onlyFor(kImported, kOthers);
}

/// A loss of the form KIND:OUTPUT,LABELS is for models of other formats (which
/// a .mlir is, is known when it is read); an output of another model can have a
/// colon in its name.
static Status checkLoss(const std::string &loss, const std::string &model) {
  if (!StringRef(loss).contains(':'))
    return Status::success();
  auto spec = parseLoss(loss);
  if (StringRef(model).ends_with(".mlir"))
    return Status::success();
  if (isImported(model) || StringRef(model).ends_with(".bin"))
    return spec.status();
  return spec ? Status::usage("--loss=KIND:OUTPUT,LABELS is for models of "
                              "other formats, but the model is '" +
                              model + "'")
              : Status::success();
}

void CompileFlags::declare(OptionTable &table, bool withInference) {
  const std::string *model = table.positionals().front().target;
  table.finally([this, model] {
    Status status = checkLoss(options.loss, *model);
    CompileOptions complete;
    return status ? finish(complete) : status;
  });
  table
      .text("target", "KIND[:ARCH][+...]", options.target,
            "what to compile for: cpu, cuda, or both (cpu+cuda:sm_90), and "
            "for several of one kind (cpu:x86-64-v3+x86-64-v4, "
            "cuda:sm_90a+sm_80), of which the best is chosen when the artifact "
            "is loaded")
      .byDefault("this machine's processor")
      .check(checkTarget)
      .matching(hasKind)
      .completes([] {
        return std::vector<std::string>{"cpu", "cuda", "cpu+cuda"};
      })
      .example("cpu")
      .example("cuda")
      .example("cpu+cuda:sm_90");
  table.integer("threads", "N", threads, 1, 1024, "threads to compile with")
      .byDefault("all processors");
  table.flag("remarks", options.remarks,
             "say what is saved, recomputed and fused, and why");
  table.text("dump-phases", "DIR", options.dumpPhases,
             "write the module of each phase to DIR/MODEL.NN.PHASE.mlir");
  Option &passes =
      table.text("dump-passes", "DIR", options.dumpPasses,
                 "write the module after each pass that changes it to "
                 "DIR/MODEL.NN.PHASE.NN.PASS.mlir");
  if (table.find("stop-after"))
    passes.excludes("stop-after=capture", "no pass runs");
  table
      .text(
          "reproducer", "F.mlir", options.reproducerFile,
          "where the passes and their module go if the compiler itself fails, "
          "for 'tandem-opt --run-reproducer'")
      .byDefault("a new file in the folder for temporary files");
  declareKernelCache(*this, table);
  table.flag("force", force,
             "let outputs replace inputs, files of another kind, and trained "
             "weights");
  if (withInference) {
    declareInference(*this, table);
    declareRanks(*this, table);
  }
  declareTraining(*this, table);
  declarePrecision(*this, table);
  declareCpu(*this, table);
  declareCuda(*this, table);
  declareImporters(*this, table);
}

void CompileFlags::declare(Files &files, const std::string &model) const {
  files.reads("the model", model);
  files.reads("--shard", options.shard);
  if (auto file = fileOfTable(options.lrSchedule))
    files.reads("--lr-schedule", file->first);
  for (StringRef text : options.importValues) {
    auto [name, value] = text.split('=');
    files.reads(("--value '" + name + "'").str(), value.str());
  }
  files.writesDumps("--dump-phases", options.dumpPhases);
  files.writesDumps("--dump-passes", options.dumpPasses);
  files.writes(
      {"--reproducer", options.reproducerFile, {io::FileKind::Module}});
  // Its folder is made where there is none.
  files.writes({"--tune-cache",
                options.tuneCache,
                {io::FileKind::Schedules},
                /*goesOnWith=*/"",
                /*inPlace=*/true});
}

Status CompileFlags::finish(CompileOptions &out) const {
  out = options;
  out.threads = static_cast<int>(threads.value_or(0));
  out.order = static_cast<int>(order.value_or(1));
  out.effort = static_cast<int>(effort.value_or(2));
  auto schedule = withTable(options.lrSchedule);
  if (!schedule)
    return std::move(schedule).status();
  out.lrSchedule = *std::move(schedule);
  for (const std::string &text : dims) {
    auto [name, size] = StringRef(text).rsplit('=');
    (void)size.getAsInteger(10, out.import.dims[name.str()]);
  }
  for (const std::string &text : shapes) {
    std::string name;
    std::vector<int64_t> shape;
    (void)readShape(text, name, shape);
    out.import.shapes[name] = shape;
  }
  out.tune = tune;
  if (tune && out.tuneCache.empty())
    out.tuneCache = defaultCachePath();
  if (!choosesPlan())
    return checkOptions(out);
  CompileOptions rest = out;
  rest.mesh.clear();
  rest.parallel.clear();
  rest.shard.clear();
  rest.batchNorm.clear();
  rest.bucketMb.reset();
  return checkOptions(rest);
}

Status CompileFlags::finishWhole(CompileOptions &out) const {
  if (Status s = finish(out); !s || !isPipeline(out))
    return s;
  return Status::usage("--parallel=pp makes several artifacts, which 'compile' "
                       "writes and 'inspect X.tdm' shows");
}
