"""What all scikit-learn shells share: a method by name with its hyper-parameters."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from sklearn.base import BaseEstimator, TransformerMixin

from calibrant.calibrators.registry import Kind, Method, find_method
from calibrant.exceptions import OptionError


class NamedCalibrator(TransformerMixin, BaseEstimator):
    """A calibrator that is a method's name and the method's hyper-parameters."""

    _kind: ClassVar[Kind]
    _own_params: ClassVar[tuple[str, ...]] = ()

    method: str
    _given: dict[str, Any]

    def _found(self, method: str) -> Method:
        """Return the method of that name, if it is of the right kind."""
        found = find_method(method)
        if found.kind != self._kind:
            raise OptionError(
                f"{type(self).__name__} needs a {self._kind} method; {method!r} is a "
                f"{found.kind} one. Use make_calibrator({method!r})."
            )
        return found

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002, FBT001, FBT002
        """Return the method and all its hyper-parameters."""
        return {
            "method": self.method,
            **{name: getattr(self, name) for name in self._own_params},
            **self._found(self.method).defaults(),
            **self._given,
        }

    def set_params(self, **params: Any) -> Self:
        """Change the method or hyper-parameters.

        With another method, hyper-parameters that it does not have are forgotten.
        """
        own = {name: params.pop(name) for name in self._own_params if name in params}
        method = params.pop("method", self.method)
        found = self._found(method)
        kept = {k: v for k, v in self._given.items() if k in found.defaults()}
        found.build(**{**kept, **params})
        self.method, self._given = method, {**kept, **params}
        for name, value in own.items():
            setattr(self, name, value)
        return self

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        told = "".join(f", {name}={value!r}" for name, value in self._told().items())
        return f"{type(self).__name__}({self.method!r}{told})"

    def _told(self) -> dict[str, Any]:
        """Return what differs from the defaults."""
        usual = self._found(self.method).defaults()
        return {k: v for k, v in self._given.items() if v != usual[k]}
