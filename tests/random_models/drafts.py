"""The block that predicts the token after the next: random models with one, and its forward pass in
double precision. docs/draft.md has the formulas.
"""
import architectures

STREAM = "step35", "mimo2"  # their blocks take rows before the output norm
SLIDING = STREAM  # and slide where no array says it of each block; others' then see all keys
KNOWN = ("deepseek2", "glm4moe", "hy_v3", "qwen35", "qwen35moe", "qwen3next", "step35", "bailingmoe2",
         "mimo2", "deepseek32", "glm-dsa", "exaone-moe", "cohere2moe")
PATTERN = "attention.sliding_window_pattern"


def logits(model, x, head, norm):
    by = model.head_scale()
    return [[by * v for v in row] for row in model.product(head, model.norm(norm, x))]


def of_block(model, name, value):
    """What a method says of the block, which the others of its architecture do not tell."""
    method = getattr(model, name, None)
    if method:
        setattr(model, name, lambda i, *more: value if i == model.n_layers else method(i, *more))


def read_block(model):
    of_block(model, "recurrent", False)  # it has attention, whatever its number
    of_block(model, "own_choice", True)  # it has an indexer, whatever others share
    listed = model.k.get(PATTERN)
    ignored = model.compat and model.arch == "exaone-moe"  # llama.cpp takes its own period
    if not isinstance(listed, list) or len(listed) == model.n_layers or ignored:
        of_block(model, "slides", model.arch in SLIDING)
    if model.compat:  # llama.cpp does not evaluate that indexer: all keys are seen
        of_block(model, "chosen_keys", None)
    if model.arch == "cohere2moe":  # it has positions, though it sees all keys
        of_block(model, "rope", model.make_rope())


def predictions(model, tokens):
    """Logits of the model and of its block, row i of which belongs to row i + 1 of the model."""
    model.sure, model.length, model.ropes = len(tokens), len(tokens), {}
    block = f"blk.{model.n_layers}.nextn."
    table = block + "embed_tokens.weight"
    x = model.embed(tokens)
    for i in range(model.n_layers):
        x = model.layer(i, x)
    sure = model.sure
    model.sure, model.length, model.ropes = len(tokens), len(tokens) - 1, {}
    own_head, own_norm = block + "shared_head_head", block + "shared_head_norm"
    if own_norm + ".weight" not in model.values:
        own_norm = f"blk.{model.n_layers}.layer_output_norm"
    head = "output" if "output.weight" in model.values else "token_embd"
    hidden = model.norm("output_norm", x)
    follow = tokens[1:]
    follow = [model.matrix(table)[t] for t in follow] if table in model.values else model.embed(follow)
    before = x if model.arch in STREAM else hidden
    pairs = zip(model.norm(block + "enorm", follow), model.norm(block + "hnorm", before))
    y = model.layer(model.n_layers, model.product(block + "eh_proj", [e + h for e, h in pairs]))
    return (logits(model, x, head, "output_norm"),
            logits(model, y, own_head if own_head + ".weight" in model.values else head,
                   own_norm if own_norm + ".weight" in model.values else "output_norm"),
            min(sure, model.sure))


def with_options(generated, rng):
    """Optional tensors of the block, there or not; an array of windows that leaves it out."""
    block = f"blk.{generated.n_layers}.nextn."
    for name in ("embed_tokens", "shared_head_head"):
        if rng.random() < 0.3:
            generated.tensor(block + name, generated.width, generated.n_vocab, 0.5)
    which = rng.random()
    if which < 0.2:
        generated.tensors = [t for t in generated.tensors if "shared_head_norm" not in t.name]
    for t in generated.tensors:
        if 0.6 < which < 0.8:
            t.name = t.name.replace("nextn.shared_head_norm", "layer_output_norm")
    if which > 0.8:
        generated.norm(f"blk.{generated.n_layers}.layer_output_norm")  # the other counts
    names = {t.name for t in generated.tensors}
    blocks = range(generated.n_layers, generated.n_layers + generated.n_next)
    sinks = all(f"blk.{i}.attn_sinks.weight" in names for i in blocks)  # as what slides has in mimo2
    if rng.random() < 0.5 and (sinks or generated.arch != "mimo2"):
        generated.pairs = [(key, kind, value[:generated.n_layers] if key.endswith(PATTERN) and
                            isinstance(value, list) else value, of) for key, kind, value, of in
                           generated.pairs]


def generate(rng, arch, n):
    """A model with n such blocks, or none."""
    return type(arch, (architectures.FAMILIES[arch],), {"arch": arch, "nextn": n})(rng)
