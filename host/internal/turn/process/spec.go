package process

import (
	"encoding/json"
	"strings"
	"unicode"
)

// Command is the command that makes the host's executable a guard.
const Command = "__exec"

// Roles of the executable, after [Command].
const (
	roleGuard = "guard" // between host and process
	roleEnter = "enter" // becomes the process
)

// spec describes the confinement of a process. It is passed as JSON on command lines, so
// it contains no secrets.
type spec struct {
	Name string `json:"name"`
	// Memory bounds the process and its descendants, in bytes.
	Memory int64 `json:"memory"`
	// Dir is created for the process and removed after it; it may write there.
	Dir string `json:"dir"`
	// Read are further files and directories that it may read.
	Read []string `json:"read,omitempty"`
	// Cgroup is the control group of the process; empty for none. It is removed after it.
	Cgroup string `json:"cgroup,omitempty"`
	// Interpreter is the interpreter in the first line of a script.
	Interpreter string `json:"interpreter,omitempty"`
}

func (s spec) encode() string {
	raw, _ := json.Marshal(s) // strings and numbers always encode
	return string(raw)
}

// maxLine bounds one line of output, in bytes.
const maxLine = 1 << 10

// printable bounds a text and replaces unprintable characters.
func printable(text string, most int) string {
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
