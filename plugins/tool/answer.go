package main

import (
	"encoding/json"
	"errors"
	"fmt"

	"skep/plugins/internal/question"
	skep "skep/sdk/go"
)

// answer is the payload of a tool_response.
type answer struct {
	Status string          `json:"status"` // success, error or permission_denied
	Output json.RawMessage `json:"output,omitempty"`
	// Seconds is how long the action took.
	Seconds float64 `json:"execution_time"`
	Error   *fault  `json:"error,omitempty"`
}

type fault struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// codes are the error codes of an answer. Other refusals of the host keep their name.
var codes = map[skep.Code]string{
	skep.Invalid: "INVALID_FORMAT", skep.Denied: "PERMISSION_DENIED", skep.Unsupported: "TOOL_NOT_FOUND",
	skep.Deadline: "TIMEOUT",
}

func newAnswer(output json.RawMessage, seconds float64, err error) answer {
	if err == nil {
		if len(output) == 0 {
			output = json.RawMessage("null")
		}
		return answer{Status: "success", Output: output, Seconds: seconds}
	}
	a := answer{Status: "error", Error: &fault{Code: skep.Internal.String(), Message: question.Clip(err.Error(), maxText)}}
	var e *skep.Error
	if errors.Is(err, errWithdrawn) {
		a.Error.Code = "CANCELLED"
	}
	if errors.As(err, &e) {
		a.Error.Code, a.Error.Message = e.Code.String(), question.Clip(e.Message, maxText)
		if code, ok := codes[e.Code]; ok {
			a.Error.Code = code
		}
		if e.Code == skep.Denied {
			a.Status = "permission_denied"
		}
	}
	return a
}

// Bounds of an answer, in bytes: of a message, of the text of an error in it, and of what it
// repeats of its question's subject.
const (
	maxBody    = 256 << 10
	maxText    = 4 << 10
	maxSubject = 200
)

// encode writes an answer. An output that is too long for a message is left out: the action has
// run, and its caller must know.
func (a answer) encode(tool string) ([]byte, error) {
	body, err := json.Marshal(a)
	if err != nil || len(body) <= maxBody {
		return body, err
	}
	return json.Marshal(answer{Status: "error", Seconds: a.Seconds, Error: &fault{skep.Limit.String(),
		fmt.Sprintf("%s has run, and its output of %d bytes is longer than a message, which has %d", tool, len(a.Output), maxBody)}})
}
