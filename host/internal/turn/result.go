package turn

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"skep/abi"
)

// Result is how a turn ended and what it used.
type Result struct {
	// Output is what the agent wrote; with a nil Exit it is a valid
	// [abi.TurnResult] or empty.
	Output []byte
	// Fuel, CPU and HostCalls count from skep_turn on. An op that was refused
	// for a budget, its pointers or its size is not counted in HostCalls.
	Fuel      uint64
	CPU       time.Duration
	HostCalls int64
	// StartFuel and StartCPU are what the start of the module took, where this
	// turn made an image or an instance of its own; else zero.
	StartFuel uint64
	StartCPU  time.Duration
	// Memory is the size of the linear memory at the end, its highest.
	Memory int64
	// Status is what skep_turn returned, if it returned.
	Status abi.Status
	// Exit is nil when the turn ended well.
	Exit *Exit
}

// maxAnswerDepth keeps an action's answer within what every JSON decoder takes.
const maxAnswerDepth = 256

// StatusExit returns the exit of a call that returned a status and wrote an output,
// nil when it ended well. The name is the export that was called, a turn or an
// action.
func StatusExit(name string, status abi.Status, output []byte) *Exit {
	if status != abi.StatusOK {
		return FailedExit(name, status, output)
	}
	check := checkTurnResult
	if name == abi.ExportAction {
		check = checkActionAnswer
	}
	if err := check(output); err != nil {
		return &Exit{Kind: ExitFailed, Message: err.Error()}
	}
	return nil
}

// checkTurnResult refuses an output that is not a turn result. An empty one is.
func checkTurnResult(out []byte) error {
	if len(out) == 0 {
		return nil
	}
	result, err := abi.ParseTurnResult(out)
	if err != nil {
		return fmt.Errorf("bad output: %w", err)
	}
	if len(result.State) > abi.MaxState {
		return fmt.Errorf("bad output: a state of %d bytes, at most %d", len(result.State), abi.MaxState)
	}
	return nil
}

// checkActionAnswer refuses an output that is not one JSON value or empty.
func checkActionAnswer(out []byte) error {
	switch {
	case len(out) == 0:
		return nil
	case !utf8.Valid(out) || !json.Valid(out):
		return errors.New("bad output: the answer of an action must be one JSON value")
	case abi.Deeper(out, maxAnswerDepth):
		return fmt.Errorf("bad output: the answer is nested deeper than %d levels", maxAnswerDepth)
	}
	return nil
}

// failureText renders the error an agent wrote: its code and message, or its
// output unchanged where that is no error.
func failureText(out []byte) string {
	var body struct{ Code, Message string }
	if json.Unmarshal(out, &body) == nil && body.Message != "" {
		if body.Code == "" {
			return Clip(body.Message, MaxMessage)
		}
		return Clip(body.Code+": "+body.Message, MaxMessage)
	}
	if len(out) == 0 {
		return "the agent returned an error without a message"
	}
	return Clip(string(out), MaxMessage)
}

// Output is what a program has written, as an attribute of a log. It may quote a tenant's content, and
// does not leave the host with the log.
type Output string

// KeepInHost marks the value for logs that are sent.
func (Output) KeepInHost() {}

// Clip bounds a text from an agent to a number of bytes and makes it valid UTF-8.
func Clip(text string, most int) string {
	if len(text) > most {
		text = text[:most]
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}
