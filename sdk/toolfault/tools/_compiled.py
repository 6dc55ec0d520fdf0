"""A tool made ready to be called: its plan of validation and how its function is invoked."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from toolfault.errors import Issue, ToolError
from toolfault.tools import _call
from toolfault.tools._arguments import parse_arguments
from toolfault.tools._checks import Findings, Hints
from toolfault.tools._models import is_validation_error, model_check, plan_of_model
from toolfault.tools._phantoms import named
from toolfault.tools._plan import HintsPlan, Plan, schema_hash, secret_names
from toolfault.tools._rejection import rejected_by_checks, rejected_by_model, repairs_of
from toolfault.tools._signature import Parameters, read_parameters

if TYPE_CHECKING:
    from toolfault.tools._call import Call
    from toolfault.tools._tool import Tool

__all__ = ["Compiled", "compile_tool"]


class Compiled:
    """What is worked out once per tool, on its first call.

    Attributes:
        plan: Validates the arguments.
        parameters: The parameters the model fills.
        defaults: Default values of the parameters.
        optional_context: Context parameters the function can do without.
    """

    __slots__ = ("_hash", "_secret", "defaults", "optional_context", "parameters", "plan")

    def __init__(
        self,
        plan: Plan,
        parameters: Parameters,
        *,
        optional_context: frozenset[str],
    ) -> None:
        self.plan = plan
        self.parameters = parameters
        self.defaults = parameters.defaults
        self.optional_context = optional_context
        self._hash: str | None = None
        self._secret: frozenset[str] | None = None

    def prepare(self, call: Call, coerce: bool, label: str) -> dict[str, Any]:
        """Return the keyword arguments the model sent, validated.

        Raises:
            ToolError: The arguments are wrong; it says everything that is.
            Exception: What the parser or a model raises, see ``call.phase``.
        """
        raw = call.raw
        if type(raw) is not dict:
            call.phase = "parse"
            raw = parse_arguments(raw, optional=self.plan.optional)
            call.phase = "validation"
        call.arguments = raw
        call.validation_mode = self.plan.mode
        if _call.observers:
            call.schema_hash = self._hash or self.schema_hash
        findings = call.findings = Findings(coerce)
        kwargs = self.plan.prepare(raw, findings)
        if findings.repairs:
            call.coercions = repairs_of(findings)
        if findings.phantoms:
            call.phantom_arguments = named(findings.phantoms)
        if findings.found:
            call.rejection = rejected_by_checks(
                call.tool, findings, label, secret=self._secret or self.secret_fields
            )
            raise call.rejection
        return kwargs

    def invoker(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """Return a way to call ``fn`` by keywords, also where it takes some by position only."""
        positional = self.parameters.positional_only
        if not positional:
            return fn

        def invoke(**kwargs: Any) -> Any:
            given = [kwargs.pop(name, default) for name, default in positional.items()]
            return fn(*given, **kwargs)

        return invoke

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the arguments the model may send."""
        try:
            properties = self.plan.schema().get("properties")
        except Exception:  # noqa: BLE001 - a model that cannot say its schema
            properties = None
        return tuple(properties or self.parameters.annotations)

    @property
    def secret_fields(self) -> frozenset[str]:
        """Names of the fields that the schema marks as secret, as pydantic does a ``SecretStr``."""
        if self._secret is None:
            try:
                self._secret = frozenset(secret_names(self.plan.schema()))
            except Exception:  # noqa: BLE001 - a model that cannot say its schema
                self._secret = frozenset()
        return self._secret

    @property
    def schema_hash(self) -> str | None:
        """Hash of the parameter schema, 16 hex digits."""
        if self._hash is None:
            self._hash = schema_hash(self.plan.schema) or ""
        return self._hash or None

    def rejection(self, call: Call, exc: Exception, label: str) -> ToolError | None:
        """Return the failure a model's validation error means; None for any other exception."""
        if not is_validation_error(exc):
            return None
        call.rejection = rejected_by_model(
            call.tool,
            exc,
            call.arguments,
            label=label,
            findings=call.findings or Findings(),
            parameters=self.parameters.annotations,
            secret=self.secret_fields,
        )
        return call.rejection

    def misbound(
        self, tool: str, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> ToolError | None:
        """Return the failure of a direct call whose arguments do not fit the function."""
        names = list(self.parameters.annotations)
        given = {*names[: len(args)], *kwargs}
        issues = [
            Issue(name, "missing_field") for name in self.parameters.required if name not in given
        ]
        if not self.parameters.takes_extra:
            issues += [Issue(name, "unknown_field") for name in kwargs if name not in names]
        return ToolError.from_issues(tool, issues) if issues else None


def compile_tool(tool: Tool) -> Compiled:
    """Work out how ``tool`` is validated and called."""
    injected = frozenset(tool.injected)
    parameters = read_parameters(tool.fn, tool.scope, injected)
    return Compiled(
        _plan(tool, parameters),
        parameters,
        optional_context=frozenset(parameters.optional_context),
    )


def _plan(tool: Tool, parameters: Parameters) -> Plan:
    if tool.model is not None:
        return plan_of_model(tool.model, parameters)
    if tool.schema is not None:
        from toolfault.tools._schema import SchemaPlan

        return SchemaPlan(tool.schema, parameters)
    return HintsPlan(parameters, Hints(model_check))
