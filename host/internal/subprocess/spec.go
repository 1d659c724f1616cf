package subprocess

import (
	"encoding/json"
	"strings"
	"unicode"
)

// Command is how the host's executable is told to be a guard.
const Command = "__exec"

// Roles of the executable, after [Command].
const (
	roleGuard = "guard" // between host and process
	roleEnter = "enter" // becomes the process
)

// spec says how a process is confined. It travels as JSON on the command line of
// guard and process, so it holds no secrets.
type spec struct {
	Name string `json:"name"`
	// Memory is what the process and everything it starts may take, in bytes.
	Memory int64 `json:"memory"`
	// Dir is made for the process and removed behind it; it may write there.
	Dir string `json:"dir"`
	// Read are further files and directories that it may read.
	Read []string `json:"read,omitempty"`
	// Interpreter is what the program names in its first line where it is text for
	// one.
	Interpreter string `json:"interpreter,omitempty"`
}

func (s spec) encode() string {
	raw, _ := json.Marshal(s) // texts and numbers always encode
	return string(raw)
}

// maxLine bounds a line that a process writes.
const maxLine = 1 << 10

// clip bounds a text and makes it printable.
func clip(text string, most int) string {
	if len(text) > most {
		text = text[:most]
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, strings.ToValidUTF8(text, "\uFFFD"))
}
