package subprocess

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"
)

// Keys of an agent that its operator changes so that its program starts.
const (
	keyReadable = "readable"
	keyMemory   = "limits.memory"
)

// unserved is why a program that was started does not serve.
type unserved struct {
	why  string
	said string // the process's last words
	// key of the agent decides, empty where none does; owner is the agent's table,
	// empty where several may share the program.
	key, owner string
	err        error
}

// Error ends with what to change.
func (u *unserved) Error() string {
	text := u.why + u.said
	if u.key == "" {
		return text
	}
	text += "; the key to change is "
	if u.owner != "" {
		text += "[" + u.owner + "] "
	}
	return text + u.key
}

// Unwrap returns what was noticed of it.
func (u *unserved) Unwrap() error { return u.err }

// unfit says why bytes are no program, empty where they may be one.
func unfit(program []byte) string {
	switch {
	case bytes.HasPrefix(program, []byte("\x00asm")):
		return "it is a WebAssembly module; its source begins with file:"
	case !bytes.HasPrefix(program, []byte("\x7fELF")) && !bytes.HasPrefix(program, []byte("#!")):
		return "it is neither a program for Linux nor a script that begins with #! and its interpreter"
	}
	return ""
}

// interpreter is what a script's first line names, for people; empty for a program
// that has none.
func interpreter(program []byte) string {
	line, is := bytes.CutPrefix(program, []byte("#!"))
	if !is {
		return ""
	}
	line, _, _ = bytes.Cut(line[:min(len(line), maxLine)], []byte("\n"))
	name, _, _ := strings.Cut(strings.TrimSpace(string(line)), " ")
	return clip(name, maxLine)
}

// What go-plugin says of a start that failed.
const (
	saidNothing = "Failed to read any lines"
	saidOther   = "Unrecognized remote plugin message: "
	saidTooLate = "timeout while waiting for plugin to start"
	endedEarly  = "plugin exited before we could connect"
)

// unserved ends a process that does not answer, and explains why it does not, by how
// it has ended where it has.
func (p *process) unserved(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		select {
		case <-p.guard.done:
		case <-ctx.Done():
		case <-time.After(deathKnell):
		}
	}
	u := p.failure(err.Error())
	p.kill("")
	said := p.said.lastWords()
	if u == nil || ctx.Err() != nil {
		return fmt.Errorf("%w%s", err, said)
	}
	u.err = err
	if u.key != keyMemory { // who is killed in the middle says nothing of it
		u.said = said
	}
	return u
}

// advice is for a program that runs and is no agent.
const advice = "; is it an agent? sdk/goproc and sdk/python make them"

// failure is what is known of a start that failed, nil where err says it all.
func (p *process) failure(err string) *unserved {
	nothing := strings.Contains(err, saidNothing)
	first, wrote := strings.CutPrefix(err, saidOther)
	if wrote && !nothing && p.guard.code() != exitMemory {
		return &unserved{why: fmt.Sprintf("its first line is no handshake: %.64q", first) + advice}
	}
	switch u := p.howEnded(); {
	case u != nil:
		return u
	case nothing, strings.Contains(err, endedEarly):
		return &unserved{why: "it did not say that it serves" + advice}
	case strings.Contains(err, saidTooLate):
		return &unserved{why: fmt.Sprintf("it did not say within %v that it serves", startPatience) + advice}
	}
	return nil
}

// howEnded is a failure by the code that the guard has ended with.
func (p *process) howEnded() *unserved {
	code, script := p.guard.code(), p.guard.spec.Interpreter
	switch {
	case code == exitMemory:
		return p.tooBig()
	case code == exitDenied && script != "":
		return &unserved{why: fmt.Sprintf("it may not run its interpreter %s", script), key: keyReadable}
	case code == exitDenied:
		return &unserved{why: "it may not run, or not read the loader that it names", key: keyReadable}
	case code == exitMissing && script != "":
		return &unserved{why: fmt.Sprintf("its interpreter %s is not there; its first line names it", script)}
	case code == exitMissing:
		return &unserved{why: "the loader that it names is not there"}
	case code > 0 && script != "":
		return &unserved{why: p.guard.ended() + " before it served; what it reads, unless it is below /usr, must be in readable", key: keyReadable}
	case code > 0:
		return &unserved{why: p.guard.ended() + " before it served"}
	}
	return nil
}

func (p *process) tooBig() *unserved {
	return &unserved{why: fmt.Sprintf("it took more memory than the %d KiB that it may, and was killed", p.guard.spec.Memory>>10), key: keyMemory}
}

// fits refuses a process that has taken too much before its first turn: the guard
// looks now and then, and might see it only in the middle of a turn.
func (p *process) fits() error {
	if most := p.guard.spec.Memory; most > 0 && p.guard.memory() > most {
		p.kill("")
		return p.tooBig()
	}
	return nil
}
