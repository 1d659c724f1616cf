"""What an agent is."""

from . import error


class Agent:
    """An agent. Only turn must be there; all may run in several threads at once."""

    def warm(self, host):
        """Is called once, before the first turn. Nothing but log is granted."""

    def turn(self, t):
        """Handles one message. What it did happens when it returns; an exception
        undoes it."""
        raise NotImplementedError

    def action(self, call):
        """Answers one call of an action with what JSON can say, or with JSON as bytes."""
        raise error.Error(error.CODES.index("UNSUPPORTED"), "this agent has no actions")
