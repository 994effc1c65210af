"""Rewards for training loops.

reward         a metric as a reward: a completion and its gold to a number
pooled_reward  the same, or a verifier of one's own, in processes that can be killed
trainers       the shapes in which TRL and verl call it
"""

from evalcore.adapters.reward.pooled_reward import PooledReward, pool_reward
from evalcore.adapters.reward.reward import Reward, count_unscored, make_reward
from evalcore.adapters.reward.trainers import TrlReward, VerlReward

__all__ = ["PooledReward", "Reward", "TrlReward", "VerlReward", "count_unscored", "make_reward", "pool_reward"]
