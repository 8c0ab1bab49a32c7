"""Certificates of the closed loop: decay rates, regions, tubes, and verifiable proofs.

A certificate states that every motion of the error dynamics of the deployed law that starts in a
stated region decays at a stated rate. Its status is PROVED, REFUTED or UNDECIDED; it is PROVED
only with a proof. The constants of the thesis and the verification of stored proofs work without
an extra; the search for faster rates needs the extra ``certify``.
"""

from concur.certify._affine_form import Counterexample
from concur.certify._certificate import Certificate, Method
from concur.certify._certify import certify
from concur.certify._chain import ChannelChain, DecayChain
from concur.certify._channel_certificate import ChannelCertificate
from concur.certify._channels import Channel, split
from concur.certify._design import certified_gains
from concur.certify._disturbance import Disturbance
from concur.certify._disturbances import (
    model_disturbance,
    momentum_disturbance,
    torque_disturbance,
    torque_effect,
)
from concur.certify._disturbed import DisturbedMotions, disturbed_motions
from concur.certify._error_bounds import error_bounds
from concur.certify._error_motions import ErrorMotions, error_motions
from concur.certify._gains import CertifiedGains
from concur.certify._integral import certify_integral
from concur.certify._integral_certificate import IntegralCertificate, IntegralPart
from concur.certify._narrow import narrow_decays
from concur.certify._operating import operating_bounds
from concur.certify._operating_certificate import OperatingCertificate
from concur.certify._operating_counterexample import OperatingCounterexample
from concur.certify._problem import Candidate
from concur.certify._prove import Proof, prove
from concur.certify._recheck import examine
from concur.certify._recheck_document import OPERATING
from concur.certify._recheck_finding import Recheck
from concur.certify._robust import tube, tubes
from concur.certify._sampling import (
    SampleLimits,
    disturbance_margin,
    hold_disturbance,
    largest_period,
    output_jerk,
    period_ahead,
    sample_limits,
)
from concur.certify._search import search
from concur.certify._status import ESTIMATE, Status
from concur.certify._structure import Refusal, Structure, check_structure
from concur.certify._task import LoopCertificate, certify_task
from concur.certify._thesis import thesis_constants
from concur.certify._thesis_constants import ThesisConstants
from concur.certify._tube import Tube
from concur.certify._tuning import METHODS as TUNED
from concur.certify._tuning import Trial, Tuning, tune

__all__ = [
    "ESTIMATE",
    "OPERATING",
    "TUNED",
    "Candidate",
    "Certificate",
    "CertifiedGains",
    "Channel",
    "ChannelCertificate",
    "ChannelChain",
    "Counterexample",
    "DecayChain",
    "Disturbance",
    "DisturbedMotions",
    "ErrorMotions",
    "IntegralCertificate",
    "IntegralPart",
    "LoopCertificate",
    "Method",
    "OperatingCertificate",
    "OperatingCounterexample",
    "Proof",
    "Recheck",
    "Refusal",
    "SampleLimits",
    "Status",
    "Structure",
    "ThesisConstants",
    "Trial",
    "Tube",
    "Tuning",
    "certified_gains",
    "certify",
    "certify_integral",
    "certify_task",
    "check_structure",
    "disturbance_margin",
    "disturbed_motions",
    "error_bounds",
    "error_motions",
    "examine",
    "hold_disturbance",
    "largest_period",
    "model_disturbance",
    "momentum_disturbance",
    "narrow_decays",
    "operating_bounds",
    "output_jerk",
    "period_ahead",
    "prove",
    "sample_limits",
    "search",
    "split",
    "thesis_constants",
    "torque_disturbance",
    "torque_effect",
    "tube",
    "tubes",
    "tune",
]
