/* The rows of deepspeed_keys.h:
 *
 *   X(path, kind, "auto" allowed, neutral values, effect, target, least, most, help)
 *
 * Types and defaults are those of deepspeed/runtime/config.py and the sections it reads. */
#ifndef LS_FORMATS_DEEPSPEED_KEYS_TABLE_H
#define LS_FORMATS_DEEPSPEED_KEYS_TABLE_H

#define ANY (-1e300), 1e300
#define FROM0 0, 1e300
#define FROM1 1, 1e300
#define SECTION_OF(X, path, help) X(path, SECTION, false, "null", PARTS, "", ANY, help)
#define IDLE_FLAG(X, path, neutral, help) X(path, FLAG, false, neutral, IDLE, "", ANY, help)
#define IDLE_COUNT(X, path, neutral, help) X(path, INTEGER, true, neutral, IDLE, "", FROM0, help)
#define IDLE_TEXT(X, path, neutral, help) X(path, TEXT, false, neutral, IDLE, "", ANY, help)
#define NO_FLAG(X, path, neutral, help) X(path, FLAG, false, neutral, REFUSED, "", ANY, help)
#define NO_SECTION(X, path, help) X(path, ANYTHING, false, "null", REFUSED, "", ANY, help)

/* clang-format off */
#define LS_DEEPSPEED_TRAINING_KEYS(X) \
    X("train_batch_size", INTEGER, true, "null", SETS, "batch-size", 1, 1 << 20, \
      "samples of a step over all devices") \
    X("train_micro_batch_size_per_gpu", INTEGER, true, "null", SETS, "samples-per-pass", 1, 1 << 20, \
      "samples of a pass and device; the leaf is the largest of 4, 2, 1 that divides it") \
    X("gradient_accumulation_steps", INTEGER, true, "null", SETS, "samples-per-pass", 1, 1 << 20, \
      "passes of a step: batch = micro batch x passes x devices") \
    X("gradient_clipping", NUMBER, true, "1.0", SETS, "max-grad-norm", FROM0, \
      "clip the gradient to this norm; 0: do not clip") \
    X("steps_per_print", INTEGER, true, "null", SETS, "log-every", 1, 1e12, \
      "print a line every so many steps") \
    X("wall_clock_breakdown", FLAG, true, "false", SETS, "wall-clock-breakdown", ANY, \
      "print the times of the parts of a step") \
    SECTION_OF(X, "optimizer", "the update") \
    X("optimizer.type", TEXT, false, "null", SETS, "optimizer", ANY, \
      "Adam (AdamW unless adam_w_mode is false) or AdamW; decays all parameters") \
    IDLE_FLAG(X, "optimizer.legacy_fusion", "false", "of fp16 only") \
    SECTION_OF(X, "optimizer.params", "the optimizer's numbers") \
    X("optimizer.params.lr", NUMBER, true, "null", SETS, "learning-rate", FROM0, \
      "the learning rate, unless scheduler.params.warmup_max_lr gives it") \
    X("optimizer.params.betas", PAIR, true, "null", SETS, "adam-beta1", 0, 1, \
      "sets --adam-beta2 too") \
    X("optimizer.params.eps", NUMBER, true, "null", SETS, "adam-epsilon", FROM0, \
      "added to the root of the second moment") \
    X("optimizer.params.weight_decay", NUMBER, true, "null", SETS, "weight-decay", FROM0, \
      "of all parameters, biases and layer norms too") \
    X("optimizer.params.adam_w_mode", FLAG, false, "true", SETS, "optimizer", ANY, \
      "false: the decay of Adam is added to the gradient") \
    IDLE_FLAG(X, "optimizer.params.torch_adam", "false", "the formula is the same") \
    IDLE_FLAG(X, "optimizer.params.set_grad_none", "true", "gradients are no objects here") \
    NO_FLAG(X, "optimizer.params.bias_correction", "true", "moments are always corrected") \
    NO_FLAG(X, "optimizer.params.amsgrad", "false", "AMSGrad is not built") \
    X("optimizer.params.max_grad_norm", NUMBER, false, "null", REFUSED, "", ANY, \
      "DeepSpeed refuses it here too: write gradient_clipping at the top") \
    SECTION_OF(X, "scheduler", "the learning rate of each step") \
    X("scheduler.type", TEXT, false, "null", SETS, "lr-scheduler-type", ANY, \
      "WarmupLR, WarmupDecayLR or WarmupCosineLR") \
    SECTION_OF(X, "scheduler.params", "the schedule's numbers") \
    X("scheduler.params.warmup_min_lr", NUMBER, true, "0", SETS, "warmup-min-lr", FROM0, \
      "where WarmupLR and WarmupDecayLR start") \
    X("scheduler.params.warmup_max_lr", NUMBER, true, "null", SETS, "learning-rate", FROM0, \
      "the learning rate after the warm-up; the optimizer's when not given") \
    X("scheduler.params.warmup_num_steps", INTEGER, true, "1000", SETS, "warmup-steps", 0, 1e12, \
      "steps of the warm-up, at least 2 are taken") \
    X("scheduler.params.warmup_type", TEXT, false, "log", SETS, "warmup-type", ANY, \
      "log or linear") \
    X("scheduler.params.total_num_steps", INTEGER, true, "null", SETS, "lr-scheduler-steps", 1, 1e12, \
      "where the falling rate ends; the run's steps when not given") \
    X("scheduler.params.warmup_min_ratio", NUMBER, true, "0", SETS, "warmup-min-ratio", 0, 1, \
      "where WarmupCosineLR starts, as a part of the learning rate") \
    X("scheduler.params.cos_min_ratio", NUMBER, true, "0.0001", SETS, "cosine-min-ratio", 0, 1, \
      "where WarmupCosineLR ends, as a part of the learning rate") \
    X("scheduler.params.last_batch_iteration", INTEGER, false, "-1", REFUSED, "", ANY, \
      "a schedule starts with its run")

#define LS_DEEPSPEED_ZERO_KEYS(X) \
    SECTION_OF(X, "zero_optimization", "what the devices divide among them") \
    X("zero_optimization.stage", INTEGER, false, "0", SETS, "strategy", 0, 3, \
      "0: ddp, 1: zero1, 2: zero2, 3: zero3") \
    X("zero_optimization.reduce_bucket_size", INTEGER, true, "5e8", SETS, "bucket-size", 1, 2.2e18, \
      "gradients exchanged together, in elements: four bytes each; 25 MiB when not given, between " \
      "hosts 4 MiB") \
    X("zero_optimization.stage3_prefetch_bucket_size", INTEGER, true, "5e7", SETS, \
      "prefetch-bucket-size", FROM0, "parameters gathered ahead of use, in elements") \
    X("zero_optimization.stage3_param_persistence_threshold", INTEGER, true, "1e5", SETS, \
      "persistence-threshold", FROM0, "tensors below this many elements stay whole on every device") \
    IDLE_FLAG(X, "zero_optimization.contiguous_gradients", "true", "gradients lie in one arena") \
    IDLE_FLAG(X, "zero_optimization.reduce_scatter", "true", "each device sums its slice") \
    IDLE_FLAG(X, "zero_optimization.use_multi_rank_bucket_allreduce", "true", \
              "there is no all-reduce") \
    IDLE_FLAG(X, "zero_optimization.allgather_partitions", "true", "slices are gathered by copies") \
    IDLE_COUNT(X, "zero_optimization.allgather_bucket_size", "5e8", "a unit is gathered at a time") \
    IDLE_FLAG(X, "zero_optimization.overlap_comm", "null", \
              "exchanges run beside the backward pass") \
    IDLE_FLAG(X, "zero_optimization.load_from_fp32_weights", "true", "weights are fp32") \
    IDLE_FLAG(X, "zero_optimization.elastic_checkpoint", "false", "files know no layout") \
    IDLE_COUNT(X, "zero_optimization.sub_group_size", "1e9", "updates go block by block") \
    X("zero_optimization.stage3_model_persistence_threshold", INTEGER, true, "9223372036854775807", \
      IDLE, "", FROM0, "no limit beside --device-memory") \
    IDLE_COUNT(X, "zero_optimization.stage3_max_live_parameters", "1e9", "the plan decides") \
    IDLE_COUNT(X, "zero_optimization.stage3_max_reuse_distance", "1e9", "the plan decides") \
    IDLE_COUNT(X, "zero_optimization.stage3_module_granularity_threshold", "0", "units are layers") \
    IDLE_FLAG(X, "zero_optimization.stage3_gather_16bit_weights_on_model_save", "false", \
              "the whole model is written in any case") \
    IDLE_FLAG(X, "zero_optimization.stage3_use_all_reduce_for_fetch_params", "false", \
              "there is no all-reduce") \
    IDLE_FLAG(X, "zero_optimization.stage3_allgather_sequential", "false", "the plan decides") \
    IDLE_COUNT(X, "zero_optimization.stage3_partition_stream_chunk_size", "0", "the plan decides") \
    IDLE_FLAG(X, "zero_optimization.ignore_unused_parameters", "true", "there are none") \
    IDLE_FLAG(X, "zero_optimization.legacy_stage1", "false", "there is one stage 1") \
    IDLE_FLAG(X, "zero_optimization.round_robin_gradients", "false", "slices are fixed") \
    IDLE_FLAG(X, "zero_optimization.memory_efficient_linear", "true", "of PyTorch modules") \
    IDLE_FLAG(X, "zero_optimization.pipeline_loading_checkpoint", "false", "of PyTorch modules") \
    IDLE_FLAG(X, "zero_optimization.override_module_apply", "true", "of PyTorch modules") \
    IDLE_FLAG(X, "zero_optimization.log_trace_cache_warnings", "false", "there is no such cache") \
    IDLE_FLAG(X, "zero_optimization.enable_sanity_checks", "false", "checks are always on") \
    IDLE_FLAG(X, "zero_optimization.save_muon_momentum_buffer_in_memory", "false", "of Muon only") \
    X("zero_optimization.leaf_module", ANYTHING, false, "null", IDLE, "", ANY, "of PyTorch modules") \
    SECTION_OF(X, "zero_optimization.offload_optimizer", "optimizer state outside the device") \
    X("zero_optimization.offload_optimizer.device", TEXT, false, "none", SETS, "offload-optimizer", \
      ANY, "none, cpu (host) or nvme (disk)") \
    X("zero_optimization.offload_optimizer.nvme_path", TEXT, false, "null", SETS, "offload-path", \
      ANY, "folder of the file for device nvme") \
    IDLE_FLAG(X, "zero_optimization.offload_optimizer.pin_memory", "true", "of GPUs only") \
    IDLE_COUNT(X, "zero_optimization.offload_optimizer.buffer_count", "4", "the plan decides") \
    IDLE_FLAG(X, "zero_optimization.offload_optimizer.fast_init", "false", "nothing is slow there") \
    IDLE_FLAG(X, "zero_optimization.offload_optimizer.pipeline", "false", "reads are always ahead") \
    IDLE_FLAG(X, "zero_optimization.offload_optimizer.pipeline_read", "false", \
              "reads are always ahead") \
    IDLE_FLAG(X, "zero_optimization.offload_optimizer.pipeline_write", "false", \
              "writes are always behind") \
    X("zero_optimization.offload_optimizer.ratio", NUMBER, false, "1.0", REFUSED, "", ANY, \
      "all of the state is offloaded or none") \
    NO_FLAG(X, "zero_optimization.offload_optimizer.super_offload", "false", "not built") \
    X("zero_optimization.offload_optimizer.cpuadam_cores_perc", NUMBER, false, "0.8", IDLE, "", ANY, \
      "--threads decides") \
    SECTION_OF(X, "zero_optimization.offload_param", "parameters outside the device, stage 3") \
    X("zero_optimization.offload_param.device", TEXT, false, "none", SETS, "offload-parameters", \
      ANY, "none, cpu (host) or nvme (disk)") \
    X("zero_optimization.offload_param.nvme_path", TEXT, false, "null", SETS, "offload-path", ANY, \
      "folder of the file for device nvme") \
    IDLE_FLAG(X, "zero_optimization.offload_param.pin_memory", "true", "of GPUs only") \
    IDLE_COUNT(X, "zero_optimization.offload_param.buffer_count", "5", "the plan decides") \
    IDLE_COUNT(X, "zero_optimization.offload_param.buffer_size", "1e8", "the plan decides") \
    IDLE_COUNT(X, "zero_optimization.offload_param.max_in_cpu", "1e9", "the plan decides") \
    X("zero_optimization.zero_hpz_partition_size", INTEGER, false, "1|0", REFUSED, "", ANY, \
      "ZeRO++ (hpZ) is not built") \
    NO_FLAG(X, "zero_optimization.zero_quantized_weights", "false", "ZeRO++ (qwZ) is not built") \
    NO_FLAG(X, "zero_optimization.zero_quantized_nontrainable_weights", "false", \
            "ZeRO++ is not built") \
    NO_FLAG(X, "zero_optimization.zero_quantized_gradients", "false", "ZeRO++ (qgZ) is not built") \
    NO_SECTION(X, "zero_optimization.zeropp_loco_param", "ZeRO++ (LoCo) is not built") \
    NO_SECTION(X, "zero_optimization.zenflow", "ZenFlow is not built") \
    X("zero_optimization.mics_shard_size", INTEGER, false, "-1", REFUSED, "", ANY, \
      "MiCS is not built") \
    NO_FLAG(X, "zero_optimization.mics_hierarchical_params_gather", "false", "MiCS is not built")

/* Names that DeepSpeed still takes. */
#define OLD(X, path, kind, target) X(path, kind, false, "null", OLD_NAME, target, ANY, "an old name")
#define LS_DEEPSPEED_OLD_KEYS(X) \
    OLD(X, "zero_optimization.cpu_offload", FLAG, "zero_optimization.offload_optimizer.device") \
    OLD(X, "zero_optimization.cpu_offload_param", FLAG, "zero_optimization.offload_param.device") \
    OLD(X, "zero_optimization.cpu_offload_use_pin_memory", FLAG, \
        "zero_optimization.offload_optimizer.pin_memory") \
    OLD(X, "zero_optimization.stage3_gather_fp16_weights_on_model_save", FLAG, \
        "zero_optimization.stage3_gather_16bit_weights_on_model_save") \
    OLD(X, "zero_optimization.gather_16bit_weights_on_model_save", FLAG, \
        "zero_optimization.stage3_gather_16bit_weights_on_model_save") \
    OLD(X, "zero_optimization.prefetch_bucket_size", INTEGER, \
        "zero_optimization.stage3_prefetch_bucket_size") \
    OLD(X, "zero_optimization.param_persistence_threshold", INTEGER, \
        "zero_optimization.stage3_param_persistence_threshold") \
    OLD(X, "zero_optimization.model_persistence_threshold", INTEGER, \
        "zero_optimization.stage3_model_persistence_threshold") \
    OLD(X, "zero_optimization.max_live_parameters", INTEGER, \
        "zero_optimization.stage3_max_live_parameters") \
    OLD(X, "zero_optimization.max_reuse_distance", INTEGER, \
        "zero_optimization.stage3_max_reuse_distance") \
    OLD(X, "zero_optimization.module_granularity_threshold", INTEGER, \
        "zero_optimization.stage3_module_granularity_threshold") \
    OLD(X, "zero_optimization.use_all_reduce_for_fetch_params", FLAG, \
        "zero_optimization.stage3_use_all_reduce_for_fetch_params") \
    OLD(X, "zero_optimization.allgather_sequential", FLAG, \
        "zero_optimization.stage3_allgather_sequential") \
    OLD(X, "zero_optimization.partition_stream_chunk_size", INTEGER, \
        "zero_optimization.stage3_partition_stream_chunk_size") \
    OLD(X, "allgather_size", INTEGER, "zero_optimization.allgather_bucket_size") \
    OLD(X, "bfloat16", SECTION, "bf16")

#define LS_DEEPSPEED_PRECISION_KEYS(X) \
    SECTION_OF(X, "fp16", "half precision") \
    X("fp16.enabled", FLAG, true, "false", REFUSED, "", ANY, "training is in fp32: fp16 is not built") \
    X("fp16.auto_cast", FLAG, true, "false", IDLE, "", ANY, "of fp16 only") \
    X("fp16.loss_scale", NUMBER, true, "0", IDLE, "", FROM0, "of fp16 only") \
    IDLE_COUNT(X, "fp16.initial_scale_power", "16", "of fp16 only") \
    X("fp16.loss_scale_window", INTEGER, true, "1000", IDLE, "", FROM1, "of fp16 only") \
    IDLE_COUNT(X, "fp16.hysteresis", "2", "of fp16 only") \
    X("fp16.min_loss_scale", INTEGER, true, "1", IDLE, "", FROM1, "of fp16 only") \
    IDLE_FLAG(X, "fp16.consecutive_hysteresis", "false", "of fp16 only") \
    IDLE_FLAG(X, "fp16.fused_mode", "true", "of fp16 only") \
    NO_FLAG(X, "fp16.fp16_master_weights_and_grads", "false", "fp16 is not built") \
    SECTION_OF(X, "bf16", "bfloat16") \
    X("bf16.enabled", FLAG, true, "false", REFUSED, "", ANY, "training is in fp32: bf16 is not built") \
    IDLE_FLAG(X, "bf16.check_grad_overflow", "true", "of bf16 only") \
    IDLE_FLAG(X, "bf16.immediate_grad_update", "true", "of bf16 only") \
    NO_FLAG(X, "bf16.bf16_master_weights_and_grads", "false", "bf16 is not built") \
    NO_FLAG(X, "bf16.bf16_optimizer_states", "false", "bf16 is not built") \
    SECTION_OF(X, "data_types", "types of sums") \
    X("data_types.grad_accum_dtype", TEXT, false, "null|fp32", REFUSED, "", ANY, \
      "gradients are summed in fp32") \
    X("communication_data_type", TEXT, false, "null|fp32", REFUSED, "", ANY, \
      "gradients are exchanged in fp32") \
    X("seq_parallel_communication_data_type", TEXT, false, "fp32", REFUSED, "", ANY, \
      "sequence parallelism is not built") \
    NO_SECTION(X, "amp", "mixed precision is not built") \
    NO_SECTION(X, "torch_autocast", "mixed precision is not built") \
    NO_SECTION(X, "quantize_training", "quantized training is not built") \
    NO_SECTION(X, "weight_quantization", "quantized weights are not built") \
    NO_SECTION(X, "compression_training", "compression is not built")

#define LS_DEEPSPEED_EXCHANGE_KEYS(X) \
    IDLE_FLAG(X, "prescale_gradients", "false", "the batch's true count divides the loss") \
    X("gradient_predivide_factor", NUMBER, false, "1.0", IDLE, "", ANY, \
      "the batch's true count divides the loss") \
    X("gradient_allreduce_op", TEXT, false, "mean", REFUSED, "", ANY, \
      "the gradient is the mean over the batch") \
    IDLE_FLAG(X, "sparse_gradients", "false", "embedding gradients are always touched rows only") \
    IDLE_FLAG(X, "disable_allgather", "false", "there is no such collective") \
    IDLE_FLAG(X, "graph_harvesting", "false", "of CUDA graphs") \
    IDLE_FLAG(X, "zero_allow_untested_optimizer", "false", "all optimizers here are tested") \
    IDLE_FLAG(X, "zero_force_ds_cpu_optimizer", "true", "there is one optimizer") \
    IDLE_FLAG(X, "use_data_before_expert_parallelism", "false", "of experts only") \
    IDLE_COUNT(X, "vocabulary_size", "null", "the model says it") \
    SECTION_OF(X, "tensor_parallel", "layers divided among devices") \
    X("tensor_parallel.autotp_size", INTEGER, false, "0|1", REFUSED, "", ANY, \
      "tensor parallelism is not built") \
    IDLE_COUNT(X, "tensor_parallel.tp_grain_size", "1", "of tensor parallelism") \
    IDLE_FLAG(X, "tensor_parallel.tp_overlap_comm", "false", "of tensor parallelism") \
    X("sequence_parallel_size", INTEGER, false, "1", REFUSED, "", ANY, \
      "sequence parallelism is not built") \
    NO_SECTION(X, "pipeline", "pipeline parallelism is not built") \
    NO_SECTION(X, "expert_parallel", "expert parallelism is not built") \
    NO_SECTION(X, "sparse_attention", "sparse attention is not built") \
    NO_SECTION(X, "progressive_layer_drop", "dropping layers is not built") \
    NO_SECTION(X, "eigenvalue", "eigenvalues are not built") \
    NO_SECTION(X, "hybrid_engine", "generation is not built") \
    NO_SECTION(X, "compile", "there is nothing to compile") \
    NO_SECTION(X, "data_efficiency", "data sampling is not built") \
    NO_SECTION(X, "curriculum_learning", "curriculum learning is not built") \
    NO_FLAG(X, "dataloader_drop_last", "false", "every sample is trained on") \
    SECTION_OF(X, "activation_checkpointing", "of DeepSpeed's own calls; --recompute is the switch") \
    NO_FLAG(X, "activation_checkpointing.partition_activations", "false", \
            "activations stay with their device") \
    NO_FLAG(X, "activation_checkpointing.cpu_checkpointing", "false", \
            "activations stay with their device") \
    IDLE_FLAG(X, "activation_checkpointing.contiguous_memory_optimization", "false", \
              "the plan decides") \
    X("activation_checkpointing.number_checkpoints", INTEGER, false, "null", IDLE, "", FROM0, \
      "the plan decides") \
    IDLE_FLAG(X, "activation_checkpointing.synchronize_checkpoint_boundary", "false", "of GPUs only") \
    IDLE_FLAG(X, "activation_checkpointing.profile", "false", "lockstep bench step prints times")

#define LS_DEEPSPEED_REPORT_KEYS(X) \
    IDLE_FLAG(X, "memory_breakdown", "false", "lockstep plan prints the memory") \
    IDLE_FLAG(X, "dump_state", "false", "lockstep config prints the settings") \
    SECTION_OF(X, "csv_monitor", "metrics as CSV") \
    X("csv_monitor.enabled", FLAG, false, "false", SETS, "csv", ANY, "write CSV files") \
    X("csv_monitor.output_path", TEXT, false, "", SETS, "csv", ANY, \
      "the folder of the CSV files; csv_monitor when empty") \
    X("csv_monitor.job_name", TEXT, false, "DeepSpeedJobName", SETS, "job-name", ANY, \
      "a folder inside output_path") \
    SECTION_OF(X, "tensorboard", "metrics for TensorBoard") \
    X("tensorboard.enabled", FLAG, false, "false", SETS, "tensorboard", ANY, \
      "write TensorBoard event files") \
    X("tensorboard.output_path", TEXT, false, "", SETS, "tensorboard", ANY, \
      "the folder of the event files; tensorboard when empty") \
    X("tensorboard.job_name", TEXT, false, "DeepSpeedJobName", SETS, "tensorboard", ANY, \
      "a folder inside output_path") \
    SECTION_OF(X, "wandb", "a service") \
    NO_FLAG(X, "wandb.enabled", "false", "nothing is sent to a service: metrics.jsonl has every step") \
    IDLE_TEXT(X, "wandb.group", "null", "of a service") \
    IDLE_TEXT(X, "wandb.team", "null", "of a service") \
    IDLE_TEXT(X, "wandb.project", "deepspeed", "of a service") \
    NO_SECTION(X, "comet", "nothing is sent to a service: metrics.jsonl has every step") \
    SECTION_OF(X, "flops_profiler", "FLOP/s of a step") \
    NO_FLAG(X, "flops_profiler.enabled", "false", "lockstep bench step prints FLOP/s") \
    X("flops_profiler.recompute_fwd_factor", NUMBER, false, "0", IDLE, "", ANY, "of the profiler") \
    IDLE_COUNT(X, "flops_profiler.profile_step", "1", "of the profiler") \
    X("flops_profiler.module_depth", INTEGER, false, "-1", IDLE, "", ANY, "of the profiler") \
    IDLE_COUNT(X, "flops_profiler.top_modules", "1", "of the profiler") \
    IDLE_FLAG(X, "flops_profiler.detailed", "true", "of the profiler") \
    IDLE_TEXT(X, "flops_profiler.output_file", "null", "of the profiler") \
    SECTION_OF(X, "comms_logger", "times of collectives") \
    NO_FLAG(X, "comms_logger.enabled", "false", "a log of collectives is not built") \
    IDLE_FLAG(X, "comms_logger.verbose", "false", "of the log") \
    IDLE_FLAG(X, "comms_logger.prof_all", "true", "of the log") \
    IDLE_FLAG(X, "comms_logger.debug", "false", "of the log") \
    X("comms_logger.prof_ops", LIST, false, "null", IDLE, "", ANY, "of the log") \
    SECTION_OF(X, "autotuning", "trial runs") \
    NO_FLAG(X, "autotuning.enabled", "false", "tuning by trial runs is not built: lockstep plan") \
    IDLE_FLAG(X, "autotuning.fast", "true", "of tuning") \
    IDLE_TEXT(X, "autotuning.results_dir", "null", "of tuning") \
    IDLE_TEXT(X, "autotuning.exps_dir", "null", "of tuning") \
    IDLE_FLAG(X, "autotuning.overwrite", "true", "of tuning") \
    IDLE_COUNT(X, "autotuning.start_profile_step", "3", "of tuning") \
    IDLE_COUNT(X, "autotuning.end_profile_step", "5", "of tuning") \
    IDLE_TEXT(X, "autotuning.metric", "throughput", "of tuning") \
    IDLE_TEXT(X, "autotuning.metric_path", "null", "of tuning") \
    IDLE_TEXT(X, "autotuning.tuner_type", "gridsearch", "of tuning") \
    IDLE_COUNT(X, "autotuning.tuner_early_stopping", "5", "of tuning") \
    IDLE_COUNT(X, "autotuning.tuner_num_trials", "50", "of tuning") \
    X("autotuning.arg_mappings", ANYTHING, false, "null", IDLE, "", ANY, "of tuning") \
    IDLE_COUNT(X, "autotuning.max_train_batch_size", "null", "of tuning") \
    IDLE_COUNT(X, "autotuning.min_train_batch_size", "1", "of tuning") \
    IDLE_COUNT(X, "autotuning.max_train_micro_batch_size_per_gpu", "1024", "of tuning") \
    IDLE_COUNT(X, "autotuning.min_train_micro_batch_size_per_gpu", "1", "of tuning") \
    IDLE_COUNT(X, "autotuning.num_tuning_micro_batch_sizes", "3", "of tuning") \
    IDLE_COUNT(X, "autotuning.mp_size", "1", "of tuning") \
    X("autotuning.model_info", ANYTHING, false, "null", IDLE, "", ANY, "of tuning") \
    IDLE_TEXT(X, "autotuning.model_info_path", "null", "of tuning") \
    SECTION_OF(X, "elasticity", "batch sizes for changing numbers of devices") \
    NO_FLAG(X, "elasticity.enabled", "false", \
            "not built: any number of devices gives the same bits with one batch size") \
    IDLE_COUNT(X, "elasticity.max_train_batch_size", "2000", "of elasticity") \
    X("elasticity.micro_batch_sizes", LIST, false, "null", IDLE, "", ANY, "of elasticity") \
    IDLE_COUNT(X, "elasticity.min_gpus", "1", "of elasticity") \
    IDLE_COUNT(X, "elasticity.max_gpus", "10000", "of elasticity") \
    IDLE_COUNT(X, "elasticity.min_time", "0", "of elasticity") \
    X("elasticity.version", NUMBER, false, "0.2", IDLE, "", ANY, "of elasticity") \
    IDLE_FLAG(X, "elasticity.ignore_non_elastic_batch_info", "false", "of elasticity") \
    IDLE_FLAG(X, "elasticity.prefer_larger_batch", "true", "of elasticity") \
    IDLE_COUNT(X, "elasticity.model_parallel_size", "1", "of elasticity") \
    IDLE_COUNT(X, "elasticity.num_gpus_per_node", "1", "of elasticity") \
    SECTION_OF(X, "aio", "how disks are read") \
    IDLE_COUNT(X, "aio.block_size", "1048576", "the plan decides") \
    IDLE_COUNT(X, "aio.queue_depth", "8", "the plan decides") \
    IDLE_COUNT(X, "aio.thread_count", "1", "the plan decides") \
    IDLE_COUNT(X, "aio.intra_op_parallelism", "1", "the plan decides") \
    IDLE_FLAG(X, "aio.single_submit", "false", "the plan decides") \
    IDLE_FLAG(X, "aio.overlap_events", "true", "reads and writes run beside the update") \
    IDLE_FLAG(X, "aio.use_gds", "false", "of GPUs only") \
    SECTION_OF(X, "checkpoint", "DeepSpeed's checkpoints") \
    IDLE_TEXT(X, "checkpoint.tag_validation", "Warn", "checkpoints have no tags") \
    NO_FLAG(X, "checkpoint.load_universal", "false", "DeepSpeed's checkpoints are not read") \
    IDLE_FLAG(X, "checkpoint.use_node_local_storage", "false", "of DeepSpeed's checkpoints") \
    X("checkpoint.parallel_write", ANYTHING, false, "null", IDLE, "", ANY, \
      "of DeepSpeed's checkpoints") \
    NO_SECTION(X, "nebula", "a service is not built") \
    NO_SECTION(X, "datastates", "DeepSpeed's checkpoints are not written") \
    X("timers", ANYTHING, false, "null", IDLE, "", ANY, "there is one clock")

#define LS_DEEPSPEED_KEYS(X) \
    LS_DEEPSPEED_TRAINING_KEYS(X) \
    LS_DEEPSPEED_ZERO_KEYS(X) \
    LS_DEEPSPEED_OLD_KEYS(X) \
    LS_DEEPSPEED_PRECISION_KEYS(X) \
    LS_DEEPSPEED_EXCHANGE_KEYS(X) \
    LS_DEEPSPEED_REPORT_KEYS(X)
/* clang-format on */

#endif
