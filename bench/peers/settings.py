"""What every peer trains with, and Lockstep beside them. Imports nothing: bench/ reads it without PyTorch."""
LEARNING_RATE = 5e-5
WEIGHT_DECAY = 0.01
WARM_UP_STEPS = 10
MAX_GRAD_NORM = 1.0
SEED = 42
