"""Layers with a state, token by token, in double precision."""
import math

from forward import dot, rms, rows, sigmoid, silu, softplus


def convolution(model, name, u, activation=silu, step=1):
    """Causal, of each channel on its own, of tokens `step` apart; then silu."""
    kernel = model.matrix(name + ".weight")
    bias = model.values.get(name + ".bias", [0.0] * len(kernel))
    n, out = len(kernel[0]), []
    for t in range(len(u)):
        seen = [(j, t - (n - 1 - j) * step) for j in range(n) if t - (n - 1 - j) * step >= 0]
        out.append([activation(b + sum(w[j] * u[at][c] for j, at in seen))
                    for c, (w, b) in enumerate(zip(kernel, bias))])
    return out


def short_convolution(model, i, h):
    """Gated before and after, without silu."""
    blk = f"blk.{i}.shortconv."
    b, c, x = zip(*(rows(row, len(row) // 3) for row in model.product(blk + "in_proj", h)))
    u = [[p * q for p, q in zip(*pair)] for pair in zip(b, x)]
    y = convolution(model, blk + "conv", u, lambda z: z)
    return model.product(blk + "out_proj", [[p * q for p, q in zip(*pair)] for pair in zip(c, y)])


def beta_alpha(model, blk, h, n_k, n_v):
    if blk + "ssm_ba.weight" not in model.values:
        return model.product(blk + "ssm_beta", h), model.product(blk + "ssm_alpha", h)
    r, b, a = n_v // n_k, [], []
    for row in model.product(blk + "ssm_ba", h):
        groups = rows(row, 2 * r)
        b.append(sum((g[:r] for g in groups), []))
        a.append(sum((g[r:] for g in groups), []))
    return b, a


def qkv_and_gate(model, blk, h, n_k, d):
    """In older files one matrix: q, k, v, z of each key head."""
    if blk + "ssm_in.weight" not in model.values:
        return model.product(blk + "attn_qkv", h), model.product(blk + "attn_gate", h)
    u, z = [], []
    for row in model.product(blk + "ssm_in", h):
        heads = rows(row, len(row) // n_k)
        v = len(heads[0]) // 2 - d
        cuts = ((0, d), (d, 2 * d), (2 * d, 2 * d + v))
        u.append([x for a, b in cuts for head in heads for x in head[a:b]])
        z.append([x for head in heads for x in head[2 * d + v:]])
    return u, z


def delta_net(model, i, h, interleaved, gated=silu):
    """interleaved: value head j reads key head j mod Hk, else j div (Hv / Hk)."""
    k_, blk = model.k, f"blk.{i}."
    d, n_k, n_v = (k_["ssm." + n] for n in ("state_size", "group_count", "time_step_rank"))
    dv = k_["ssm.inner_size"] // n_v
    u, z = qkv_and_gate(model, blk, h, n_k, d)
    beta, alpha = beta_alpha(model, blk, h, n_k, n_v)
    rates, steps = model.values[blk + "ssm_a"], model.values[blk + "ssm_dt.bias"]

    def unit(x):
        by = math.sqrt(dot(x, x) + (model.eps if model.compat else 1e-6))
        return [v / by for v in x]
    states, out = [[[0.0] * d for _ in range(dv)] for _ in range(n_v)], []
    for t, row in enumerate(convolution(model, blk + "ssm_conv1d", u)):
        q, k = ([unit(x) for x in rows(row[a:a + n_k * d], d)] for a in (0, n_k * d))
        o = []
        for j, (v, gate) in enumerate(zip(rows(row[2 * n_k * d:], dv), rows(z[t], dv))):
            head = j % n_k if interleaved else j // (n_v // n_k)
            g = math.exp(softplus(alpha[t][j] + steps[j]) * rates[j])
            y = []
            for c, s in enumerate(states[j]):     # s: what the state holds for element c of v
                s = [g * x for x in s]
                e = sigmoid(beta[t][j]) * (v[c] - dot(k[head], s))
                states[j][c] = [x + e * key for x, key in zip(s, k[head])]
                y.append(dot(q[head], states[j][c]) / math.sqrt(d))
            y = rms(y, model.eps, model.values[blk + "ssm_norm.weight"])
            o += [a * gated(b) for a, b in zip(y, gate)]
        out.append(o)
    return model.product(blk + "ssm_out", out)


def kimi_delta_net(model, i, h, compat_eps=None):
    """q, k and v apart, each with a convolution; a decay for each channel of a state. compat_eps: in
    llama.cpp's form, where it is not that of the norms."""
    blk, values = f"blk.{i}.", model.values
    d, n = model.k["kda.head_dim"], model.n_heads(i)[0]
    assert len(values[blk + "ssm_norm.weight"]) == d

    def heads(c):
        u = model.product(f"{blk}attn_{c}", h)
        return [rows(row, d) for row in convolution(model, f"{blk}ssm_conv1d_{c}", u)]

    def unit(x):
        by = math.sqrt(dot(x, x) + ((compat_eps or model.eps) if model.compat else 1e-6))
        return [v / by for v in x]

    def gates(name):
        """Of two matrices, or of one by either name."""
        one = blk + name if blk + name + ".weight" in values else blk + name + "_a"
        y = model.product(one, h)
        return model.product(blk + name + "_b", y) if blk + name + "_b.weight" in values else y
    steps, rates = values[blk + "ssm_dt.bias"], values[blk + "ssm_a"]
    least = model.k.get("kda.gate_lower_bound")

    def decay(z, rate):
        return math.exp(least * sigmoid(abs(rate) * z) if least else softplus(z) * rate)
    states, out = [[[0.0] * d for _ in range(d)] for _ in range(n)], []
    tokens = zip(heads("q"), heads("k"), heads("v"), gates("ssm_f"), gates("ssm_g"),
                 model.product(blk + "ssm_beta", h))
    for q, k, v, a, z, b in tokens:
        o = []
        for j, gate in enumerate(rows(z, d)):
            g = [decay(x + y, rates[j]) for x, y in zip(a[j * d:][:d], steps[j * d:][:d])]
            query, key, y = unit(q[j]), unit(k[j]), []
            for c, s in enumerate(states[j]):     # s: what the state holds for element c of v
                s = [p * x for p, x in zip(g, s)]
                e = sigmoid(b[j]) * (v[j][c] - dot(key, s))
                states[j][c] = [x + e * p for x, p in zip(s, key)]
                y.append(dot(query, states[j][c]) / math.sqrt(d))
            y = rms(y, model.eps, values[blk + "ssm_norm.weight"])
            o += [p * sigmoid(x) for p, x in zip(y, gate)]
        out.append(o)
    return model.product(blk + "attn_output", out)


def mamba2(model, i, h, least=0.0):
    """least: of the steps."""
    k, blk, values = model.k, f"blk.{i}.", model.values
    inner, n, n_heads, n_groups = (k["ssm." + name] for name in (
        "inner_size", "state_size", "time_step_rank", "group_count"))
    size = inner // n_heads
    projected = model.product(blk + "ssm_in", h)
    mixed = convolution(model, blk + "ssm_conv1d", [row[inner:-n_heads] for row in projected])
    states, out = [[[0.0] * n for _ in range(size)] for _ in range(n_heads)], []
    for row, u in zip(projected, mixed):
        b, c = (rows(u[at:at + n_groups * n], n) for at in (inner, inner + n_groups * n))
        y = []
        for j, x in enumerate(rows(u[:inner], size)):
            g = j // (n_heads // n_groups)
            dt = softplus(row[len(row) - n_heads + j] + values[blk + "ssm_dt.bias"][j])
            dt = max(dt, least)
            decay = math.exp(dt * values[blk + "ssm_a"][j])
            for e, v in enumerate(x):
                state = [decay * s + dt * v * w for s, w in zip(states[j][e], b[g])]
                states[j][e] = state
                y.append(dot(state, c[g]) + values[blk + "ssm_d"][j] * v)
        y = [a * silu(z) for a, z in zip(y, row[:inner])]
        if blk + "ssm_norm.weight" in values:
            weight = rows(values[blk + "ssm_norm.weight"], inner // n_groups)
            parts = rows(y, inner // n_groups)
            y = sum((rms(part, model.eps, w) for part, w in zip(parts, weight)), [])
        out.append(y)
    return model.product(blk + "ssm_out", out)
