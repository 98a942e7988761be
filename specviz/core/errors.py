"""The one family of errors that a user sees. Each message is a sentence that says what to do."""


class SpecvizError(Exception):
    """Base of every error that the page or the command line shows in words."""


class InputError(SpecvizError):
    """A prompt, a setting or an option that cannot be used as given."""


class LoadError(SpecvizError):
    """Weights that cannot be found, fetched, verified, read or placed on the device."""


class PairError(SpecvizError):
    """A target and a draft that cannot work together."""


class ContextError(SpecvizError):
    """More tokens than a context holds, or a step that its cache cannot take back."""


class TraceError(SpecvizError):
    """A trace file that is not one, or is broken at a line that the message names."""
