"""Counts words and remembers how many it has counted in this task."""

import skep


class Clerk(skep.Agent):
    """Keeps nothing between turns but its state, so it is safe for several at once."""

    def turn(self, t):
        words = len(t.message.body.split())
        state = t.state or {"words": 0}
        state["words"] += words
        t.set_state(state)
        t.log("counted", words=words)
        t.task_complete("%d words, %d in this task, counted in Python" % (words, state["words"]))


if __name__ == "__main__":
    skep.serve(Clerk(), {"name": "clerk", "version": "1.0.0", "description": "Counts the words of what it gets."})
