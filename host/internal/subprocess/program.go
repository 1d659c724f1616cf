package subprocess

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"skep/abi"
	"skep/host/internal/sandbox"
)

// Options are what all programs of a host have in common.
type Options struct {
	// Command begins the command line of a guard: the host's own executable and
	// [Command].
	Command []string
	Logger  *slog.Logger
	// Idle is how long a process may have no turn before it is ended; 0 never ends
	// it. The next turn starts it again.
	Idle time.Duration
	// health is how often a process is looked at, and how long that may take; 0 is
	// 10 s and 5 s.
	health [2]time.Duration
	// start is how long one may take until it can be asked; 0 is 30 s.
	start time.Duration
}

func (o Options) watch() watch {
	return watch{cmp.Or(o.health[0], 10*time.Second), cmp.Or(o.health[1], 5*time.Second), o.Idle}
}

// Source is a program's bytes and what the operator says about them.
type Source struct {
	// Name is what messages call it, for instance exec:./agent.
	Name    string
	Program []byte
	// SHA256 pins the bytes, in hexadecimal; empty accepts any.
	SHA256 string
	// Memory is what one process and everything it starts may take, in bytes; 0
	// means the default of [sandbox.DefaultLimits].
	Memory int64
	// Read are files and directories that the process may read besides the
	// system's libraries.
	Read []string
	// Owner is the table of swarm.toml that messages name, as in agents.clerk; empty
	// names none.
	Owner string
}

// Program is one agent's program and its processes, one for a tenant. It is safe for
// concurrent use.
type Program struct {
	opt        Options
	name       string
	spec       spec
	image      *image
	descriptor *abi.Descriptor
	log        *slog.Logger

	turns atomic.Int64 // that run

	mu     sync.Mutex
	closed bool
	seats  map[place]*seat
	// fresh is a process that no tenant has had yet; nil for none.
	fresh *process
}

// Busy reports whether turns run.
func (p *Program) Busy() bool { return p.turns.Load() > 0 }

// place is whose processes are in a seat: those of one tenant, of agents that may
// take so much memory.
type place struct {
	tenant string
	memory int64
}

// errClosed is what a closed program answers.
var errClosed = errors.New("the subprocess is closed")

// Open holds a program, checks its digest, starts it and asks what it is. A refusal
// is a *sandbox.LoadError.
func Open(ctx context.Context, o Options, src Source) (_ *Program, err error) {
	if len(o.Command) == 0 {
		return nil, fmt.Errorf("program %s: the host does not know its own executable, which must start it", src.Name)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	i, err := newImage(src.Program)
	if err != nil {
		return nil, fmt.Errorf("program %s: %w", src.Name, err)
	}
	p := &Program{
		opt: o, name: src.Name, image: i, seats: map[place]*seat{}, log: o.Logger.With("program", src.Name),
		spec: spec{Name: src.Name, Memory: src.Memory, Read: src.Read, Interpreter: interpreter(src.Program)},
	}
	if p.spec.Memory == 0 {
		p.spec.Memory = sandbox.DefaultLimits().Memory
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.Close())
		}
	}()
	if err := admitted(src, i.digest); err != nil {
		return nil, err
	}
	if p.fresh, err = p.begin(ctx, p.spec.Memory); err != nil {
		return nil, p.refused(src, sandbox.StepStart, err)
	}
	if p.descriptor, err = p.fresh.describe(ctx); err != nil {
		return nil, p.refused(src, sandbox.StepDescribe, err)
	}
	if err := p.fresh.warm(ctx); err != nil {
		return nil, p.refused(src, sandbox.StepStart, err)
	}
	return p, nil
}

// Pinned returns a program's digest, or a *sandbox.LoadError where another one is
// pinned, or where the bytes are no program.
func Pinned(src Source) (digest string, err error) {
	digest = Digest(src.Program)
	return digest, admitted(src, digest)
}

// admitted checks what can be known of a program before it is started.
func admitted(src Source, digest string) error {
	if src.SHA256 != "" && !strings.EqualFold(src.SHA256, digest) {
		return &sandbox.LoadError{Name: src.Name, Step: sandbox.StepDigest, Key: "sha256", Program: true, Err: fmt.Errorf(
			"its sha256 is %s, pinned is %s; if the change is wanted, write the new one into sha256", digest, src.SHA256)}
	}
	if why := unfit(src.Program); why != "" {
		return &sandbox.LoadError{Name: src.Name, Step: sandbox.StepAdmit, Program: true, Err: errors.New(why)}
	}
	return nil
}

func (p *Program) refused(src Source, step sandbox.Step, err error) error {
	var u *unserved
	if errors.As(err, &u) {
		u.owner = src.Owner
	}
	return &sandbox.LoadError{Name: p.name, Step: step, Program: true, Err: err}
}

// begin starts a process that may take so much memory.
func (p *Program) begin(ctx context.Context, memory int64) (*process, error) {
	s := p.spec
	s.Memory = memory
	ctx, cancel := context.WithTimeoutCause(ctx, cmp.Or(p.opt.start, 2*startPatience), errors.New("it says that it serves, and does not"))
	defer cancel()
	proc, err := begin(ctx, p.opt.Command, p.image, s, p.log)
	if err != nil {
		return nil, err
	}
	go proc.watch(p.opt.watch())
	return proc, nil
}

// Digest is the sha256 of a program's bytes, in hexadecimal.
func Digest(program []byte) string {
	sum := sha256.Sum256(program)
	return hex.EncodeToString(sum[:])
}

// Digest is the sha256 of the program, in hexadecimal.
func (p *Program) Digest() string { return p.image.digest }

// Repeats says that a turn need not do again what it did before.
func (p *Program) Repeats() bool { return false }

// Descriptor says what the program is. It must not be changed.
func (p *Program) Descriptor() *abi.Descriptor { return p.descriptor }

// MinMemory is 0: a process takes what it needs, up to its limit.
func (p *Program) MinMemory() int64 { return 0 }

// Turn runs one turn in the process of the turn's tenant, which is started where
// there is none. It returns soon after ctx ends, whatever the process does.
func (p *Program) Turn(ctx context.Context, t sandbox.Turn) sandbox.Result {
	return p.invoke(ctx, t, abi.ExportTurn)
}

// Action runs one call of an action, as Turn does a turn.
func (p *Program) Action(ctx context.Context, t sandbox.Turn) sandbox.Result {
	return p.invoke(ctx, t, abi.ExportAction)
}

func (p *Program) invoke(ctx context.Context, t sandbox.Turn, name string) sandbox.Result {
	p.turns.Add(1)
	defer p.turns.Add(-1)
	s, err := p.seat(place{t.Tenant, t.Limits.Full().Memory})
	if err != nil {
		return hostExit(err)
	}
	proc, err := s.take(ctx, p)
	switch {
	case ctx.Err() != nil:
		if proc != nil {
			proc.release(false)
		}
		return sandbox.Result{Exit: sandbox.ContextExit(ctx)}
	case err != nil:
		return sandbox.Result{Exit: &sandbox.Exit{Kind: sandbox.ExitProcess, Message: err.Error(), Cause: err}}
	}
	res, stuck := proc.invoke(ctx, t, name)
	proc.release(stuck)
	s.judge(res.Exit)
	return res
}

func hostExit(err error) sandbox.Result {
	return sandbox.Result{Exit: &sandbox.Exit{Kind: sandbox.ExitHost, Message: err.Error(), Cause: err}}
}

// seat is where a process is.
func (p *Program) seat(at place) (*seat, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errClosed
	}
	s := p.seats[at]
	if s == nil {
		s = newSeat(at.memory)
		p.seats[at] = s
	}
	return s, nil
}

// unused returns a process that no tenant has had, where there is one that may take
// so much memory.
func (p *Program) unused(memory int64) *process {
	p.mu.Lock()
	defer p.mu.Unlock()
	if memory != p.spec.Memory {
		return nil
	}
	proc := p.fresh
	p.fresh = nil
	return proc
}

// Close ends all processes: those without a turn are asked to end, and no turn runs
// any more once the host's have been cancelled. It waits for them.
func (p *Program) Close() error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil
	}
	p.closed = true
	seats, fresh := p.seats, p.fresh
	p.seats, p.fresh = map[place]*seat{}, nil
	p.mu.Unlock()
	var all sync.WaitGroup
	if fresh != nil {
		all.Go(fresh.stop)
	}
	for _, s := range seats {
		all.Go(s.close)
	}
	all.Wait()
	return p.image.close()
}
