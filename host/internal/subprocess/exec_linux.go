package subprocess

import (
	"encoding/json"
	"fmt"
	"io"
)

// Exit codes of a guard that are not the process's own.
const (
	exitSetup  = 126 // it could not begin
	exitMemory = 97  // the process took too much memory
	exitTasks  = 98  // it started too many others
)

// Exec is the other side of [Command]: guard or process, as the arguments after it
// say. It returns the exit code; as the process it does not return where all went
// well.
func Exec(args []string, stderr io.Writer) int {
	if len(args) == 2 && (args[0] == roleKeep || args[0] == roleBecome) {
		return command(args[0], args[1], stderr)
	}
	if len(args) != 2 || args[0] != roleGuard && args[0] != roleEnter {
		fmt.Fprintln(stderr, "skep: "+Command+" is how the host starts subprocesses; it is not for people")
		return exitSetup
	}
	var s spec
	if err := json.Unmarshal([]byte(args[1]), &s); err != nil {
		fmt.Fprintln(stderr, "skep:", err)
		return exitSetup
	}
	if args[0] == roleEnter {
		fmt.Fprintf(stderr, "skep: start %s: %v\n", s.Name, enter(s))
		return exitSetup
	}
	code, err := guard(s)
	if err != nil {
		fmt.Fprintf(stderr, "skep: guard %s: %v\n", s.Name, err)
	}
	return code
}
