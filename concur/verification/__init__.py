"""Campaigns: a controller against many worlds, and answers from the samples.

A world is a row of deviations from nominal numbers. An evaluator gives the robustness of each
requirement in a world: positive if it holds, and larger for a larger margin. The answers are
sampled; proofs come from `concur.certify`.
"""

from concur.verification._answers import (
    PairedComparison,
    PassRate,
    WorstWorld,
    paired_comparisons,
    pass_rates,
    quantiles,
    worst_worlds,
)
from concur.verification._campaign import Campaign
from concur.verification._curves import sampled_curves
from concur.verification._executors import cluster
from concur.verification._mujoco import ContactRun, mujoco_run
from concur.verification._report import CampaignReport
from concur.verification._result import CampaignResult
from concur.verification._run import workers
from concur.verification._search import WorstFound, worst_search
from concur.verification._sensitivity import (
    RankInfluence,
    SobolIndex,
    rank_influences,
    sobol_cost,
    sobol_indices,
)
from concur.verification._verify import verify, worst_searches

__all__ = [
    "Campaign",
    "CampaignReport",
    "CampaignResult",
    "ContactRun",
    "PairedComparison",
    "PassRate",
    "RankInfluence",
    "SobolIndex",
    "WorstFound",
    "WorstWorld",
    "cluster",
    "mujoco_run",
    "paired_comparisons",
    "pass_rates",
    "quantiles",
    "rank_influences",
    "sampled_curves",
    "sobol_cost",
    "sobol_indices",
    "verify",
    "workers",
    "worst_search",
    "worst_searches",
    "worst_worlds",
]
