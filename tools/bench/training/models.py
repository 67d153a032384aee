"""The networks of the recipes, in PyTorch: each is what both sides train. Exported as they are here, with the loss of a batch as the
output `loss` where no option of `tandem compile` says it."""

import math

import torch
import torch.nn.functional as F
from torch import nn


class Lstm(nn.Module):
    """The next value of a series from a window of it."""

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(1, 32, batch_first=True)
        self.head = nn.Linear(32, 1)

    def forward(self, x):
        return {"output": self.head(self.lstm(x.unsqueeze(-1))[0][:, -1])[:, 0]}


class Block(nn.Module):
    def __init__(self, before, width, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(before, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width)
        self.skip = nn.Sequential(nn.Conv2d(before, width, 1, stride, bias=False), nn.BatchNorm2d(width)) if before != width else nn.Identity()

    def forward(self, x):
        return F.relu(self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x))))) + self.skip(x))


class ResNet18(nn.Module):
    """ResNet-18 for images of 32 x 32, with an eighth of its width."""

    def __init__(self, width=8):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU())
        blocks, before = [], width
        for stage in range(4):
            for block in range(2):
                blocks.append(Block(before, width << stage, 2 if stage and not block else 1))
                before = width << stage
        self.blocks, self.head = nn.Sequential(*blocks), nn.Linear(before, 10)

    def forward(self, x):
        return {"output": self.head(self.blocks(self.stem(x)).mean((2, 3)))}


class Attention(nn.Module):
    def __init__(self, width, heads, causal):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x):
        rows, length, width = x.shape
        q, k, v = (f(x).view(rows, length, self.heads, -1).transpose(1, 2) for f in (self.query, self.key, self.value))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.out(y.transpose(1, 2).reshape(rows, length, width))


class Layer(nn.Module):
    def __init__(self, width, heads, causal):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads, causal)
        self.up, self.down, self.causal = nn.Linear(width, 4 * width), nn.Linear(4 * width, width), causal

    def forward(self, x):
        if self.causal:  # GPT-2: norms before
            x = x + self.attention(self.norm1(x))
            return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))
        x = self.norm1(x + self.attention(x))  # BERT: norms behind
        return self.norm2(x + self.down(F.gelu(self.up(x))))


def draw(net):
    """The initial values of GPT-2 and BERT."""
    for name, p in net.named_parameters():
        if p.dim() == 2:
            nn.init.normal_(p, std=0.02)
        elif name.endswith("bias"):
            nn.init.zeros_(p)


class Gpt(nn.Module):
    """Two layers of GPT-2 over bytes; the table of tokens is the last layer, too."""

    def __init__(self, width=128, context=64, layers=2):
        super().__init__()
        self.tokens_table, self.places = nn.Embedding(256, width), nn.Embedding(context, width)
        self.layers = nn.Sequential(*(Layer(width, 4, True) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)
        draw(self)

    def forward(self, tokens, targets):
        x = self.tokens_table(tokens) + self.places.weight
        logits = F.linear(self.norm(self.layers(x)), self.tokens_table.weight)
        return {"loss": F.cross_entropy(logits.float().flatten(0, 1), targets.flatten())}


class Bert(nn.Module):
    """Two layers of BERT, and a class for each row."""

    def __init__(self, width=64, length=32):
        super().__init__()
        self.tokens_table, self.places = nn.Embedding(64, width), nn.Embedding(length, width)
        self.norm = nn.LayerNorm(width)
        self.layers = nn.Sequential(*(Layer(width, 4, False) for _ in range(2)))
        self.pooler, self.classifier = nn.Linear(width, width), nn.Linear(width, 4)
        draw(self)

    def forward(self, tokens):
        x = self.layers(self.norm(self.tokens_table(tokens) + self.places.weight))
        return {"output": self.classifier(torch.tanh(self.pooler(x[:, 0])))}


class Lora(nn.Module):
    """A linear layer with a low-rank product beside it, as PEFT has it."""

    def __init__(self, base, rank, alpha):
        super().__init__()
        self.base, self.scale = base.requires_grad_(False), alpha / rank
        self.a = nn.Parameter(torch.empty(rank, base.in_features))
        self.b = nn.Parameter(torch.zeros(base.out_features, rank))
        nn.init.kaiming_uniform_(self.a, a=math.sqrt(5))

    def forward(self, x):
        return self.base(x) + F.linear(F.linear(x, self.a), self.b) * self.scale


def adapt(net, names, rank, alpha):
    """Freezes the network, and gives linear layers with such last names adapters."""
    net.requires_grad_(False)
    for module in list(net.modules()):
        for name, child in list(module.named_children()):
            if name in names:
                setattr(module, name, Lora(child, rank, alpha))
    return net


class UNet(nn.Module):
    """Three levels; two classes, background and object."""

    def __init__(self, width=8):
        super().__init__()

        def block(before, after):
            return nn.Sequential(nn.Conv2d(before, after, 3, 1, 1, bias=False), nn.BatchNorm2d(after), nn.ReLU(),
                                 nn.Conv2d(after, after, 3, 1, 1, bias=False), nn.BatchNorm2d(after), nn.ReLU())

        self.down1, self.down2, self.middle = block(1, width), block(width, 2 * width), block(2 * width, 4 * width)
        self.up2, self.up1 = nn.ConvTranspose2d(4 * width, 2 * width, 2, 2), nn.ConvTranspose2d(2 * width, width, 2, 2)
        self.join2, self.join1 = block(4 * width, 2 * width), block(2 * width, width)
        self.head = nn.Conv2d(width, 2, 1)

    def forward(self, x):
        one = self.down1(x)
        two = self.down2(F.max_pool2d(one, 2))
        y = self.up2(self.middle(F.max_pool2d(two, 2)))
        y = self.up1(self.join2(torch.cat([y, two], 1)))
        return {"logits": self.head(self.join1(torch.cat([y, one], 1)))}


def dice(logits, mask):
    """1 - the mean over classes of 2 |p y| / (|p| + |y|) over the batch, as MONAI's DiceLoss(batch=True) has it."""
    p, y = torch.softmax(logits, 1), F.one_hot(mask, 2).movedim(-1, 1).to(logits.dtype)
    over = (0, 2, 3)
    return 1 - ((2 * (p * y).sum(over) + 1e-5) / (p.sum(over) + y.sum(over) + 1e-5)).mean()
