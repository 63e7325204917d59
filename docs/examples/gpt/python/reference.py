"""The model of this example in PyTorch: reference.py FACTS WEIGHTS, the files that `dist/check.js --write FOLDER` writes.

Prints the losses of the same steps, in single and in double precision, as JSON. Exit status 3: there is no PyTorch.
"""

import json
import math
import sys

try:
    import torch
    from torch.nn import functional as F
except ImportError as error:
    print(error)
    sys.exit(3)

with open(sys.argv[1], encoding="utf-8") as file:
    facts = json.load(file)
size, training = facts["size"], facts["training"]
heads, layers, width = size["heads"], size["layers"], size["width"]
with open(sys.argv[2], "rb") as file:
    given = torch.frombuffer(bytearray(file.read()), dtype=torch.float32)
device = "cuda" if torch.cuda.is_available() else "cpu"
torch.backends.cuda.matmul.allow_tf32 = False


def rate_at(done):
    warmup, until = training["warmup"], training["until"]
    if done < warmup:
        return training["rate"] * (done + 1) / warmup
    gone = min(1.0, (done - warmup) / max(1, until - warmup))
    return training["rate"] * (0.55 + 0.45 * math.cos(math.pi * gone))


def loss_of(weights, tokens, targets):
    batch, context = tokens.shape
    norm = lambda x, number: F.layer_norm(x, (width,), weights[f"gain{number}"].view(width))
    x = weights["characters"][tokens] + weights["positions"]
    for layer in range(layers):
        qkv = norm(x, 2 * layer) @ weights[f"qkv{layer}"]
        q, k, v = (part.view(batch, context, heads, -1).transpose(1, 2) for part in qkv.split(width, dim=2))
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + attended.transpose(1, 2).reshape(batch, context, width) @ weights[f"join{layer}"]
        inner = F.gelu(norm(x, 2 * layer + 1) @ weights[f"up{layer}"], approximate="tanh")
        x = x + inner @ weights[f"down{layer}"]
    logits = norm(x, 2 * layers) @ weights["head"]
    return F.cross_entropy(logits.view(batch * context, -1), targets.reshape(-1))


def train(precision):
    weights = {}
    for each in facts["weights"]:
        part = given[each["offset"] : each["offset"] + each["rows"] * each["columns"]]
        shaped = part.to(device, precision).reshape(each["rows"], each["columns"])
        weights[each["name"]] = shaped.clone().requires_grad_()
    gains = [value for name, value in weights.items() if name.startswith("gain")]
    matrices = [value for name, value in weights.items() if not name.startswith("gain")]
    groups = [{"params": matrices, "weight_decay": training["decay"]}, {"params": gains, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, betas=(0.9, 0.99), eps=1e-8)
    text = torch.tensor(facts["text"], device=device)
    losses = []
    for done, starts in enumerate(facts["starts"]):
        for group in optimizer.param_groups:
            group["lr"] = rate_at(done)
        rows = torch.stack([text[start : start + size["context"] + 1] for start in starts])
        optimizer.zero_grad()
        loss = loss_of(weights, rows[:, :-1], rows[:, 1:])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


name = torch.cuda.get_device_name() if device == "cuda" else "the processor"
found = {"version": torch.__version__, "device": name}
for precision in (torch.float32, torch.float64):
    found[str(precision).removeprefix("torch.")] = train(precision)
print(json.dumps(found))
