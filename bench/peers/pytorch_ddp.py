"""Fine-tune with PyTorch's DistributedDataParallel over Gloo, several processes of some threads each.

Prints one JSON line. Model, rows, batch, optimizer, schedule, clipping and seed are those of pytorch_train.py; each
process takes its part of a batch and pads it to its own longest row. One process is PyTorch without
DistributedDataParallel. Tokens are real ones, those of all processes.
"""
import torch
from torch.nn.parallel import DistributedDataParallel
from transformers import get_linear_schedule_with_warmup

import common
import settings


class Work(common.Work):
    def prepare(self):
        model = self.plain = common.load_model(self.arguments, self.data.classes)
        if self.arguments.processes > 1:
            # Gradients live in the buckets that are sent: a copy less in each step.
            model = DistributedDataParallel(model, gradient_as_bucket_view=True)
        optimizer = torch.optim.AdamW(model.parameters(), lr=settings.LEARNING_RATE, weight_decay=settings.WEIGHT_DECAY)
        schedule = get_linear_schedule_with_warmup(optimizer, settings.WARM_UP_STEPS, self.arguments.steps)

        def step(inputs):
            loss = model(**inputs).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), settings.MAX_GRAD_NORM)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
            loss.item()

        return {"ddp": step}

    def model(self, case):
        return self.plain


if __name__ == "__main__":
    common.start(Work, common.parser(__doc__).parse_args(), ["ddp"])
