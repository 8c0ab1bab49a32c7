"""Writers of robots: TOML, MJCF and URDF."""

from concur.writers._contacts import Contacts
from concur.writers._mjcf import to_mjcf
from concur.writers._save import save
from concur.writers._toml import to_toml
from concur.writers._urdf import to_urdf

__all__ = ["Contacts", "save", "to_mjcf", "to_toml", "to_urdf"]
