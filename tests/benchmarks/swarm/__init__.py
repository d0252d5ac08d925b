"""What a user of a swarm gets, beside one machine: training, prompts, and what bounds both."""
