package process

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"golang.org/x/sys/unix"
)

// Exec runs the guard or becomes the process, depending on the arguments after [Command].
// It returns the exit code; after a successful exec it does not return.
func Exec(args []string, stderr io.Writer) int {
	if len(args) == 2 && (args[0] == roleGuardCommand || args[0] == roleExecCommand) {
		return runCommandRole(args[0], args[1], stderr)
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
		return startExitCode(confineAndExec(s), s, stderr)
	}
	code, err := guard(s)
	if err != nil {
		fmt.Fprintf(stderr, "skep: guard %s: %v\n", s.Name, err)
	}
	return code
}

// startExitCode is the exit code for a program that was not executed. Errors without a
// code of their own are printed.
func startExitCode(err error, s spec, stderr io.Writer) int {
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
