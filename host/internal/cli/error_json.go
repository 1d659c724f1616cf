package cli

import (
	"encoding/json"
	"errors"
	"strings"

	"skep/host/client"
	"skep/host/internal/definition/config"
)

// errorJSON is the JSON of a failure.
type errorJSON struct {
	Message string `json:"message"`
	// Code is the word of an exit code, see [codeWords].
	Code string `json:"code"`
	// RequestID is the id of a refused call, nil for other failures.
	RequestID *string       `json:"request_id"`
	Hint      string        `json:"hint,omitempty"`
	Faults    config.Faults `json:"faults,omitempty"`
}

// codeWords name the exit codes. Scripts depend on them.
var codeWords = map[int]string{
	exitFailed: "failed", exitUsage: "usage", exitConfig: "config", exitNotFound: "not_found", exitRefused: "refused",
	exitBudget: "budget", exitUnreachable: "unreachable", exitNonconforming: "check_failed",
	exitTimeout: "timeout", exitInterrupted: "interrupted",
}

// reportJSON writes a failure as one object in one line.
func (a *app) reportJSON(f *failure) {
	out := errorJSON{Message: f.Error(), Code: codeWords[f.code], Hint: f.hint}
	var refusal *client.Error
	if errors.As(f, &refusal) && refusal.RequestID != "" {
		out.RequestID = &refusal.RequestID
	}
	errors.As(f, &out.Faults)
	enc := json.NewEncoder(a.env.Stderr)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(map[string]errorJSON{"error": out}) // nobody is left to tell of a failure
}

// failsAsData reports whether failures are written as JSON. A command line that
// failed to parse is searched for the flag.
func (a *app) failsAsData() bool {
	if a.common.set != nil || a.json() {
		return a.json()
	}
	output := a.env.get(variable("output"))
	for i, arg := range a.env.Args {
		if arg == "--" {
			break
		}
		switch value, long := strings.CutPrefix(arg, "--output="); {
		case long:
			output = value
		case (arg == "-o" || arg == "--output") && i+1 < len(a.env.Args):
			output = a.env.Args[i+1]
		case strings.HasPrefix(arg, "-o") && arg != "-o":
			output = strings.TrimPrefix(arg[len("-o"):], "=")
		}
	}
	return output == outputJSON
}
