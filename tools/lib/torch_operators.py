"""What tools/torch-conformance compares: operators of PyTorch's own database
(torch.testing's OpInfo), and why the rest of core ATen is not compared.
"""

# Operators of the database that core ATen operators are or come from, and some
# that models use.
OPERATORS = """
abs acos acosh add addmm addcdiv addcmul alias_copy all amax amin any arange argmax argmin argsort as_strided asin asinh
atan atan2 atanh
baddbmm bitwise_and bitwise_not bitwise_or bitwise_xor bmm cat cdist ceil clamp clamp_max clamp_min clone constant_pad_nd
copysign cos cosh cumprod cumsum
diagonal div einsum eq erf erfc exp exp2 expand expm1 fill flip floor floor_divide fmod full full_like gather ge
grid_sampler_2d gt
hypot index_add index_copy index_fill index_put index_select isfinite isinf isnan le lerp linalg.vector_norm log log10
log1p log2 log_softmax logical_and logical_not logical_or logical_xor logsumexp lt masked_fill masked_scatter matmul max
maximum mean
min minimum mm movedim mul narrow native_batch_norm _native_batch_norm_legit native_layer_norm ne neg nan_to_num ones
ones_like permute pow prod reciprocal remainder
repeat repeat_interleave reshape roll round rsqrt rsub scalar_tensor scatter scatter_add scatter_reduce select
select_scatter
sigmoid sign sin sinh slice slice_scatter softmax sort split split_with_sizes sqrt square squeeze stack std sub sum
tan tanh to topk transpose tril triu trunc unbind unflatten unfold unsqueeze var var_mean view view_as where xlogy zeros
zeros_like __getitem__
nn.functional.adaptive_avg_pool1d nn.functional.adaptive_avg_pool2d nn.functional.adaptive_avg_pool3d
nn.functional.adaptive_max_pool2d nn.functional.avg_pool1d nn.functional.avg_pool2d nn.functional.avg_pool3d
nn.functional.batch_norm nn.functional.binary_cross_entropy nn.functional.binary_cross_entropy_with_logits
nn.functional.celu nn.functional.conv1d nn.functional.conv2d nn.functional.conv3d nn.functional.conv_transpose1d
nn.functional.conv_transpose2d nn.functional.conv_transpose3d nn.functional.cosine_similarity
nn.functional.cross_entropy nn.functional.elu nn.functional.embedding nn.functional.embedding_bag nn.functional.gelu
nn.functional.glu
nn.functional.grid_sample nn.functional.group_norm nn.functional.hardshrink nn.functional.hardsigmoid
nn.functional.hardswish nn.functional.hardtanh nn.functional.huber_loss nn.functional.instance_norm
nn.functional.interpolate nn.functional.kl_div nn.functional.l1_loss nn.functional.layer_norm
nn.functional.leaky_relu nn.functional.linear nn.functional.logsigmoid nn.functional.max_pool1d
nn.functional.max_pool2d nn.functional.max_pool3d nn.functional.mish nn.functional.mse_loss nn.functional.nll_loss
nn.functional.normalize nn.functional.one_hot nn.functional.pad nn.functional.pdist nn.functional.pixel_shuffle
nn.functional.pixel_unshuffle nn.functional.prelu nn.functional.relu nn.functional.relu6 nn.functional.rms_norm
nn.functional.scaled_dot_product_attention nn.functional.selu nn.functional.silu nn.functional.smooth_l1_loss
nn.functional.softplus nn.functional.softshrink nn.functional.softsign nn.functional.tanhshrink
nn.functional.threshold nn.functional.unfold nn.functional.upsample_bilinear nn.functional.upsample_nearest
""".split()

# Variants of them that are none on a CPU, or of complex numbers.
NO_VARIANTS = {"triton_optimized", "complex"}

RANDOM = "random: the same distribution, not the same numbers"

# Core ATen operators that no sample is compared of, and why.
NOT_COMPARED = {
    "_adaptive_avg_pool2d_backward": "a derivative: compared as the gradient of its operator",
    "avg_pool2d_backward": "a derivative: compared as the gradient of its operator",
    "convolution_backward": "a derivative: compared as the gradient of its operator",
    "embedding_dense_backward": "a derivative: compared as the gradient of its operator",
    "max_pool2d_with_indices_backward": "a derivative: compared as the gradient of its operator",
    "native_group_norm_backward": "a derivative: compared as the gradient of its operator",
    "native_layer_norm_backward": "a derivative: compared as the gradient of its operator",
    "_fft_c2r": "complex numbers, which are refused",
    "_fft_r2c": "complex numbers, which are refused",
    "_local_scalar_dense": "a number that goes to the host inside of a program: refused",
    "nonzero": "sizes that follow from data: refused",
    "empty.memory_format": "what it holds is nobody's",
    "empty_strided": "what it holds is nobody's",
    "native_dropout": RANDOM,
    "rand": RANDOM,
    "randn": RANDOM,
    "randperm": RANDOM,
    "sym_is_contiguous": "of symbolic sizes, which samples do not have",
    "sym_numel": "of symbolic sizes, which samples do not have",
    "sym_size.int": "of symbolic sizes, which samples do not have",
    "sym_storage_offset": "of symbolic sizes, which samples do not have",
    "sym_stride.int": "of symbolic sizes, which samples do not have",
}

NO_SAMPLE = "in the core ATen of no sample: decomposed, or another overload"

# What the loss over an operator's results is made of.
LOSS = {"add.Tensor", "mul.Tensor", "sum.dim_IntList", "clone", "full", "_to_copy"}

# Refused in integers.
WINDOWS = {f"nn.functional.{kind}{n}d" for kind in ("conv", "conv_transpose", "avg_pool", "max_pool") for n in (1, 2, 3)}
OF_INTEGERS = "convolutions and pools of 64-bit integers, which networks do not have: refused"


def reason_against(name, kind, sample):
    """Why a sample of this operator and type is not compared; nothing if it is."""
    if name in WINDOWS and kind == "int64":
        return OF_INTEGERS
    if sample.kwargs.get("dropout_p", 0) > 0:
        return RANDOM
    return ""


PREFACE = """
For each operator, samples of PyTorch's own database of operators (`torch.testing`'s OpInfo) are exported as a module of that
call, compiled for the CPU and run: outputs and the gradients of all inputs have to be PyTorch's. At most eight samples of
each operator, variant and type are taken, spread over all of them, with one that has a tensor without elements where there
is one. The first type's samples are compared as they are exported, and every second one again after `run_decompositions()`,
which leaves core ATen alone.

Results are equal within a bound (of the element and a tenth of the largest one; f32: 2e-4, bf16: 2e-2), or at most four
times as far from what PyTorch computes in f64 as PyTorch's own. Integers are equal; `sort`, `argsort` and `topk` may give
equal elements in another order. Gradients that are infinite or NaN in PyTorch are not compared. *Refused* means an error
that says so when the model is compiled.
"""
