//===- TrainingFlags.cpp - options of gradients and of the update ---------===//
#include "tools/tandem/FlagParts.h"

#include "compiler/Mixup.h"
#include "passes/adapters/LoraSpec.h"
#include "passes/partition/AverageSpec.h"
#include "passes/partition/BudgetSpec.h"
#include "passes/partition/ClipSpec.h"
#include "passes/partition/LossScaleSpec.h"
#include "passes/partition/NoiseSpec.h"
#include "passes/partition/OptimizerSpec.h"
#include "tools/tandem/ScheduleTable.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::commands;

static Status checkBudget(std::string_view text) {
  std::string error;
  return parseBudgetSpec(text, error) ? Status::success()
                                      : Status::usage(error);
}

/// What the optimizer does otherwise for some parameters or at some updates.
static void declareUpdate(CompileOptions &options, OptionTable &table) {
  table
      .text("freeze", "REGEX", options.import.freeze,
            "parameters that are not trained: the expression matches a part of "
            "their names. They have no gradients and no states")
      .check(checkRegex("--freeze"));
  table
      .list("group", "REGEX:KEY=VALUE,...", options.groups,
            "other values of the optimizer's options for parameters whose "
            "whole names the expression matches: the first group that does "
            "counts, and the rest of its options is --optimizer's. "
            "lr_schedule=SCHEDULE, as the last one, is a schedule of its own")
      .example(".*bias:weight_decay=0")
      .needs("optimizer", "it is of its options");
  declareSchedule(table, options.lrSchedule);
  table
      .text("ema", "DECAY", options.ema,
            "an exponential average of each trained parameter in a state "
            "ema:PARAM, which follows each update ('--average=ema' reads it)")
      .check(checkSpec("--ema", parseEmaSpec))
      .example("0.999")
      .needs("optimizer", "it follows its updates");
  table
      .text("swa", "start=N[,every=N]", options.swa,
            "the mean of each trained parameter after update N and those that "
            "are every=1 updates apart, in a state swa:PARAM")
      .check(checkSpec("--swa", parseSwaSpec))
      .example("start=10,every=5")
      .needs("optimizer", "it follows its updates");
}

void commands::declareTraining(CompileFlags &flags, OptionTable &table) {
  CompileOptions &options = flags.options;
  table.group("training");
  table
      .text("loss", "NAME", options.loss,
            "the output to differentiate; of a model in ONNX also "
            "KIND:OUTPUT,LABELS, which gives it that loss, and an input "
            "LABELS ('tandem help losses')")
      .byDefault("'loss'");
  table
      .text("optimizer", "NAME[:KEY=VALUE,...]", options.optimizer,
            "compile an optimizer in: sgd, adamw and others ('tandem help "
            "optimizers')")
      .check(checkSpec("--optimizer", parseOptimizerSpec))
      .completes([] {
        std::vector<std::string> names;
        for (const OptimizerKind &kind : optimizerKinds())
          names.emplace_back(kind.name);
        return names;
      })
      .example("sgd:lr=0.1");
  table
      .text("mixup", "INPUT,LABELS:alpha=N", options.mixup,
            "train on mixed rows: m of each row of INPUT and 1 - m of the row "
            "as far from the other end of the batch, with the same mix of the "
            "losses by their LABELS; m is drawn from Beta(N, N) for each batch")
      .check(checkParsed("--mixup", parseMixupSpec))
      .example("x,labels:alpha=0.2");
  table
      .text("clip", "norm:N|value:N", options.clip,
            "clip gradients before they are used: all by one factor, so that "
            "their norm is at most N (an update whose norm is not finite is "
            "skipped and counted), or each element to [-N, N]")
      .check(checkSpec("--clip", parseClipSpec))
      .example("norm:1.0")
      .needs("optimizer", "gradients are clipped in its update");
  table
      .text("gradient-noise", "VARIANCE[,gamma=N]", options.gradientNoise,
            "add normal noise to clipped gradients, of mean 0 and of this "
            "variance, divided by (1 + updates)^gamma; gamma: 0")
      .check(checkSpec("--gradient-noise", parseNoiseSpec))
      .example("0.01,gamma=0.55")
      .needs("optimizer", "noise is added in its update");
  table
      .flag("centralize", options.centralize,
            "take from each gradient with more than one dimension its mean "
            "over all dimensions but the first, behind clipping and noise")
      .needs("optimizer", "gradients are centralized in its update");
  table
      .text("loss-scale", "N|dynamic[:KEY=VALUE,...]", options.lossScale,
            "multiply the loss by N before it is differentiated, and divide "
            "gradients by it, so that f16 holds them; an update whose "
            "gradients are not finite is skipped and counted. dynamic begins "
            "with init=65536, multiplies by backoff=0.5 where one was skipped, "
            "and by growth=2 after interval=2000 that were not")
      .check(checkSpec("--loss-scale", parseLossScaleSpec))
      .example("dynamic")
      .needs("optimizer", "its update divides by it");
  table
      .flag("accumulate", options.accumulate,
            "add a program `accumulate` that adds a batch's gradients to sums, "
            "of which the next `step` takes the mean ('train "
            "--accumulate=K'); each parameter gets a sum in f32")
      .needs("optimizer", "it uses the sums");
  declareUpdate(options, table);
  actsIn(table,
         table
             .text("lora", "REGEX:rank=N[,alpha=X][,modules_to_save=REGEX]",
                   options.lora,
                   "train low-rank adapters of the weights whose names the "
                   "expression matches a part of, and nothing else but the "
                   "parameters that modules_to_save matches a part of, as a "
                   "new head; alpha: N")
             .check(checkSpec("--lora", parseLoraSpec))
             .excludes("freeze", "it freezes all that is no adapter")
             .example(".*attn.*:rank=8,alpha=16"),
         "joint");
  actsIn(table,
         table
             .text("partition", "min-cut|default", options.partition,
                   "what the forward saves for the backward")
             .oneOf({"min-cut", "default"})
             .byDefault("min-cut"),
         "partition");
  actsIn(table,
         table
             .text("memory-budget", "PART|BYTES", options.memoryBudget,
                   "the most memory that a training step may take: from 0 "
                   "(the least possible) to 1 (the fastest plan's), or bytes "
                   "such as 6GiB")
             .check(checkBudget)
             .example("0.5")
             .excludes("partition=default"),
         "partition");
  table
      .text("recompute", "REGEX", options.recompute,
            "never save what ops compute whose path (as h0.attn.matmul, "
            "'tandem help paths') the expression matches a part of: compute "
            "it again")
      .check(checkRegex("--recompute"));
  table
      .text("save", "REGEX", options.save,
            "save what ops of such paths compute")
      .check(checkRegex("--save"));
  table
      .text("offload", "REGEX", options.offload,
            "save it in the host's memory, where the target is a GPU")
      .check(checkRegex("--offload"));
  table
      .integer("order", "1|2", flags.order, 1, 2,
               "how often programs can be differentiated")
      .byDefault("1")
      .excludes("precision=backward", "that is of the first backward");
}
