// Command agent counts words and remembers how many it has counted in this task. One
// source is both a module for the sandbox and a program that runs as a process of
// its own.
package main

import (
	"fmt"
	"runtime"
	"strings"

	skep "skep/sdk/go"
	"skep/sdk/goproc"
)

// Clerk is the agent. It keeps nothing between turns but its state, so it is safe
// for several turns at once.
type Clerk struct{}

// State is what the agent remembers of one task.
type State struct {
	Words int `json:"words"`
}

var agent = skep.Run(skep.Descriptor{
	Name: "clerk", Version: "1.0.0",
	Description: "Counts the words of what it gets.",
}, Clerk{})

func main() { goproc.Serve(agent) }

// Turn counts and completes the task.
func (Clerk) Turn(t *skep.Turn) error {
	var state State
	if err := t.State(&state); err != nil {
		return err
	}
	words := len(strings.Fields(t.Message.Body))
	state.Words += words
	if err := t.SetState(state); err != nil {
		return err
	}
	t.Log("counted", "words", words)
	return t.TaskComplete(fmt.Sprintf("%d words, %d in this task, counted as a %s", words, state.Words, level()))
}

// level is how this runs.
func level() string {
	if runtime.GOOS == "wasip1" {
		return "module"
	}
	return "process"
}
