"""The networks of tools/torch-networks: name -> (make the module, make its inputs).

Each is small enough for a step of less than a second and has its
architecture's parts; dropout is 0, since random numbers are not PyTorch's.
"""
import torch
import torch.nn.functional as F
from torch import nn


class Trained(nn.Module):
    """A network with a loss: its own if it has one, else its outputs are to be waves."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, *args):
        kwargs = {}
        if getattr(self.net, "keywords", None):
            args, kwargs = (), dict(zip(self.net.keywords, args))
        out = self.net(*args, **kwargs)
        if getattr(out, "loss", None) is not None:
            return {"loss": out.loss}
        if isinstance(out, dict) and "loss" in out:
            return {"loss": out["loss"]}
        loss = 0.0
        for t in torch.utils._pytree.tree_leaves(out if isinstance(out, (dict, tuple, list, torch.Tensor)) else tuple(out.values())):
            if isinstance(t, torch.Tensor) and t.is_floating_point():
                waves = torch.cos(torch.arange(t.numel(), dtype=t.dtype)).reshape(t.shape)
                loss = loss + F.mse_loss(t, waves)
        return {"loss": loss}


NETWORKS = {}


def still(model):
    """Without dropout of values or of layers."""
    for module in model.modules():
        if isinstance(module, nn.Dropout) or type(module).__name__ == "StochasticDepth":
            module.p = 0.0
        if hasattr(module, "drop_prob"):
            module.drop_prob = 0.0
    return model


def images(rows, size, channels=3):
    return lambda: (torch.randn(rows, channels, size, size),)


def vision(name, rows=2, size=64, **options):
    def make():
        import torchvision

        model = torchvision.models.get_model(name, weights=None, **options)
        if name == "vgg11":  # most of its parameters are these
            model.classifier = nn.Linear(512 * 49, 10)
        if name == "vit_b_16":  # begins with zeros, through which no gradient comes
            nn.init.normal_(model.heads.head.weight, std=0.02)
        return still(model)

    NETWORKS[name] = (make, images(rows, size))


for name in ("alexnet", "vgg11", "squeezenet1_1"):
    vision(name, 2, 96)
# Normalized over few numbers, rounding errors of f32 grow large: larger images.
for name in ("resnet18", "resnext50_32x4d", "mobilenet_v2", "mobilenet_v3_small", "shufflenet_v2_x0_5", "mnasnet0_5",
             "regnet_y_400mf", "efficientnet_b0", "densenet121"):
    vision(name, 8, 64)
vision("googlenet", 4, 96, aux_logits=False, init_weights=True)
vision("convnext_tiny", 2, 64)
vision("swin_t", 2, 64)
vision("swin_v2_t", 2, 64)
vision("vit_b_16", 2, 224)
vision("maxvit_t", 2, 224)


def segmentation(name, **options):
    def make():
        import torchvision

        model = torchvision.models.get_model(name, weights=None, weights_backbone=None, num_classes=5, **options)
        return still(model)

    NETWORKS[name] = (make, images(4, 64))


segmentation("lraspp_mobilenet_v3_large")
segmentation("fcn_resnet50")
segmentation("deeplabv3_mobilenet_v3_large")


def fpn():
    from torchvision.models.detection.backbone_utils import resnet_fpn_backbone

    return resnet_fpn_backbone(backbone_name="resnet18", weights=None, norm_layer=nn.BatchNorm2d, trainable_layers=5)


def video():
    import torchvision

    return torchvision.models.video.r3d_18(weights=None)


NETWORKS["fpn_resnet18"] = (fpn, images(4, 64))
NETWORKS["r3d_18"] = (video, lambda: (torch.randn(2, 3, 8, 32, 32),))


def tokens(rows=2, length=16, vocabulary=99):
    return torch.randint(3, vocabulary, (rows, length))


def transformer(name, kind, config, inputs, keywords, **options):
    """A model of transformers: class, configuration class, what it is called with."""

    def make():
        import transformers

        settings = getattr(transformers, config)(**options)
        settings._attn_implementation = options.get("attn_implementation", "sdpa")
        settings.use_cache = False
        try:
            model = getattr(transformers, kind)(settings)
        except (ValueError, ImportError):  # has no fused attention
            settings._attn_implementation = "eager"
            model = getattr(transformers, kind)(settings)
        still(model)
        model.keywords = keywords
        return model

    NETWORKS[name] = (make, inputs)


def language_model():
    ids = tokens()
    return ids, ids.clone()


def masked_pair():
    ids = tokens()
    return ids, torch.ones_like(ids), torch.tensor([0, 1])


CAUSAL = ("input_ids", "labels")
CLASSIFY = ("input_ids", "attention_mask", "labels")
SIZES = dict(vocab_size=99, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48,
             max_position_embeddings=64)
STILL = dict(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)

transformer("gpt2", "GPT2LMHeadModel", "GPT2Config", language_model, CAUSAL, vocab_size=99, n_embd=32, n_layer=2, n_head=4,
            n_positions=64, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
for name, kind, config, extra in (
        ("llama", "LlamaForCausalLM", "LlamaConfig", dict(num_key_value_heads=2)),
        ("mistral", "MistralForCausalLM", "MistralConfig", dict(num_key_value_heads=2, sliding_window=8)),
        ("qwen2", "Qwen2ForCausalLM", "Qwen2Config", dict(num_key_value_heads=2)),
        ("qwen3", "Qwen3ForCausalLM", "Qwen3Config", dict(num_key_value_heads=2, head_dim=8)),
        ("gemma2", "Gemma2ForCausalLM", "Gemma2Config", dict(num_key_value_heads=2, head_dim=8, sliding_window=8)),
        ("phi", "PhiForCausalLM", "PhiConfig", dict(resid_pdrop=0.0, embd_pdrop=0.0, attention_dropout=0.0)),
        ("gpt_neox", "GPTNeoXForCausalLM", "GPTNeoXConfig", dict(hidden_dropout=0.0, attention_dropout=0.0)),
        ("olmo2", "Olmo2ForCausalLM", "Olmo2Config", dict(num_key_value_heads=2)),
        ("mixtral", "MixtralForCausalLM", "MixtralConfig", dict(num_key_value_heads=2, num_local_experts=4))):
    transformer(name, kind, config, language_model, CAUSAL, **SIZES, **extra)
transformer("opt", "OPTForCausalLM", "OPTConfig", language_model, CAUSAL, vocab_size=99, hidden_size=32, ffn_dim=48,
            num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=64, word_embed_proj_dim=32, dropout=0.0, layerdrop=0.0)
transformer("bloom", "BloomForCausalLM", "BloomConfig", language_model, CAUSAL, vocab_size=99, hidden_size=32, n_layer=2, n_head=4,
            hidden_dropout=0.0, attention_dropout=0.0)
transformer("mamba", "MambaForCausalLM", "MambaConfig", language_model, CAUSAL, vocab_size=99, hidden_size=32, num_hidden_layers=2,
            state_size=8, conv_kernel=4)
for name, kind, config, extra in (
        ("bert", "BertForSequenceClassification", "BertConfig", STILL),
        ("roberta", "RobertaForSequenceClassification", "RobertaConfig", STILL),
        ("electra", "ElectraForSequenceClassification", "ElectraConfig", dict(embedding_size=24, **STILL)),
        ("albert", "AlbertForSequenceClassification", "AlbertConfig", dict(embedding_size=24, classifier_dropout_prob=0.0, **STILL)),
        ("mpnet", "MPNetForSequenceClassification", "MPNetConfig", STILL)):
    transformer(name, kind, config, masked_pair, CLASSIFY, **SIZES, **extra)
transformer("distilbert", "DistilBertForSequenceClassification", "DistilBertConfig", masked_pair, CLASSIFY, vocab_size=99, dim=32,
            n_layers=2, n_heads=4, hidden_dim=48, max_position_embeddings=64, dropout=0.0, attention_dropout=0.0, seq_classif_dropout=0.0)
transformer("xlnet", "XLNetForSequenceClassification", "XLNetConfig", masked_pair, CLASSIFY, vocab_size=99, d_model=32, n_layer=2, n_head=4,
            d_inner=48, dropout=0.0, summary_last_dropout=0.0)
transformer("t5", "T5ForConditionalGeneration", "T5Config", language_model, CAUSAL, vocab_size=99, d_model=32, d_kv=8, d_ff=48,
            num_layers=2, num_heads=4, dropout_rate=0.0, decoder_start_token_id=0)
transformer("bart", "BartForConditionalGeneration", "BartConfig", language_model, CAUSAL, vocab_size=99, d_model=32,
            encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48,
            max_position_embeddings=64, dropout=0.0, attention_dropout=0.0, activation_dropout=0.0)
PATCHES = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, image_size=32, patch_size=8)
for name, kind, config in (("vit", "ViTForImageClassification", "ViTConfig"), ("deit", "DeiTForImageClassification", "DeiTConfig"),
                           ("dinov2", "Dinov2ForImageClassification", "Dinov2Config"),
                           ("beit", "BeitForImageClassification", "BeitConfig")):
    transformer(name, kind, config, images(2, 32), ("pixel_values",), **PATCHES, **STILL)
transformer("segformer", "SegformerForSemanticSegmentation", "SegformerConfig", images(2, 64), ("pixel_values",), depths=[1, 1, 1, 1],
            hidden_sizes=[8, 16, 24, 32], num_attention_heads=[1, 2, 3, 4], decoder_hidden_size=16, drop_path_rate=0.0,
            classifier_dropout_prob=0.0, **STILL)
transformer("mobilevit", "MobileViTForImageClassification", "MobileViTConfig", images(4, 64), ("pixel_values",),
            hidden_sizes=[16, 24, 32], neck_hidden_sizes=[8, 8, 16, 24, 32, 40, 64], num_attention_heads=2, image_size=64,
            classifier_dropout_prob=0.0, **STILL)
transformer("whisper", "WhisperForConditionalGeneration", "WhisperConfig", lambda: (torch.randn(2, 8, 40), tokens()),
            ("input_features", "labels"), vocab_size=99, num_mel_bins=8, d_model=32, encoder_layers=2, decoder_layers=2,
            encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48, max_source_positions=20,
            max_target_positions=32, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1, dropout=0.0)
SOUND = dict(vocab_size=32, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, conv_dim=[16, 16],
             conv_stride=[5, 4], conv_kernel=[10, 8], num_feat_extract_layers=2, num_conv_pos_embeddings=16,
             num_conv_pos_embedding_groups=4, hidden_dropout=0.0, activation_dropout=0.0, attention_dropout=0.0, feat_proj_dropout=0.0,
             feat_quantizer_dropout=0.0, final_dropout=0.0, layerdrop=0.0, mask_time_prob=0.0, apply_spec_augment=False)
for name, kind, config in (("wav2vec2", "Wav2Vec2Model", "Wav2Vec2Config"), ("hubert", "HubertModel", "HubertConfig")):
    transformer(name, kind, config, lambda: (torch.randn(2, 800),), ("input_values",), **SOUND)
transformer("clip", "CLIPModel", "CLIPConfig", lambda: (tokens(), torch.randn(2, 3, 32, 32)), ("input_ids", "pixel_values"),
            text_config=dict(vocab_size=99, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48,
                             max_position_embeddings=64, eos_token_id=2),
            vision_config=dict(**PATCHES), projection_dim=16)


class Recurrent(nn.Module):
    """Layers of one kind of recurrence, and a head on what comes last."""

    def __init__(self, kind, **options):
        super().__init__()
        self.cell = kind(6, 16, batch_first=True, **options)
        self.head = nn.Linear(32 if options.get("bidirectional") else 16, 3)

    def forward(self, x, labels):
        return {"loss": F.cross_entropy(self.head(self.cell(x)[0][:, -1]), labels)}


def sequences():
    return torch.randn(4, 12, 6), torch.randint(0, 3, (4,))


NETWORKS["lstm"] = (lambda: Recurrent(nn.LSTM, num_layers=2), sequences)
NETWORKS["gru_both_ways"] = (lambda: Recurrent(nn.GRU, bidirectional=True), sequences)
NETWORKS["rnn"] = (lambda: Recurrent(nn.RNN, nonlinearity="relu"), sequences)


class Residual(nn.Module):
    def __init__(self, inner, outer, time):
        super().__init__()
        self.first = nn.Sequential(nn.GroupNorm(4, inner), nn.SiLU(), nn.Conv2d(inner, outer, 3, padding=1))
        self.time = nn.Linear(time, outer)
        self.second = nn.Sequential(nn.GroupNorm(4, outer), nn.SiLU(), nn.Conv2d(outer, outer, 3, padding=1))
        self.skip = nn.Conv2d(inner, outer, 1) if inner != outer else nn.Identity()

    def forward(self, x, time):
        y = self.first(x) + self.time(time)[:, :, None, None]
        return self.skip(x) + self.second(y)


class DiffusionUNet(nn.Module):
    """Denoising: sines of the time, residual blocks, attention at the bottom, skips."""

    def __init__(self, width=16):
        super().__init__()
        self.width = width
        self.time = nn.Sequential(nn.Linear(width, 32), nn.SiLU(), nn.Linear(32, 32))
        self.enter = nn.Conv2d(3, width, 3, padding=1)
        self.down = nn.ModuleList([Residual(width, width, 32), Residual(width, 2 * width, 32)])
        self.attention = nn.MultiheadAttention(2 * width, 4, batch_first=True)
        self.middle = Residual(2 * width, 2 * width, 32)
        self.up = nn.ModuleList([Residual(4 * width, width, 32), Residual(2 * width, width, 32)])
        self.leave = nn.Conv2d(width, 3, 3, padding=1)

    def forward(self, x, t, noise):
        rates = torch.exp(-torch.arange(self.width // 2) * 0.8)
        angles = t[:, None].to(x.dtype) * rates
        time = self.time(torch.cat([angles.sin(), angles.cos()], -1))
        kept = []
        y = self.enter(x + noise)
        for block in self.down:
            y = block(y, time)
            kept.append(y)
            y = F.avg_pool2d(y, 2)
        flat = y.flatten(2).transpose(1, 2)
        y = y + self.attention(flat, flat, flat, need_weights=False)[0].transpose(1, 2).reshape(y.shape)
        y = self.middle(y, time)
        for block in self.up:
            y = block(torch.cat([F.interpolate(y, scale_factor=2.0, mode="nearest"), kept.pop()], 1), time)
        return {"loss": F.mse_loss(self.leave(y), noise)}


NETWORKS["diffusion_unet"] = (
    DiffusionUNet, lambda: (torch.randn(2, 3, 16, 16), torch.tensor([3, 700]), torch.randn(2, 3, 16, 16)))


class Recommender(nn.Module):
    """Bags of embeddings of categories, crossed with dense features."""

    def __init__(self, dense=5, tables=3, rows=20, width=8, hidden=16):
        super().__init__()
        self.tables = nn.ModuleList([nn.Embedding(rows, width) for _ in range(tables)])
        self.dense = nn.Sequential(nn.Linear(dense, hidden), nn.ReLU(), nn.Linear(hidden, width))
        self.top = nn.Sequential(nn.Linear(width + (tables + 1) * tables // 2, hidden), nn.ReLU(), nn.Linear(hidden, 1))

    def forward(self, dense, categories, clicked):
        rows = [self.dense(dense)] + [t(categories[:, i]).mean(1) for i, t in enumerate(self.tables)]
        stacked = torch.stack(rows, 1)
        crossed = torch.bmm(stacked, stacked.transpose(1, 2))
        i, j = torch.tril_indices(len(rows), len(rows), offset=-1)
        out = self.top(torch.cat([rows[0], crossed[:, i, j]], 1)).squeeze(-1)
        return {"loss": F.binary_cross_entropy_with_logits(out, clicked)}


NETWORKS["recommender"] = (
    Recommender, lambda: (torch.randn(6, 5), torch.randint(0, 20, (6, 3, 4)), torch.randint(0, 2, (6,)).float()))


class GraphConvolution(nn.Module):
    """Messages along edges, summed where they arrive."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(6, 12), nn.Linear(12, 3)

    def forward(self, x, edges, labels):
        y = x
        for layer in (self.first, self.second):
            y = layer(y)
            y = y + torch.zeros_like(y).index_add(0, edges[1], y[edges[0]])
            y = torch.tanh(y)
        return {"loss": F.nll_loss(F.log_softmax(y, -1), labels)}


NETWORKS["graph_convolution"] = (
    GraphConvolution, lambda: (torch.randn(9, 6), torch.randint(0, 9, (2, 20)), torch.randint(0, 3, (9,))))


def timm_network(name, rows=4, size=64, **options):
    def make():
        import timm

        return still(timm.create_model(name, pretrained=False, **options))

    NETWORKS["timm_" + name.split(".")[0]] = (make, images(rows, size))


timm_network("convnextv2_atto", 4, num_classes=10, depths=(1, 1, 2, 1), dims=(8, 16, 24, 32))

transformer("squeezebert", "SqueezeBertForSequenceClassification", "SqueezeBertConfig", masked_pair, CLASSIFY, embedding_size=32,
            **SIZES, **STILL)
transformer("funnel", "FunnelForSequenceClassification", "FunnelConfig", masked_pair, CLASSIFY, vocab_size=99, block_sizes=[1, 1],
            d_model=32, n_head=4, d_head=8, d_inner=48, hidden_dropout=0.0, attention_dropout=0.0, activation_dropout=0.0)
transformer("sam_vision", "SamVisionModel", "SamVisionConfig", images(2, 64), ("pixel_values",), hidden_size=32, output_channels=16,
            num_hidden_layers=2, num_attention_heads=4, image_size=64, patch_size=8, window_size=3, global_attn_indexes=[1],
            mlp_dim=48)
transformer("dpt", "DPTForDepthEstimation", "DPTConfig", images(2, 64), ("pixel_values",), hidden_size=32, num_hidden_layers=4,
            num_attention_heads=4, intermediate_size=48, image_size=64, patch_size=16, backbone_out_indices=[0, 1, 2, 3],
            neck_hidden_sizes=[8, 16, 24, 32], fusion_hidden_size=16, head_in_index=-1, **STILL)
transformer("convbert", "ConvBertForSequenceClassification", "ConvBertConfig", masked_pair, CLASSIFY, embedding_size=32,
            head_ratio=2, conv_kernel_size=3, classifier_dropout=0.0, **SIZES, **STILL)
transformer("pegasus", "PegasusForConditionalGeneration", "PegasusConfig",
            lambda: (tokens(), torch.ones(2, 16, dtype=torch.long).tril(12), tokens()), ("input_ids", "attention_mask", "labels"),
            vocab_size=99, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
            encoder_ffn_dim=48, decoder_ffn_dim=48, max_position_embeddings=64, dropout=0.0, attention_dropout=0.0,
            activation_dropout=0.0, decoder_start_token_id=0)


class Spectral(nn.Module):
    """A discriminator whose weights are over their largest singular value."""

    def __init__(self):
        super().__init__()
        spectral = torch.nn.utils.parametrizations.spectral_norm
        self.layers = nn.Sequential(spectral(nn.Conv2d(3, 8, 3, 2, 1)), nn.LeakyReLU(0.2), spectral(nn.Conv2d(8, 16, 3, 2, 1)),
                                    nn.LeakyReLU(0.2), nn.Flatten(), spectral(nn.Linear(256, 1)))

    def forward(self, x, real):
        return {"loss": F.binary_cross_entropy_with_logits(self.layers(x).squeeze(-1), real)}


NETWORKS["spectral_discriminator"] = (Spectral, lambda: (torch.randn(4, 3, 16, 16), torch.tensor([1.0, 0, 0, 1])))


class MatrixLstm(nn.Module):
    """The memory of xLSTM: a matrix for each head, with exponential gates that are kept in range."""

    def __init__(self, width=16, heads=2):
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(width)
        self.qkv, self.gates, self.out = nn.Linear(width, 3 * width), nn.Linear(width, 2 * heads), nn.Linear(width, width)

    def forward(self, x, y):
        b, t, c = x.shape
        q, k, v = (p.view(b, t, self.heads, -1).transpose(1, 2) for p in self.qkv(self.norm(x)).chunk(3, -1))
        enter, forget = (p.transpose(1, 2) for p in self.gates(x).chunk(2, -1))
        kept = torch.cumsum(F.logsigmoid(forget), -1)
        decay = kept[..., :, None] - kept[..., None, :] + enter[..., None, :]
        decay = decay.masked_fill(torch.ones(t, t, dtype=torch.bool).triu(1), float("-inf"))
        largest = decay.amax(-1, keepdim=True).detach()
        scores = (q @ k.transpose(-1, -2)) / k.shape[-1]**0.5 * torch.exp(decay - largest)
        scores = scores / torch.maximum(scores.sum(-1, keepdim=True).abs(), torch.exp(-largest))
        out = (scores @ v).transpose(1, 2).reshape(b, t, c)
        return {"loss": F.mse_loss(x + self.out(out), y)}


NETWORKS["xlstm"] = (MatrixLstm, lambda: (torch.randn(2, 12, 16), torch.randn(2, 12, 16)))
