package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strings"
	"syscall"

	"skep/host/client"
	"skep/host/internal/datadir"
	"skep/host/internal/definition/config"
	"skep/host/internal/pathcheck"
	"skep/host/internal/turn"
)

// Exit codes. Scripts depend on them.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitConfig      = 3
	exitNotFound    = 4
	exitRefused     = 5
	exitBudget      = 6
	exitUnreachable = 7
	// exitNonconforming: a module failed a check.
	exitNonconforming = 8
	exitTimeout       = 124
	exitInterrupted   = 130
)

// failure is an error with an exit code and a hint.
type failure struct {
	code int
	err  error
	hint string
}

// Error returns the reason, without the hint.
func (f *failure) Error() string { return f.err.Error() }

// Unwrap returns the reason.
func (f *failure) Unwrap() error { return f.err }

func failf(code int, format string, args ...any) *failure {
	return &failure{code: code, err: fmt.Errorf(format, args...)}
}

func usagef(format string, args ...any) *failure { return failf(exitUsage, format, args...) }

// help adds what to do next.
func (f *failure) help(format string, args ...any) *failure {
	f.hint = fmt.Sprintf(format, args...)
	return f
}

// errReported ends a command whose failure was already reported.
var errReported = errors.New("reported")

// reported ends a command with a code and without a message.
func reported(code int) error { return &failure{code: code, err: errReported} }

// errInterrupted is the cause of a context that a signal has ended.
var errInterrupted = errors.New("interrupted")

// explain turns any error into a failure.
func explain(err error) *failure {
	var known *failure
	var faults config.Faults
	var module *turn.LoadError
	var weak *pathcheck.Error
	var refusal *client.Error
	var gone *client.Unreachable
	var key *datadir.KeyError
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, errInterrupted):
		return &failure{code: exitInterrupted, err: errInterrupted}
	case errors.As(err, &faults):
		return &failure{code: exitConfig, err: err}
	case errors.As(err, &module):
		return explainModule(module)
	case errors.As(err, &weak):
		return &failure{code: exitRefused, err: err}
	case errors.As(err, &refusal):
		return explainRefusal(refusal)
	case errors.As(err, &gone) && errors.Is(err, client.ErrSpeaksTLS):
		return &failure{code: exitUnreachable, err: err} // it says what to change
	case errors.As(err, &gone) && client.Untrusted(err):
		return (&failure{code: exitUnreachable, err: err}).help(
			"--ca-file names who vouches for the host, --client-cert and --client-key what it asks of you; a host without TLS has an http URL")
	case errors.As(err, &gone):
		return (&failure{code: exitUnreachable, err: err}).help("is `skep serve` running? --url names another host")
	case errors.As(err, &key):
		return &failure{code: exitConfig, err: err}
	case errors.Is(err, datadir.ErrNoStore):
		return (&failure{code: exitNotFound, err: err}).help("-c names the file of another swarm, --data the directory of its data")
	case errors.Is(err, datadir.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return &failure{code: exitNotFound, err: err}
	case errors.Is(err, syscall.EADDRINUSE):
		return (&failure{code: exitFailed, err: err}).help(
			"something else listens there, maybe another skep; stop it, or change the address in the setting that the error names")
	}
	return &failure{code: exitFailed, err: err}
}

func explainModule(e *turn.LoadError) *failure {
	f := &failure{code: exitRefused, err: e}
	if e.Key != "" {
		f.hint = fmt.Sprintf("the line to change is that of %s; `skep validate` gives its place", e.Key)
	}
	return f
}

// explainRefusal chooses the code for a host's answer.
func explainRefusal(e *client.Error) *failure {
	f := &failure{code: exitFailed, err: e}
	switch e.Status {
	case http.StatusBadRequest:
		f.code = exitUsage
	case http.StatusUnauthorized, http.StatusForbidden:
		f.code = exitRefused
	case http.StatusMisdirectedRequest:
		f.code = exitRefused
		f.hint = "call the host by an address it knows, or add this one to [server] hosts"
	case http.StatusNotFound:
		f.code = exitNotFound
		if isForeign(e.Detail) {
			f.code = exitUnreachable
			f.hint = "it is not skep's API that answers there: --url is the address of [server] listen, not that of admin_listen"
		}
	case http.StatusTooManyRequests, http.StatusPaymentRequired:
		f.code = exitBudget
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		f.code = exitUnreachable
	}
	return f
}

// isForeign reports whether a 404 comes from a server without the call: skep's API
// names what it has not found.
func isForeign(detail string) bool {
	return detail == "Not Found" || detail == "404 page not found" || strings.HasPrefix(detail, "<")
}
