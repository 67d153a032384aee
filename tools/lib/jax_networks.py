"""The networks of tools/jax-networks: name -> a function of a key that gives the
loss function `f(params, *inputs)`, its params, and its inputs.

After the examples of Flax and Equinox, and small ones in plain JAX.
"""
import equinox as eqx
import flax.linen as nn
import jax
import jax.numpy as jnp
from flax import nnx

NETWORKS = {}


def network(make):
    NETWORKS[make.__name__] = make
    return make


def classes(logits, labels):
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), labels[..., None], -1))


def linen(key, module, loss, *inputs, targets=(), **options):
    """A module of Flax with its variables: those that no gradient trains are inputs behind the others."""
    variables = module.init(key, *inputs, **options)
    params = variables["params"]
    rest = {k: v for k, v in variables.items() if k != "params"}

    def f(params, state, *given):
        outputs = module.apply({"params": params, **state}, *given[:len(inputs)], mutable=list(state) if state else False, **options)
        outputs = outputs[0] if state else outputs
        return loss(outputs, *given[len(inputs):])

    if rest:
        return f, params, (rest, *inputs, *targets)
    return (lambda params, *given: f(params, {}, *given)), params, (*inputs, *targets)


def numbers(seed, *shape):
    return jax.random.normal(jax.random.key(seed), shape)


def labels(seed, count, *shape):
    return jax.random.randint(jax.random.key(seed), shape, 0, count)


class Mnist(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.avg_pool(nn.relu(nn.Conv(8, (3, 3))(x)), (2, 2), (2, 2))
        x = nn.avg_pool(nn.relu(nn.Conv(16, (3, 3))(x)), (2, 2), (2, 2))
        return nn.Dense(10)(nn.relu(nn.Dense(32)(x.reshape(x.shape[0], -1))))


@network
def mnist_cnn(key):
    return linen(key, Mnist(), classes, numbers(0, 4, 16, 16, 1), targets=(labels(1, 10, 4),))


class ResNetBlock(nn.Module):
    filters: int
    strides: int = 1

    @nn.compact
    def __call__(self, x):
        norm = lambda: nn.BatchNorm(use_running_average=False, momentum=0.9)  # noqa: E731
        y = nn.relu(norm()(nn.Conv(self.filters, (3, 3), self.strides, use_bias=False)(x)))
        y = norm()(nn.Conv(self.filters, (3, 3), use_bias=False)(y))
        if x.shape != y.shape:
            x = norm()(nn.Conv(self.filters, (1, 1), self.strides, use_bias=False)(x))
        return nn.relu(x + y)


class ResNet(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.max_pool(nn.relu(nn.Conv(8, (7, 7), 2)(x)), (3, 3), (2, 2), padding="SAME")
        for filters, strides in ((8, 1), (16, 2), (32, 2)):
            x = ResNetBlock(filters, strides)(x)
        return nn.Dense(10)(x.mean((1, 2)))


@network
def imagenet_resnet(key):
    return linen(key, ResNet(), classes, numbers(0, 8, 32, 32, 3), targets=(labels(1, 10, 8),))


class Encoder(nn.Module):
    @nn.compact
    def __call__(self, x, key):
        h = nn.relu(nn.Dense(32)(x))
        mean, logvar = nn.Dense(4)(h), nn.Dense(4)(h)
        z = mean + jnp.exp(0.5 * logvar) * jax.random.normal(jax.random.wrap_key_data(key), mean.shape)
        y = nn.Dense(16)(nn.relu(nn.Dense(32)(z)))
        return y, mean, logvar


@network
def vae(key):
    def loss(outputs, x):
        y, mean, logvar = outputs
        crossed = jnp.sum(jnp.maximum(y, 0) - y * x + jnp.log1p(jnp.exp(-jnp.abs(y))), -1)
        return jnp.mean(crossed - 0.5 * jnp.sum(1 + logvar - mean**2 - jnp.exp(logvar), -1))

    x = jax.nn.sigmoid(numbers(0, 6, 16))
    return linen(key, Encoder(), loss, x, jax.random.key_data(jax.random.key(3)), targets=(x,))


class LanguageModel(nn.Module):
    @nn.compact
    def __call__(self, ids):
        embed = nn.Embed(50, 32)
        x = embed(ids) + self.param("place", nn.initializers.normal(0.02), (ids.shape[1], 32))
        mask = nn.make_causal_mask(ids)
        for _ in range(2):
            x = x + nn.MultiHeadDotProductAttention(4)(nn.LayerNorm()(x), mask=mask)
            x = x + nn.Dense(32)(nn.gelu(nn.Dense(64)(nn.LayerNorm()(x))))
        return embed.attend(nn.LayerNorm()(x))


@network
def lm1b_transformer(key):
    ids = labels(0, 50, 2, 12)
    return linen(key, LanguageModel(), lambda y, ids: classes(y[:, :-1], ids[:, 1:]), ids, targets=(ids,))


class Seq2Seq(nn.Module):
    @nn.compact
    def __call__(self, source, target):
        carry, _ = nn.RNN(nn.LSTMCell(16), return_carry=True)(source)
        y = nn.RNN(nn.LSTMCell(16))(target, initial_carry=carry)
        return nn.Dense(10)(y)


@network
def seq2seq_lstm(key):
    source, target = (jax.nn.one_hot(labels(i, 10, 3, 6), 10) for i in (0, 1))
    return linen(key, Seq2Seq(), classes, source, target, targets=(labels(2, 10, 3, 6),))


class Sentiment(nn.Module):
    @nn.compact
    def __call__(self, ids):
        x = nn.Embed(40, 16)(ids)
        x = nn.Bidirectional(nn.RNN(nn.GRUCell(8)), nn.RNN(nn.GRUCell(8)))(x)
        weights = nn.softmax(nn.Dense(1)(nn.tanh(nn.Dense(8)(x))), 1)
        return nn.Dense(2)((x * weights).sum(1))


@network
def sst2_gru(key):
    return linen(key, Sentiment(), classes, labels(0, 40, 4, 9), targets=(labels(1, 2, 4),))


class ActorCritic(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.relu(nn.Conv(8, (8, 8), 4)(x / 255.0))
        x = nn.relu(nn.Dense(32)(x.reshape(x.shape[0], -1)))
        return nn.log_softmax(nn.Dense(4)(x)), nn.Dense(1)(x)[:, 0]


@network
def ppo_actor_critic(key):
    def loss(outputs, actions, old, advantages, returns):
        logs, values = outputs
        ratio = jnp.exp(jnp.take_along_axis(logs, actions[:, None], 1)[:, 0] - old)
        clipped = jnp.clip(ratio, 0.8, 1.2)
        policy = -jnp.minimum(ratio * advantages, clipped * advantages).mean()
        entropy = -(jnp.exp(logs) * logs).sum(1).mean()
        return policy + 0.5 * jnp.square(returns - values).mean() - 0.01 * entropy

    x = jax.random.uniform(jax.random.key(0), (5, 28, 28, 4)) * 255
    return linen(key, ActorCritic(), loss, x,
                 targets=(labels(1, 4, 5), jnp.full(5, -1.4), numbers(2, 5), numbers(3, 5)))


class VisionTransformer(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.Conv(32, (4, 4), 4, padding="VALID")(x).reshape(x.shape[0], -1, 32)
        first = self.param("cls", nn.initializers.normal(0.02), (1, 1, 32))
        x = jnp.concatenate([jnp.tile(first, (x.shape[0], 1, 1)), x], 1)
        x = x + self.param("place", nn.initializers.normal(0.02), (1, x.shape[1], 32))
        for _ in range(2):
            x = x + nn.MultiHeadDotProductAttention(4)(nn.LayerNorm()(x))
            x = x + nn.Dense(32)(nn.gelu(nn.Dense(64)(nn.LayerNorm()(x)), approximate=False))
        return nn.Dense(10)(nn.LayerNorm()(x)[:, 0])


@network
def vision_transformer(key):
    return linen(key, VisionTransformer(), classes, numbers(0, 3, 16, 16, 3), targets=(labels(1, 10, 3),))


class Mixer(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.Conv(24, (4, 4), 4)(x).reshape(x.shape[0], -1, 24)
        for _ in range(2):
            y = nn.LayerNorm()(x).swapaxes(1, 2)
            x = x + nn.Dense(x.shape[1])(nn.silu(nn.Dense(32)(y))).swapaxes(1, 2)
            x = x + nn.Dense(24)(nn.silu(nn.Dense(48)(nn.LayerNorm()(x))))
        return nn.Dense(10)(x.mean(1))


@network
def mlp_mixer(key):
    return linen(key, Mixer(), classes, numbers(0, 3, 16, 16, 3), targets=(labels(1, 10, 3),))


class UNet(nn.Module):
    @nn.compact
    def __call__(self, x):
        down = nn.swish(nn.GroupNorm(4)(nn.Conv(8, (3, 3))(x)))
        low = nn.swish(nn.GroupNorm(4)(nn.Conv(16, (3, 3), 2)(down)))
        up = nn.ConvTranspose(8, (2, 2), (2, 2))(low)
        up = nn.swish(nn.Conv(8, (3, 3))(jnp.concatenate([up, down], -1)))
        return nn.Conv(1, (1, 1))(up + jax.image.resize(low[..., :8], up.shape, "bilinear"))


@network
def unet(key):
    return linen(key, UNet(), lambda y, mask: -jnp.mean(mask * jax.nn.log_sigmoid(y) + (1 - mask) * jax.nn.log_sigmoid(-y)),
                 numbers(0, 2, 16, 16, 3), targets=(jnp.float32(numbers(1, 2, 16, 16, 1) > 0),))


class Graph(nn.Module):
    @nn.compact
    def __call__(self, nodes, senders, receivers):
        for width in (12, 8):
            message = nn.relu(nn.Dense(width)(jnp.concatenate([nodes[senders], nodes[receivers]], -1)))
            nodes = nn.LayerNorm()(nn.Dense(width)(jax.ops.segment_sum(message, receivers, nodes.shape[0])))
        return nn.Dense(2)(jax.ops.segment_sum(nodes, jnp.zeros(nodes.shape[0], jnp.int32), 1))


@network
def ogbg_graph_network(key):
    return linen(key, Graph(), classes, numbers(0, 7, 5), labels(1, 7, 16), labels(2, 7, 16), targets=(labels(3, 2, 1),))


def equinox(model, loss, *inputs):
    """A model of Equinox: its arrays are the params."""
    params, static = eqx.partition(model, eqx.is_inexact_array)

    def f(params, *given):
        return loss(eqx.combine(params, static), *given)

    return f, params, inputs


@network
def equinox_mlp(key):
    model = eqx.nn.MLP(6, 3, 16, 2, activation=jax.nn.softplus, key=key)
    return equinox(model, lambda m, x, y: jnp.mean((jax.vmap(m)(x) - y)**2), numbers(0, 5, 6), numbers(1, 5, 3))


class RNNClassifier(eqx.Module):
    cell: eqx.nn.GRUCell
    head: eqx.nn.Linear

    def __init__(self, key):
        first, second = jax.random.split(key)
        self.cell = eqx.nn.GRUCell(2, 10, key=first)
        self.head = eqx.nn.Linear(10, 1, key=second)

    def __call__(self, x):
        last, _ = jax.lax.scan(lambda h, one: (self.cell(one, h), None), jnp.zeros(10), x)
        return jax.nn.sigmoid(self.head(last))[0]


@network
def equinox_train_rnn(key):
    def loss(m, x, y):
        p = jax.vmap(m)(x)
        return -jnp.mean(y * jnp.log(p) + (1 - y) * jnp.log(1 - p))

    return equinox(RNNClassifier(key), loss, numbers(0, 4, 8, 2), jnp.array([0.0, 1, 1, 0]))


@network
def equinox_cnn(key):
    k = jax.random.split(key, 3)
    model = eqx.nn.Sequential([
        eqx.nn.Conv2d(1, 3, 4, key=k[0]), eqx.nn.MaxPool2d(2), eqx.nn.Lambda(jax.nn.relu), eqx.nn.Lambda(jnp.ravel),
        eqx.nn.Linear(3 * 12 * 12, 16, key=k[1]), eqx.nn.Lambda(jax.nn.sigmoid), eqx.nn.Linear(16, 10, key=k[2]),
        eqx.nn.Lambda(jax.nn.log_softmax)])
    return equinox(model, lambda m, x, y: classes(jax.vmap(m)(x), y), numbers(0, 4, 1, 16, 16), labels(1, 10, 4))


@network
def equinox_bert(key):
    k = jax.random.split(key, 6)
    model = dict(embed=eqx.nn.Embedding(30, 16, key=k[0]), place=eqx.nn.Embedding(10, 16, key=k[1]), norm=eqx.nn.LayerNorm(16),
                 attention=eqx.nn.MultiheadAttention(4, 16, key=k[2]), up=eqx.nn.Linear(16, 32, key=k[3]),
                 down=eqx.nn.Linear(32, 16, key=k[4]), head=eqx.nn.Linear(16, 2, key=k[5]))

    def one(m, ids):
        x = jax.vmap(m["embed"])(ids) + jax.vmap(m["place"])(jnp.arange(ids.shape[0]))
        x = jax.vmap(m["norm"])(x + m["attention"](x, x, x, mask=jnp.broadcast_to(ids != 0, (ids.shape[0],) * 2)))
        x = x + jax.vmap(m["down"])(jax.nn.gelu(jax.vmap(m["up"])(x)))
        return m["head"](jnp.tanh(x[0]))

    return equinox(model, lambda m, ids, y: classes(jax.vmap(lambda one_ids: one(m, one_ids))(ids), y), labels(0, 30, 3, 10),
                   labels(1, 2, 3))


@network
def neural_ode(key):
    """Steps of Runge and Kutta through a network, written as a loop."""
    model = eqx.nn.MLP(2, 2, 16, 1, activation=jax.nn.tanh, key=key)

    def loss(m, start, wanted):
        def step(y, _):
            k1 = jax.vmap(m)(y)
            k2 = jax.vmap(m)(y + 0.05 * k1)
            return y + 0.1 * k2, y

        _, path = jax.lax.scan(step, start, None, length=6)
        return jnp.mean((path - wanted)**2)

    return equinox(model, loss, numbers(0, 3, 2), numbers(1, 6, 3, 2))


@network
def score_diffusion(key):
    """Equinox' score-based diffusion, with a mixer of patches and times."""
    k = jax.random.split(key, 3)
    model = dict(enter=eqx.nn.Conv2d(2, 8, 4, 4, key=k[0]), mix=eqx.nn.MLP(16, 16, 24, 1, key=k[1]),
                 leave=eqx.nn.ConvTranspose2d(8, 1, 4, 4, key=k[2]))

    def loss(m, x, t, noise):
        def one(x, t, noise):
            std = jnp.sqrt(jnp.maximum(1 - jnp.exp(-t), 1e-5))
            y = x * jnp.exp(-0.5 * t) + std * noise
            y = m["enter"](jnp.concatenate([y, jnp.full_like(y, t / 10)]))
            y = y + jax.vmap(m["mix"])(y.reshape(8, -1)).reshape(y.shape)
            return (1 - jnp.exp(-t)) * jnp.mean((m["leave"](y) + noise / std)**2)

        return jnp.mean(jax.vmap(one)(x, t, noise))

    return equinox(model, loss, numbers(0, 3, 1, 16, 16), jnp.array([0.5, 2.0, 7.0]), numbers(1, 3, 1, 16, 16))


@network
def nnx_gemma_block(key):
    """RMS norms, rotary embeddings, grouped queries, gated layers, in NNX."""

    class Block(nnx.Module):
        def __init__(self, rngs):
            self.embed = nnx.Embed(40, 32, rngs=rngs)
            self.q, self.kv = nnx.Linear(32, 32, use_bias=False, rngs=rngs), nnx.Linear(32, 32, use_bias=False, rngs=rngs)
            self.out = nnx.Linear(32, 32, rngs=rngs)
            self.gate, self.up, self.down = (nnx.Linear(*s, rngs=rngs) for s in ((32, 48), (32, 48), (48, 32)))
            self.norm, self.last = nnx.RMSNorm(32, rngs=rngs), nnx.RMSNorm(32, rngs=rngs)

        def __call__(self, ids):
            x = self.embed(ids)
            b, t, _ = x.shape
            y = self.norm(x)
            q = self.q(y).reshape(b, t, 4, 8)
            k, v = jnp.split(self.kv(y).reshape(b, t, 4, 8), 2, 2)
            angles = jnp.arange(t)[:, None] * 10000.0**(-jnp.arange(4) / 4)

            def turn(x):
                first, second = jnp.split(x, 2, -1)
                cos, sin = jnp.cos(angles)[:, None], jnp.sin(angles)[:, None]
                return jnp.concatenate([first * cos - second * sin, second * cos + first * sin], -1)

            y = jax.nn.dot_product_attention(turn(q), turn(k), v, is_causal=True)
            x = x + self.out(y.reshape(b, t, 32))
            y = self.last(x)
            return self.embed.attend(x + self.down(nnx.gelu(self.gate(y)) * self.up(y)))

    graph, params = nnx.split(Block(nnx.Rngs(0)))
    params = nnx.to_pure_dict(params)

    def f(params, ids):
        state = nnx.state(nnx.eval_shape(lambda: nnx.merge(graph, nnx.state(Block(nnx.Rngs(0))))))
        nnx.replace_by_pure_dict(state, params)
        return classes(nnx.merge(graph, state)(ids)[:, :-1], ids[:, 1:])

    return f, params, (labels(0, 40, 2, 10),)
