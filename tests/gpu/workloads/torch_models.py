"""Models with random weights, made here where torchvision is not installed: ResNet-18 and -50, GPT-2 small, a U-shaped network."""
import torch
from torch import nn


def conv(inside, outside, kernel, stride=1):
    return nn.Conv2d(inside, outside, kernel, stride, kernel // 2, bias=False)


class Block(nn.Module):
    def __init__(self, inside, width, stride, bottleneck):
        super().__init__()
        outside = width * (4 if bottleneck else 1)
        self.conv1 = conv(inside, width, 1 if bottleneck else 3, 1 if bottleneck else stride)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = conv(width, width, 3, stride if bottleneck else 1)
        self.bn2 = nn.BatchNorm2d(width)
        self.bottleneck = bottleneck
        if bottleneck:
            self.conv3 = conv(width, outside, 1)
            self.bn3 = nn.BatchNorm2d(outside)
        self.downsample = None
        if stride > 1 or inside != outside:
            self.downsample = nn.Sequential(conv(inside, outside, 1, stride), nn.BatchNorm2d(outside))

    def forward(self, x):
        y = torch.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        if self.bottleneck:
            y = self.bn3(self.conv3(torch.relu(y)))
        return torch.relu(y + (x if self.downsample is None else self.downsample(x)))


class ResNet(nn.Module):
    def __init__(self, layers, bottleneck):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.pool = nn.MaxPool2d(3, 2, 1)
        inside = 64
        for i, n in enumerate(layers):
            width, blocks = 64 << i, []
            for k in range(n):
                blocks.append(Block(inside, width, 2 if i and not k else 1, bottleneck))
                inside = width * (4 if bottleneck else 1)
            setattr(self, f"layer{i + 1}", nn.Sequential(*blocks))
        self.fc = nn.Linear(inside, 1000)

    def forward(self, x):
        x = self.pool(torch.relu(self.bn1(self.conv1(x))))
        for i in range(4):
            x = getattr(self, f"layer{i + 1}")(x)
        return self.fc(x.mean((2, 3)))


def resnet(depth):
    try:
        import torchvision
        return getattr(torchvision.models, f"resnet{depth}")()
    except ImportError:
        return ResNet((2, 2, 2, 2), False) if depth == 18 else ResNet((3, 4, 6, 3), True)


class GptLayer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (t.view(batch, length, self.heads, -1).transpose(1, 2) for t in self.qkv(self.ln1(x)).split(width, 2))
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(nn.functional.gelu(self.up(self.ln2(x))))


class Gpt(nn.Module):
    """GPT-2 small: 124 million parameters, the output layer tied to the embedding."""

    def __init__(self, width=768, n_layers=12, heads=12, words=50257, length=1024):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.layers = nn.Sequential(*(GptLayer(width, heads) for _ in range(n_layers)))
        self.ln = nn.LayerNorm(width)

    def forward(self, tokens):
        x = self.words(tokens) + self.places(torch.arange(tokens.shape[1], device=tokens.device))
        return self.ln(self.layers(x)) @ self.words.weight.T
