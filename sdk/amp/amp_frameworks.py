"""Handlers for Agent.capability of what other frameworks make. Each calls the one method that
its framework documents, and imports nothing of it."""


def langchain(runnable):
    """A handler of a LangChain Runnable: invoke(parameters)."""
    return lambda parameters: _plain(runnable.invoke(parameters))


def crewai(crew):
    """A handler of a CrewAI Crew: kickoff(inputs=parameters)."""
    return lambda parameters: _plain(crew.kickoff(inputs=parameters))


def autogen(agent, member="text"):
    """A handler of an AutoGen agent or team: await run(task=…), whose last message is the result.
    The task is a member of the parameters."""

    async def handle(parameters):
        return _plain((await agent.run(task=parameters[member])).messages[-1])

    return handle


def _plain(value):
    """A result as JSON has it: an object, or the text of a message."""
    for name in ("json_dict", "content", "raw"):
        found = getattr(value, name, None)
        if found is not None:
            return found
    return value
