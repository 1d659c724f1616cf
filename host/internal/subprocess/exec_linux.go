package subprocess

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"golang.org/x/sys/unix"
)

// Exit codes of a guard that are not the process's own.
const (
	exitSetup   = 126 // it could not begin
	exitDenied  = 95  // the program may not be executed
	exitMissing = 96  // the program or what runs it is not there
	exitMemory  = 97  // the process took too much memory
	exitTasks   = 98  // it started too many others
	exitRoom    = 99  // it kept too much in its directory
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
		return failed(enter(s), s, stderr)
	}
	code, err := guard(s)
	if err != nil {
		fmt.Fprintf(stderr, "skep: guard %s: %v\n", s.Name, err)
	}
	return code
}

// failed is the code for a program that was not executed. What the code says needs
// no words.
func failed(err error, s spec, stderr io.Writer) int {
	var refused *execError
	switch {
	case errors.As(err, &refused) && errors.Is(err, unix.EACCES):
		return exitDenied
	case errors.As(err, &refused) && errors.Is(err, unix.ENOENT):
		return exitMissing
	}
	fmt.Fprintf(stderr, "skep: start %s: %v\n", s.Name, err)
	return exitSetup
}
