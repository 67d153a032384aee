"""The recipes, as the commands of Tandem have them; torch_training.py has the same in PyTorch. Needs nothing but Python.

`compile` and `train` are options of these commands, `data` and `eval` name the inputs' files in the recipe's folder, `metric` what
`train --json` calls the number that is compared, which is better the larger it is if `rising`. `{steps}` is the number of updates.
"""

from collections import namedtuple

Recipe = namedtuple("Recipe", "about rows batch epochs accumulate compile train data eval metric rising")

RECIPES = dict(
    lstm=Recipe(
        "LSTM on a series in a CSV: AdamW, clipping", dict(train=2048, eval=512), 64, 10, 1,
        ["--loss=mse:output,target", "--optimizer=adamw:lr=5e-3,weight_decay=0.01", "--clip=norm:1.0"], ["--metric=mae:output,target"],
        dict(x="train.csv:x0..x23", target="train.csv:y"), dict(x="eval.csv:x0..x23", target="eval.csv:y"), "mae", False),
    resnet18=Recipe(
        "ResNet-18 of an eighth of its width: one-cycle, label smoothing, flips, EMA", dict(train=2048, eval=512), 64, 5, 1,
        ["--loss=cross_entropy:output,labels,smoothing=0.1", "--optimizer=momentum:lr=0.1,momentum=0.9,weight_decay=5e-4",
         "--lr-schedule=onecycle:total={steps}", "--ema=0.95"],
        ["--augment=x:flip", "--accuracy=output,labels", "--average=ema"],
        dict(x="train-x.npy", labels="train-labels.npy"), dict(x="eval-x.npy", labels="eval-labels.npy"), "accuracy", True),
    gpt=Recipe(
        "two layers of GPT-2 on 1 MB of text, bf16: cosine, warm-up, clipping, accumulation, groups", dict(train=16384, eval=1024), 16, 1, 4,
        ["--amp=bf16", "--optimizer=adamw:lr=2e-3,beta2=0.95,weight_decay=0.1", "--lr-schedule=cosine:warmup=20,total={steps},min=1e-4",
         "--clip=norm:1.0", "--accumulate", "--group=.*(bias|norm.*):weight_decay=0"], ["--accumulate=4"],
        dict(tokens="train.bin:u16", targets="train.bin:u16,shift=1"), dict(tokens="eval.bin:u16", targets="eval.bin:u16,shift=1"),
        "loss", False),
    bert=Recipe(
        "LoRA of rank 4 in two layers of BERT, after a training on another task", dict(train=2048, eval=1024), 32, 6, 1,
        ["--loss=cross_entropy:output,labels", "--optimizer=adamw:lr=3e-3,weight_decay=0", "--lora=query|value|classifier:rank=4,alpha=8",
         "--lr-schedule=linear:total={steps}"],
        ["--accuracy=output,labels"], dict(tokens="train-tokens.npy", labels="train-labels.npy"),
        dict(tokens="eval-tokens.npy", labels="eval-labels.npy"), "accuracy", True),
    unet=Recipe(
        "U-Net on masks: Dice loss", dict(train=1024, eval=256), 32, 5, 1,
        ["--loss=dice:logits,mask", "--optimizer=adamw:lr=2e-3,weight_decay=0"],
        ["--metric=iou:logits,mask"], dict(x="train-x.npy", mask="train-mask.npy"), dict(x="eval-x.npy", mask="eval-mask.npy"), "iou", True),
)


def updates(recipe):
    return recipe.rows["train"] // recipe.batch * recipe.epochs // recipe.accumulate


def compile_options(recipe):
    return [option.replace("{steps}", str(updates(recipe))) for option in recipe.compile]
