"""06_from_pytorch.py - trains a small network in PyTorch and writes 06_from_pytorch.npz:
its state_dict, a few inputs, and what PyTorch computes of them in eval mode."""
import sys
import numpy as np
import torch
from torch import nn

torch.manual_seed(6)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(2, 32), nn.BatchNorm1d(32), nn.ReLU(),
                      nn.Linear(32, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)


def spiral(n):
    """n points on three arms, and which arm each is on."""
    label = torch.randint(3, (n,))
    t = torch.rand(n)
    angle = 4 * t + 2 * np.pi / 3 * label + 0.1 * torch.randn(n)
    return torch.stack([t * torch.cos(angle), t * torch.sin(angle)], 1), label


for step in range(300):
    x, label = spiral(64)
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), label)
    loss.backward()
    optimizer.step()

model.eval()
x, label = spiral(100)
with torch.no_grad():
    logits = model(x)
print("accuracy %.2f" % (logits.argmax(1) == label).float().mean().item())
arrays = {name: value.numpy() for name, value in model.state_dict().items()}
np.savez(sys.argv[1] if len(sys.argv) > 1 else "06_from_pytorch.npz",
         x=x.numpy(), label=label.numpy(), logits=logits.numpy(), **arrays)
