"""The dynamics of reduced models in another form: independent checks of `concur.reduction`."""

from concur.formulations._chart import MomentumChart

__all__ = ["MomentumChart"]
