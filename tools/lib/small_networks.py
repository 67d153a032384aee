"""small_networks.py NAME X.pt2: a network of tools/bench/networks, or one like it, at a size that an emulated GPU runs in minutes.

Images are small, sequences short, layers few; the kinds of layers and the odd numbers stay. Needs PyTorch.
"""

import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(ROOT, "tools", "bench", "networks"), os.path.join(ROOT, "tools", "lib")]

import networks  # noqa: E402
import torch  # noqa: E402

SMALL = {}


def vision(name, rows, size, make=None):
    def made():
        import torchvision

        return networks.Classified(networks.still(make() if make else torchvision.models.get_model(name, weights=None, num_classes=10)))

    SMALL[name] = (made, lambda: (torch.randn(rows, 3, size, size), torch.randint(0, 10, (rows,))))


def convnext():
    from torchvision.models.convnext import CNBlockConfig, ConvNeXt

    return ConvNeXt([CNBlockConfig(48, 96, 1), CNBlockConfig(96, None, 1)], num_classes=10)


def vit():
    from torchvision.models import VisionTransformer

    return VisionTransformer(32, 8, 2, 4, 128, 256, num_classes=10)


def swin():
    from torchvision.models import SwinTransformer

    return SwinTransformer([4, 4], 32, [2, 2], [2, 4], [4, 4], num_classes=10)


vision("resnet18", 2, 32)
vision("mobilenet_v2", 2, 32)
vision("efficientnet_b0", 2, 32)
vision("convnext_tiny", 2, 32, convnext)
vision("vit_b_16", 2, 32, vit)
vision("swin_t", 2, 64, swin)


def language(name, kind, config, rows, length, vocabulary, make=networks.NextTokens, **options):
    def made():
        import transformers

        settings = getattr(transformers, config)(vocab_size=vocabulary, use_cache=False, **options)
        settings._attn_implementation = "sdpa"
        return make(networks.still(getattr(transformers, kind)(settings)))

    SMALL[name] = (made, networks.tokens(rows, length, vocabulary))


WIDE = dict(hidden_size=128, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=64)
language("gpt2", "GPT2LMHeadModel", "GPT2Config", 1, 64, 1009, n_layer=2, n_embd=192, n_head=3, n_positions=64, resid_pdrop=0.0, embd_pdrop=0.0,
         attn_pdrop=0.0)
language("llama", "LlamaForCausalLM", "LlamaConfig", 1, 48, 1000, intermediate_size=344, num_key_value_heads=2, **WIDE)
language("bert", "BertForMaskedLM", "BertConfig", 1, 48, 1000, intermediate_size=512, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, **WIDE)
language("t5", "T5ForConditionalGeneration", "T5Config", 1, 32, 1000, networks.Encoded, d_model=96, d_kv=32, d_ff=256, num_layers=2, num_heads=3,
         dropout_rate=0.0, decoder_start_token_id=0)


class Recurrent(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.cells, self.head = torch.nn.LSTM(32, 64, num_layers=2, batch_first=True), torch.nn.Linear(64, 10)

    def forward(self, x, labels):
        return torch.nn.functional.cross_entropy(self.head(self.cells(x)[0][:, -1]), labels)


SMALL["lstm"] = (Recurrent, lambda: (torch.randn(4, 12, 32), torch.randint(0, 10, (4,))))
SMALL["unet"] = (lambda: networks.UNet(width=16, depth=2), lambda: (torch.randn(1, 3, 32, 32), torch.randint(0, 2, (1, 32, 32))))
SMALL["audio_m5"] = (networks.AudioNet, lambda: (torch.randn(2, 1, 2000), torch.randint(0, networks.CLASSES, (2,))))
SMALL["recommender"] = (
    lambda: networks.Loss(networks.Recommender(dense=16, tables=8, rows=200, width=32, hidden=64)),
    lambda: (torch.randn(32, 16), torch.randint(0, 200, (32, 8, 4)), torch.randint(0, 2, (32,)).float()))


def main():
    name, path = sys.argv[1:]
    if name not in SMALL:
        sys.exit(f"expected a network ({', '.join(SMALL)}), but got '{name}'")
    torch.manual_seed(0)
    make, arguments = SMALL[name]
    torch.export.save(torch.export.export(make().train(), arguments(), strict=False), path)


if __name__ == "__main__":
    main()
