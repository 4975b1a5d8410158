"""Fine-tune with DeepSpeed at ZeRO stages over Gloo on CPUs, several processes of some threads each.

Prints one JSON line a stage; the rest is as in pytorch_ddp.py. Needs the environment of tools/make-bench-venv.sh.
"""
import os

import common
import settings

os.environ.update(DS_ACCELERATOR="cpu")


def config(arguments, stage):
    parameters = {"lr": settings.LEARNING_RATE, "weight_decay": settings.WEIGHT_DECAY}
    if arguments.adam == "torch":
        parameters["torch_adam"] = True
    return {
        "train_batch_size": arguments.batch_size,
        "train_micro_batch_size_per_gpu": arguments.batch_size // arguments.processes,
        "gradient_accumulation_steps": 1,
        "gradient_clipping": settings.MAX_GRAD_NORM,
        "optimizer": {"type": "AdamW", "params": parameters},
        "scheduler": {
            "type": "WarmupDecayLR",
            "params": {
                "warmup_max_lr": settings.LEARNING_RATE,
                "warmup_num_steps": settings.WARM_UP_STEPS,
                "warmup_type": "linear",
                "total_num_steps": max(arguments.steps, settings.WARM_UP_STEPS + 1),
            },
        },
        "zero_optimization": {
            "stage": stage,
            "overlap_comm": arguments.overlap_comm,
            "contiguous_gradients": True,
            "reduce_bucket_size": arguments.bucket_size,
            "allgather_bucket_size": arguments.bucket_size,
        },
        "steps_per_print": 1 << 30,
    }


class Work(common.Work):
    def prepare(self):
        import deepspeed

        # An all-reduce for inference; training does not use it, and it would be compiled here.
        deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
        deepspeed.init_distributed(dist_backend="gloo", verbose=False)
        self.engines = {}
        for stage in self.arguments.stages:
            model = common.load_model(self.arguments, self.data.classes)
            self.engines[str(stage)] = deepspeed.initialize(
                model=model, model_parameters=model.parameters(), config=config(self.arguments, stage)
            )[0]
        return {stage: lambda inputs, engine=engine: self.step(engine, inputs) for stage, engine in self.engines.items()}

    def step(self, engine, inputs):
        loss = engine(**inputs).loss
        engine.backward(loss)
        engine.step()
        loss.item()

    def model(self, case):
        return self.engines[case]


def main():
    parser = common.parser(__doc__)
    parser.add_argument("--stages", type=int, nargs="+", choices=[0, 1, 2, 3], default=[1, 2, 3])
    parser.add_argument("--adam", choices=["torch", "deepspeed"], default="torch", help="deepspeed: compiles it once")
    parser.add_argument("--overlap-comm", action="store_true")
    parser.add_argument("--bucket-size", type=int, default=500_000_000, help="elements; the default is DeepSpeed's")
    arguments = parser.parse_args()
    common.start(Work, arguments, [str(stage) for stage in arguments.stages])


if __name__ == "__main__":
    main()
