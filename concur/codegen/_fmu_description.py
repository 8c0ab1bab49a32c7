"""Descriptions of an FMU: XML as in FMI 2.0 and 3.0, and an HTML page."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from xml.etree import ElementTree

from concur.codegen._fmu_model import STEP_SIZE, FmuModel, FmuVariable
from concur.codegen._fmu_sources import TOKEN, variable_table

_CATEGORIES = ("logStatusWarning", "logStatusDiscard", "logStatusError")
_PART = re.compile(r"(kg|rad|m|s|N|J)(-?\d*)")
_BASE = {
    "kg": {"kg": 1},
    "m": {"m": 1},
    "s": {"s": 1},
    "rad": {"rad": 1},
    "N": {"kg": 1, "m": 1, "s": -2},
    "J": {"kg": 1, "m": 2, "s": -2},
}
_FEATURES = {
    "canHandleVariableCommunicationStepSize": "true",
    "canBeInstantiatedOnlyOncePerProcess": "false",
}


def base_units(unit: str) -> dict[str, int]:
    """Exponents of kg, m, s and rad in a unit like "kg.m/s"; ValueError for any other text."""
    exponents = dict[str, int]()
    above, _, below = unit.partition("/")
    for parts, sign in ((above, 1), (below, -1)):
        for part in filter(None, parts.split(".")):
            found = _PART.fullmatch(part)
            if found is None:
                raise ValueError(unit)
            for name, power in _BASE[found[1]].items():
                exponents[name] = exponents.get(name, 0) + sign * power * int(found[2] or 1)
    return {name: power for name, power in exponents.items() if power}


def fmu_description(model: FmuModel, version: str, sources: Sequence[str]) -> dict[str, str]:
    """Texts that describe an FMU in FMI "2.0" or "3.0", by their path in the archive."""
    root = (_second if version == "2.0" else _third)(model, sources)
    files = {
        "modelDescription.xml": _written(root),
        "documentation/index.html": _page(model),
    }
    if version == "3.0":
        build = ElementTree.Element("fmiBuildDescription", fmiVersion="3.0")
        configuration = ElementTree.SubElement(
            build, "BuildConfiguration", modelIdentifier=model.identifier
        )
        listed = ElementTree.SubElement(configuration, "SourceFileSet", language="C99")
        for name in sources:
            ElementTree.SubElement(listed, "SourceFile", name=name)
        files["sources/buildDescription.xml"] = _written(build)
    return files


def _third(model: FmuModel, sources: Sequence[str]) -> ElementTree.Element:
    root = ElementTree.Element(
        "fmiModelDescription",
        fmiVersion="3.0",
        modelName=model.name,
        instantiationToken=TOKEN,
        description=model.description,
        generationTool="concur",
        variableNamingConvention="structured",
    )
    ElementTree.SubElement(
        root,
        "CoSimulation",
        {
            "modelIdentifier": model.identifier,
            "canGetAndSetFMUState": "true",
            "canSerializeFMUState": "true",
            **_FEATURES,
        },
    )
    _common(root, model)
    variables = ElementTree.SubElement(root, "ModelVariables")
    ElementTree.SubElement(variables, "Float64", {"valueReference": "0", **_TIME, "unit": "s"})
    table = variable_table(model, "3.0")
    for reference, (variable, _) in enumerate(table, 1):
        attributes = {
            "name": variable.name,
            "valueReference": str(reference),
            **_kind(variable),
            "description": _sentence(variable),
        }
        unit = variable.units[0]
        if set(variable.units) == {unit} and unit != "1":
            attributes["unit"] = unit
        attributes |= _bounds(variable.smallest, variable.largest)
        if variable.causality != "output":
            attributes["start"] = " ".join(repr(float(value)) for value in variable.start)
        kind = "Int32" if variable.integer else "Float64"
        element = ElementTree.SubElement(variables, kind, attributes)
        if variable.elements:
            ElementTree.SubElement(element, "Dimension", start=str(variable.size))
    structure = ElementTree.SubElement(root, "ModelStructure")
    later, first = _dependencies(model, [variable for variable, _ in table])
    for tag, known in (("Output", later), ("InitialUnknown", first)):
        for reference, (variable, _) in enumerate(table, 1):
            if variable.causality == "output":
                ElementTree.SubElement(
                    structure,
                    tag,
                    valueReference=str(reference),
                    dependencies=" ".join(map(str, known)),
                )
    return root


def _second(model: FmuModel, sources: Sequence[str]) -> ElementTree.Element:
    root = ElementTree.Element(
        "fmiModelDescription",
        fmiVersion="2.0",
        modelName=model.name,
        guid=TOKEN,
        description=model.description,
        generationTool="concur",
        variableNamingConvention="structured",
    )
    unit = ElementTree.SubElement(
        root,
        "CoSimulation",
        {
            "modelIdentifier": model.identifier,
            "canGetAndSetFMUstate": "true",
            "canSerializeFMUstate": "true",
            **_FEATURES,
        },
    )
    listed = ElementTree.SubElement(unit, "SourceFiles")
    for name in sources:
        ElementTree.SubElement(listed, "File", name=name)
    _common(root, model)
    variables = ElementTree.SubElement(root, "ModelVariables")
    time = ElementTree.SubElement(variables, "ScalarVariable", {"valueReference": "0", **_TIME})
    ElementTree.SubElement(time, "Real", unit="s")
    table = variable_table(model, "2.0")
    for reference, (variable, k) in enumerate(table, 1):
        element = ElementTree.SubElement(
            variables,
            "ScalarVariable",
            {
                "name": variable.name if k is None else f"{variable.name}[{k + 1}]",
                "valueReference": str(reference),
                **_kind(variable),
                "description": variable.description
                if k is None
                else f"{variable.description} Entry: {variable.elements[k]}.",
            },
        )
        attributes = dict[str, str]()
        if variable.units[k or 0] != "1":
            attributes["unit"] = variable.units[k or 0]
        entry = slice(k or 0, (k or 0) + 1)
        attributes |= _bounds(variable.smallest[entry], variable.largest[entry])
        if variable.causality != "output":
            attributes["start"] = repr(float(variable.start[k or 0]))
        ElementTree.SubElement(element, "Integer" if variable.integer else "Real", attributes)
    structure = ElementTree.SubElement(root, "ModelStructure")
    later, first = _dependencies(model, [variable for variable, _ in table])
    for tag, known in (("Outputs", later), ("InitialUnknowns", first)):
        unknowns = ElementTree.SubElement(structure, tag)
        for reference, (variable, _) in enumerate(table, 1):
            if variable.causality == "output":
                # Indices in the list of variables start at 1, and the time comes first.
                ElementTree.SubElement(
                    unknowns,
                    "Unknown",
                    index=str(reference + 1),
                    dependencies=" ".join(str(place + 1) for place in known),
                )
    return root


_TIME = {
    "name": "time",
    "causality": "independent",
    "variability": "continuous",
    "description": "Time.",
}


def _common(root: ElementTree.Element, model: FmuModel) -> None:
    """Elements common to both versions: units, log categories, and a default step."""
    units = {unit for variable in model.all_variables for unit in variable.units} | {"s"}
    definitions = ElementTree.SubElement(root, "UnitDefinitions")
    for name in sorted(units - {"1"}):
        unit = ElementTree.SubElement(definitions, "Unit", name=name)
        powers = {base: str(power) for base, power in base_units(name).items()}
        ElementTree.SubElement(unit, "BaseUnit", powers)
    categories = ElementTree.SubElement(root, "LogCategories")
    for name in _CATEGORIES:
        ElementTree.SubElement(categories, "Category", name=name)
    ElementTree.SubElement(
        root, "DefaultExperiment", startTime="0", stepSize=repr(float(model.step_size))
    )


def _dependencies(model: FmuModel, table: Sequence[FmuVariable]) -> tuple[list[int], list[int]]:
    """References of the variables that the outputs depend on, in operation and at the start."""
    inputs = [i for i, variable in enumerate(table, 1) if variable.causality == "input"]
    if not model.state:
        return inputs, inputs
    parameters = [
        i
        for i, variable in enumerate(table, 1)
        if variable.causality == "parameter" and variable.name != STEP_SIZE
    ]
    return [], parameters


def _kind(variable: FmuVariable) -> dict[str, str]:
    variability = "fixed" if variable.causality == "parameter" else "continuous"
    kind = {
        "causality": variable.causality,
        "variability": "discrete" if variable.integer else variability,
    }
    if variable.causality == "output":
        kind["initial"] = "calculated"
    return kind


def _bounds(smallest: Sequence[float], largest: Sequence[float]) -> dict[str, str]:
    """Attributes of the range of some numbers, which have one together."""
    return {"min": repr(min(smallest)), "max": repr(max(largest))} if largest else {}


def _sentence(variable: FmuVariable) -> str:
    if not variable.elements:
        return variable.description
    same = len(set(variable.units)) == 1
    named = (
        element if same or unit == "1" else f"{element} ({unit})"
        for element, unit in zip(variable.elements, variable.units, strict=True)
    )
    return f"{variable.description} Entries: {', '.join(named)}."


def _page(model: FmuModel) -> str:
    rows = []
    for variable in model.all_variables:
        elements = variable.elements or ("",)
        for k, (element, unit) in enumerate(zip(elements, variable.units, strict=True)):
            name = f"{variable.name}[{k + 1}]" if variable.elements else variable.name
            text = variable.description if k == 0 else ""
            bounds = [bound[k] for bound in (variable.smallest, variable.largest) if bound]
            limits = " to ".join(f"{bound:.6g}" for bound in bounds)
            cells = (name, variable.causality, element, unit, limits, text)
            rows.append("".join(f"<td>{html.escape(cell)}</td>" for cell in cells))
    columns = ("variable", "causality", "element", "unit", "range", "description")
    head = "".join(f"<th>{name}</th>" for name in columns)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head><meta charset="utf-8">'
        f"<title>{html.escape(model.name)}</title></head>\n<body>\n"
        f"<h1>{html.escape(model.name)}</h1>\n<p>{html.escape(model.description)}</p>\n"
        f"<table>\n<tr>{head}</tr>\n"
        + "".join(f"<tr>{row}</tr>\n" for row in rows)
        + "</table>\n</body>\n</html>\n"
    )


def _written(root: ElementTree.Element) -> str:
    ElementTree.indent(root)
    body = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{body}\n'
