package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"skep/abi"
)

// checkOutput refuses what is no turn result. Nothing at all is one.
func checkOutput(out []byte) error {
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

// maxAnswerDepth keeps an action's answer within what every JSON decoder takes.
const maxAnswerDepth = 256

// checkAnswer checks the output of an action that ended well.
func checkAnswer(out []byte) error {
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

// guestError renders the error a guest wrote: its code and message, or what it
// wrote as it is.
func guestError(out []byte) string {
	var body struct{ Code, Message string }
	if json.Unmarshal(out, &body) == nil && body.Message != "" {
		if body.Code == "" {
			return clip(body.Message, maxFailure)
		}
		return clip(body.Code+": "+body.Message, maxFailure)
	}
	if len(out) == 0 {
		return "the agent returned an error without a message"
	}
	return clip(string(out), maxFailure)
}

// clip bounds a text and makes it valid UTF-8.
func clip(text string, most int) string {
	if len(text) > most {
		text = text[:most]
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

// trapText renders a trap: where, what, and what the guest said last.
func trapText(name string, err error, said string) string {
	what, _, _ := strings.Cut(err.Error(), "\nwasm stack trace:")
	if _, after, ok := strings.Cut(what, "wasm error: "); ok {
		what = after
	}
	if said != "" {
		what += " (last words: " + said + ")"
	}
	return name + ": " + what
}

// isStackOverflow recognises the engine's own limit, which has no exported
// error.
func isStackOverflow(err error) bool {
	return strings.Contains(err.Error(), "stack overflow")
}

func stackExit(limit int64) *Exit {
	return &Exit{Kind: ExitStack, Limit: keyStack,
		Message: fmt.Sprintf("went deeper than %d bytes of stack", limit)}
}
