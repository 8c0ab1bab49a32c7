"""All that the rig needs of `concur`; the other modules of `hil` import it from here alone.

A name is imported from its package when it is first used: the recorder's process and the commands'
help need few of them, and must start fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from concur import __version__ as concur_version
    from concur.certify import OPERATING
    from concur.checker import StoredTaskProof, confirmed, is_task_proof, load_task_proof
    from concur.cli import application, documented, errors_in_lines
    from concur.codegen import (
        DRIFT,
        Array,
        CompilationError,
        Evaluator,
        compiled,
        compiler_flags,
        find_compiler,
        fingerprint,
        recalled,
        sources,
    )
    from concur.control import (
        Law,
        Servo,
        Tick,
        TickStatus,
        TrackingLaw,
        tick_function,
        tracking_law,
    )
    from concur.errors import ConcurError, DescriptionError, install_command, printable, shown
    from concur.files import (
        confined,
        copy_of,
        folder_named,
        is_file,
        make_directory,
        read_bytes,
        read_json,
        writing,
    )
    from concur.groups import quaternion, se3
    from concur.io import Task, is_python, load_task
    from concur.mcap import Quantity, write_mcap
    from concur.outputs import reference_for
    from concur.proofs import Reading
    from concur.reduction import ReducedModel
    from concur.robot import Mechanism, Motor, joint_places, solve_positive_definite
    from concur.robot.joints import Joint, VectorJoint
    from concur.show.charts import Curve, Panel, chart
    from concur.show.page import Marked, Section, write_page
    from concur.show.style import PALETTE, REFERENCE, output_color, save_picture
    from concur.show.viewer import (
        LOCAL,
        REJECTED,
        Scene,
        add_plot,
        admits,
        drawable,
        silenced,
        start_server,
    )
    from concur.simulation import (
        Friction,
        Latency,
        Plant,
        check_friction,
        coordinate_columns,
        encoder_count,
        velocity_columns,
        write_arrays,
    )
    from concur.system import System
    from concur.tables import (
        Expected,
        FileName,
        InFiles,
        NotNegative,
        OneOrMore,
        Positive,
        Refusal,
        Text,
        build,
        fault,
        missing_file,
        read_toml,
        suggest,
        unknown,
    )

_PLACES = {
    "concur": "concur_version",
    "concur.certify": "OPERATING",
    "concur.checker": "StoredTaskProof confirmed is_task_proof load_task_proof",
    "concur.cli": "application documented errors_in_lines",
    "concur.codegen": (
        "Array CompilationError DRIFT Evaluator compiled compiler_flags find_compiler fingerprint "
        "recalled sources"
    ),
    "concur.control": "Law Servo Tick TickStatus TrackingLaw tick_function tracking_law",
    "concur.errors": "ConcurError DescriptionError install_command printable shown",
    "concur.files": (
        "confined copy_of folder_named is_file make_directory read_bytes read_json writing"
    ),
    "concur.io": "Task is_python load_task",
    "concur.system": "System",
    "concur.tables": (
        "Expected FileName InFiles NotNegative OneOrMore Positive Refusal Text build fault "
        "missing_file read_toml suggest unknown"
    ),
    "concur.groups": "quaternion se3",
    "concur.mcap": "Quantity write_mcap",
    "concur.robot": "Mechanism Motor joint_places solve_positive_definite",
    "concur.robot.joints": "Joint VectorJoint",
    "concur.outputs": "reference_for",
    "concur.show.charts": "Curve Panel chart",
    "concur.show.page": "Marked Section write_page",
    "concur.show.style": "PALETTE REFERENCE output_color save_picture",
    "concur.proofs": "Reading",
    "concur.reduction": "ReducedModel",
    "concur.simulation": (
        "Friction Latency Plant check_friction coordinate_columns encoder_count "
        "velocity_columns write_arrays"
    ),
    "concur.show.viewer": "LOCAL REJECTED Scene add_plot admits drawable silenced start_server",
}
"""Names by package, as above."""

_PACKAGES = {name: package for package, names in _PLACES.items() for name in names.split()}


def __getattr__(name: str) -> object:
    """Import a name at first use."""
    if name not in _PACKAGES:
        raise AttributeError(f"module `{__name__}` has no attribute `{name}`")
    own = "__version__" if name == "concur_version" else name
    found = globals()[name] = getattr(import_module(_PACKAGES[name]), own)
    return found
