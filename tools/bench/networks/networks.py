"""The networks of tools/bench/networks: name -> (make the module, make its arguments). Each gives its loss, of which the
last argument is the labels; `scores` of the other arguments, where there is one, is what the network predicts.

Sizes are those of people's small runs: a step takes 0.1 to 2 seconds on two processors. Dropout and dropped layers
are off, since random numbers differ.
"""

import torch
import torch.nn.functional as F
from torch import nn
from torch_networks import DiffusionUNet, Recommender, still

NETWORKS = {}
CLASSES = 100


class Classified(nn.Module):
    """A network that gives class scores, and their cross entropy."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def scores(self, x):
        out = self.net(x)
        return getattr(out, "logits", out)

    def forward(self, x, labels):
        return F.cross_entropy(self.scores(x), labels)


class NextTokens(nn.Module):
    """A language model, and the cross entropy of each token that follows."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def scores(self, ids):
        return self.net(ids).logits

    def forward(self, ids, labels):
        return F.cross_entropy(self.scores(ids).flatten(0, 1), labels.flatten())


def images(rows, size):
    return lambda: (torch.randn(rows, 3, size, size), torch.randint(0, CLASSES, (rows,)))


def vision(name, rows, size, **options):
    def make():
        import torchvision

        return Classified(still(torchvision.models.get_model(name, weights=None, num_classes=CLASSES, **options)))

    NETWORKS[name] = (make, images(rows, size))


vision("resnet18", 16, 112)
vision("resnet50", 8, 112)
vision("densenet121", 8, 112)
vision("efficientnet_b0", 8, 112)
vision("mobilenet_v2", 16, 112)
vision("mobilenet_v3_large", 16, 112)
vision("convnext_tiny", 4, 112)
vision("swin_t", 4, 224)
vision("vit_b_16", 4, 224)
vision("regnet_y_400mf", 16, 112)
vision("shufflenet_v2_x1_0", 16, 112)
vision("mnasnet1_0", 16, 112)
vision("squeezenet1_1", 16, 112)
vision("resnext50_32x4d", 8, 112)
vision("vgg11_bn", 4, 112)
vision("googlenet", 8, 112, aux_logits=False, init_weights=False)
vision("efficientnet_v2_s", 4, 112)


def tokens(rows, length, vocabulary):
    return lambda: (torch.randint(0, vocabulary, (rows, length)), torch.randint(0, vocabulary, (rows, length)))


def language(name, kind, config, rows, length, vocabulary, **options):
    def make():
        import transformers

        settings = getattr(transformers, config)(vocab_size=vocabulary, use_cache=False, **options)
        if kind != "MambaForCausalLM":  # has no attention, and refuses the word
            settings._attn_implementation = "sdpa"
        return NextTokens(still(getattr(transformers, kind)(settings)))

    NETWORKS[name] = (make, tokens(rows, length, vocabulary))


language("gpt2", "GPT2LMHeadModel", "GPT2Config", 2, 256, 50257, n_layer=2, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
language("gpt2_6", "GPT2LMHeadModel", "GPT2Config", 4, 128, 8192, n_layer=6, n_embd=512, n_head=8, resid_pdrop=0.0, embd_pdrop=0.0,
         attn_pdrop=0.0)
WIDE = dict(hidden_size=512, num_hidden_layers=4, num_attention_heads=8, max_position_embeddings=256)
language("llama", "LlamaForCausalLM", "LlamaConfig", 4, 128, 8192, intermediate_size=1376, num_key_value_heads=4, **WIDE)
language("bert", "BertForMaskedLM", "BertConfig", 4, 128, 8192, intermediate_size=2048, hidden_dropout_prob=0.0,
         attention_probs_dropout_prob=0.0, **WIDE)
language("t5", "T5ForConditionalGeneration", "T5Config", 4, 64, 8192, d_model=384, d_kv=64, d_ff=1024, num_layers=3, num_heads=6,
         dropout_rate=0.0, decoder_start_token_id=0)
language("mamba", "MambaForCausalLM", "MambaConfig", 2, 32, 4096, hidden_size=256, num_hidden_layers=2)


class Encoded(NextTokens):
    """An encoder and a decoder over the same tokens."""

    def scores(self, ids):
        return self.net(input_ids=ids, decoder_input_ids=ids).logits


def encoded(make):
    return lambda: Encoded(make().net)


NETWORKS["t5"] = (encoded(NETWORKS["t5"][0]), NETWORKS["t5"][1])


class Recurrent(nn.Module):
    """Layers of one kind of recurrence, and class scores of what comes last."""

    def __init__(self, kind):
        super().__init__()
        self.cells = kind(128, 256, num_layers=2, batch_first=True)
        self.head = nn.Linear(256, CLASSES)

    def scores(self, x):
        return self.head(self.cells(x)[0][:, -1])

    def forward(self, x, labels):
        return F.cross_entropy(self.scores(x), labels)


def sequences():
    return torch.randn(32, 64, 128), torch.randint(0, CLASSES, (32,))


NETWORKS["lstm"] = (lambda: Recurrent(nn.LSTM), sequences)
NETWORKS["gru"] = (lambda: Recurrent(nn.GRU), sequences)


def twice(inner, outer):
    layers = []
    for channels in (inner, outer):
        layers += [nn.Conv2d(channels, outer, 3, padding=1, bias=False), nn.BatchNorm2d(outer), nn.ReLU(inplace=True)]
    return nn.Sequential(*layers)


class UNet(nn.Module):
    """Ronneberger et al. 2015 with padding and batch norm: four halvings, transposed convolutions, skips."""

    def __init__(self, width=32, depth=4):
        super().__init__()
        widths = [width << i for i in range(depth + 1)]
        self.down = nn.ModuleList([twice(a, b) for a, b in zip([3] + widths, widths)])
        self.rise = nn.ModuleList([nn.ConvTranspose2d(2 * w, w, 2, stride=2) for w in reversed(widths[:-1])])
        self.up = nn.ModuleList([twice(2 * w, w) for w in reversed(widths[:-1])])
        self.head = nn.Conv2d(width, 2, 1)

    def scores(self, x):
        kept = []
        for block in self.down[:-1]:
            kept.append(block(x))
            x = F.max_pool2d(kept[-1], 2)
        x = self.down[-1](x)
        for rise, block in zip(self.rise, self.up):
            x = block(torch.cat([kept.pop(), rise(x)], 1))
        return self.head(x)

    def forward(self, x, labels):
        return F.cross_entropy(self.scores(x), labels)


NETWORKS["unet"] = (UNet, lambda: (torch.randn(2, 3, 128, 128), torch.randint(0, 2, (2, 128, 128))))


class AudioNet(nn.Module):
    """M5 of Dai et al. 2016: one-dimensional convolutions over a waveform."""

    def __init__(self):
        super().__init__()
        layers, channels = [], 1
        for outer, size, stride in ((64, 80, 4), (64, 3, 1), (128, 3, 1), (256, 3, 1)):
            layers += [nn.Conv1d(channels, outer, size, stride, padding=size // 2), nn.BatchNorm1d(outer), nn.ReLU(), nn.MaxPool1d(4)]
            channels = outer
        self.net, self.head = nn.Sequential(*layers), nn.Linear(channels, CLASSES)

    def scores(self, x):
        return self.head(self.net(x).mean(-1))

    def forward(self, x, labels):
        return F.cross_entropy(self.scores(x), labels)


class Mixer(nn.Module):
    """MLP-Mixer of Tolstikhin et al. 2021, S/16: products over patches and over channels by turns."""

    def __init__(self, width=512, depth=8, patches=49, inner=(256, 2048)):
        super().__init__()
        self.patch = nn.Conv2d(3, width, 16, stride=16)

        def layer(size, hidden):
            return nn.Sequential(nn.Linear(size, hidden), nn.GELU(), nn.Linear(hidden, size))

        self.norms = nn.ModuleList([nn.LayerNorm(width) for _ in range(2 * depth + 1)])
        self.across = nn.ModuleList([layer(patches, inner[0]) for _ in range(depth)])
        self.along = nn.ModuleList([layer(width, inner[1]) for _ in range(depth)])
        self.head = nn.Linear(width, CLASSES)

    def scores(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        for i, (across, along) in enumerate(zip(self.across, self.along)):
            x = x + across(self.norms[2 * i](x).transpose(1, 2)).transpose(1, 2)
            x = x + along(self.norms[2 * i + 1](x))
        return self.head(self.norms[-1](x).mean(1))

    def forward(self, x, labels):
        return F.cross_entropy(self.scores(x), labels)


NETWORKS["mixer_s_16"] = (Mixer, images(8, 112))


def heard():
    """wav2vec 2.0 of Baevski et al. 2020, small, without what is drawn."""
    import transformers

    settings = transformers.Wav2Vec2Config(
        hidden_size=256, num_hidden_layers=4, num_attention_heads=4, intermediate_size=1024, num_labels=CLASSES, classifier_proj_size=128,
        conv_dim=(128,) * 7, num_conv_pos_embeddings=64, num_conv_pos_embedding_groups=8, hidden_dropout=0.0, activation_dropout=0.0,
        attention_dropout=0.0, feat_proj_dropout=0.0, final_dropout=0.0, layerdrop=0.0, apply_spec_augment=False)
    settings._attn_implementation = "sdpa"
    return Classified(still(transformers.Wav2Vec2ForSequenceClassification(settings)))


NETWORKS["wav2vec2"] = (heard, lambda: (torch.randn(4, 16000), torch.randint(0, CLASSES, (4,))))
NETWORKS["audio_m5"] = (AudioNet, lambda: (torch.randn(16, 1, 8000), torch.randint(0, CLASSES, (16,))))


class Loss(nn.Module):
    """One of tools/lib/torch_networks.py, whose outputs have names."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, *inputs):
        return self.net(*inputs)["loss"]


LOSS_ALONE = ["recommender", "diffusion_unet"]
NETWORKS["recommender"] = (
    lambda: Loss(Recommender(dense=16, tables=8, rows=2000, width=32, hidden=256)),
    lambda: (torch.randn(512, 16), torch.randint(0, 2000, (512, 8, 4)), torch.randint(0, 2, (512,)).float()))
NETWORKS["diffusion_unet"] = (
    lambda: Loss(DiffusionUNet(width=64)),
    lambda: (torch.randn(4, 3, 32, 32), torch.tensor([3, 50, 300, 700]), torch.randn(4, 3, 32, 32)))
