package process

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"
)

// Keys of an agent's table that an error can name.
const (
	keyReadable = "readable"
	keyMemory   = "limits.memory"
)

// startError explains why a started program does not serve.
type startError struct {
	reason string
	output string // the last output of the process
	// key is the key to change, empty for none; table is the agent's table, empty if
	// several agents may share the program.
	key, table string
	err        error
}

// Error ends with the key to change.
func (u *startError) Error() string {
	text := u.reason + u.output
	if u.key == "" {
		return text
	}
	text += "; the key to change is "
	if u.table != "" {
		text += "[" + u.table + "] "
	}
	return text + u.key
}

// Unwrap returns the underlying error.
func (u *startError) Unwrap() error { return u.err }

// notAProgram describes why bytes are no program; empty if they may be one.
func notAProgram(program []byte) string {
	switch {
	case bytes.HasPrefix(program, []byte("\x00asm")):
		return "it is a WebAssembly module; its source begins with file:"
	case !bytes.HasPrefix(program, []byte("\x7fELF")) && !bytes.HasPrefix(program, []byte("#!")):
		return "it is neither a program for Linux nor a script that begins with #! and its interpreter"
	}
	return ""
}

// scriptInterpreter is the interpreter in a script's first line, for messages; empty for a
// binary.
func scriptInterpreter(program []byte) string {
	line, is := bytes.CutPrefix(program, []byte("#!"))
	if !is {
		return ""
	}
	line, _, _ = bytes.Cut(line[:min(len(line), maxLine)], []byte("\n"))
	name, _, _ := strings.Cut(strings.TrimSpace(string(line)), " ")
	return printable(name, maxLine)
}

// Errors of go-plugin for a failed start.
const (
	pluginSilent       = "Failed to read any lines"
	pluginBadHandshake = "Unrecognized remote plugin message: "
	pluginTimeout      = "timeout while waiting for plugin to start"
	pluginExited       = "plugin exited before we could connect"
)

// startFailure ends a process that does not answer, and explains the failure by its exit,
// if it has exited.
func (p *process) startFailure(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		select {
		case <-p.guard.done:
		case <-ctx.Done():
		case <-time.After(exitDelay):
		}
	}
	u := p.explainStart(err.Error())
	p.kill("")
	said := p.output.lastWords()
	if u == nil || ctx.Err() != nil {
		return fmt.Errorf("%w%s", err, said)
	}
	u.err = err
	if u.key != keyMemory { // a killed process has not reported the reason
		u.output = said
	}
	return u
}

// advice is for a program that runs and is no agent.
const advice = "; is it an agent? sdk/goproc and sdk/python make them"

// explainStart explains a failed start; nil if err explains it.
func (p *process) explainStart(err string) *startError {
	nothing := strings.Contains(err, pluginSilent)
	first, wrote := strings.CutPrefix(err, pluginBadHandshake)
	if wrote && !nothing && p.guard.exitCode() != exitMemory {
		return &startError{reason: fmt.Sprintf("its first line is no handshake: %.64q", first) + advice}
	}
	switch u := p.explainExit(); {
	case u != nil:
		return u
	case nothing, strings.Contains(err, pluginExited):
		return &startError{reason: "it did not say that it serves" + advice}
	case strings.Contains(err, pluginTimeout):
		return &startError{reason: fmt.Sprintf("it did not say within %v that it serves", startTimeout) + advice}
	}
	return nil
}

// explainExit explains a failed start by the guard's exit code.
func (p *process) explainExit() *startError {
	code, script := p.guard.exitCode(), p.guard.spec.Interpreter
	switch {
	case code == exitMemory:
		return p.memoryError()
	case code == exitDenied && script != "":
		return &startError{reason: fmt.Sprintf("it may not run its interpreter %s", script), key: keyReadable}
	case code == exitDenied:
		return &startError{reason: "it may not run, or not read the loader that it names", key: keyReadable}
	case code == exitMissing && script != "":
		return &startError{reason: fmt.Sprintf("its interpreter %s is not there; its first line names it", script)}
	case code == exitMissing:
		return &startError{reason: "the loader that it names is not there"}
	case code > 0 && script != "":
		return &startError{reason: p.guard.exitReason() + " before it served; what it reads, unless it is below /usr, must be in readable", key: keyReadable}
	case code > 0:
		return &startError{reason: p.guard.exitReason() + " before it served"}
	}
	return nil
}

func (p *process) memoryError() *startError {
	return &startError{reason: fmt.Sprintf("it took more memory than the %d KiB that it may, and was killed", p.guard.spec.Memory>>10), key: keyMemory}
}

// checkMemory refuses a process that exceeds its memory limit before the first turn. The
// guard checks only from time to time, and would kill it in the middle of a turn.
func (p *process) checkMemory() error {
	if most := p.guard.spec.Memory; most > 0 && p.guard.memoryUsed() > most {
		p.kill("")
		return p.memoryError()
	}
	return nil
}
