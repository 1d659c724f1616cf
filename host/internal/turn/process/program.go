package process

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
	"skep/host/internal/turn"
)

// Options are the settings that all programs of a host share.
type Options struct {
	// Command begins the command line of a guard: the host's executable and [Command].
	Command []string
	Logger  *slog.Logger
	// IdleTimeout is how long a process may be without a turn before it is ended; 0 never
	// ends it. The next turn starts it again.
	IdleTimeout time.Duration
	// Cgroup is the directory of a [Cgroup]; empty for none.
	Cgroup string
	// health are interval and timeout of the health check; 0 is 10 s and 5 s.
	health [2]time.Duration
	// startTimeout bounds the time until a process answers; 0 is 30 s.
	startTimeout time.Duration
}

func (o Options) monitorConfig() monitorConfig {
	return monitorConfig{cmp.Or(o.health[0], 10*time.Second), cmp.Or(o.health[1], 5*time.Second), o.IdleTimeout}
}

// Source is a program's bytes with the operator's settings.
type Source struct {
	// Name is the name in messages, for instance exec:./agent.
	Name    string
	Program []byte
	// SHA256 pins the bytes, in hexadecimal; empty accepts any.
	SHA256 string
	// Memory bounds one process and its descendants, in bytes; 0 means the default of
	// [turn.DefaultLimits].
	Memory int64
	// Read are files and directories that the process may read besides the system's
	// libraries.
	Read []string
	// Table is the table of swarm.toml for messages, as in agents.clerk; empty names none.
	Table string
}

// Program is one agent's program and its processes, one per tenant. It is safe for
// concurrent use.
type Program struct {
	opt        Options
	name       string
	spec       spec
	sealed     *sealedProgram
	descriptor *abi.Descriptor
	log        *slog.Logger

	turns atomic.Int64 // running ones

	mu      sync.Mutex
	closed  bool
	tenants map[tenantKey]*tenantProcess
	// fresh is a process that no tenant has used yet; nil for none.
	fresh *process
}

// Busy reports whether turns run.
func (p *Program) Busy() bool { return p.turns.Load() > 0 }

// tenantKey identifies a tenant's process: agents with other memory limits have other
// processes.
type tenantKey struct {
	tenant string
	memory int64
}

// errClosed is the error of a closed program.
var errClosed = errors.New("the subprocess is closed")

// Open loads a program, checks its digest, starts it and asks for its descriptor. A
// refusal is a *turn.LoadError.
func Open(ctx context.Context, o Options, src Source) (_ *Program, err error) {
	if len(o.Command) == 0 {
		return nil, fmt.Errorf("program %s: the host does not know its own executable, which must start it", src.Name)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	i, err := sealProgram(src.Program)
	if err != nil {
		return nil, fmt.Errorf("program %s: %w", src.Name, err)
	}
	p := &Program{
		opt: o, name: src.Name, sealed: i, tenants: map[tenantKey]*tenantProcess{}, log: o.Logger.With("program", src.Name),
		spec: spec{Name: src.Name, Memory: src.Memory, Read: src.Read, Interpreter: scriptInterpreter(src.Program)},
	}
	if p.spec.Memory == 0 {
		p.spec.Memory = turn.DefaultLimits().Memory
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.Close())
		}
	}()
	if err := checkSource(src, i.digest); err != nil {
		return nil, err
	}
	if p.fresh, err = p.startProcess(ctx, p.spec.Memory); err != nil {
		return nil, p.loadError(src, turn.StepStart, err)
	}
	if p.descriptor, err = p.fresh.describe(ctx); err != nil {
		return nil, p.loadError(src, turn.StepDescribe, err)
	}
	if err := p.fresh.warm(ctx); err != nil {
		return nil, p.loadError(src, turn.StepStart, err)
	}
	return p, nil
}

// CheckedDigest returns a program's digest. It returns a *turn.LoadError if another digest
// is pinned, if the bytes are no program, or if the interpreter cannot be read.
func CheckedDigest(src Source) (digest string, err error) {
	digest = Digest(src.Program)
	if err := checkSource(src, digest); err != nil {
		return digest, err
	}
	if u := checkInterpreter(src); u != nil {
		u.table = src.Table
		return digest, &turn.LoadError{Name: src.Name, Step: turn.StepStart, Program: true, Err: u}
	}
	return digest, nil
}

// checkSource checks a program before it is started.
func checkSource(src Source, digest string) error {
	if src.SHA256 != "" && !strings.EqualFold(src.SHA256, digest) {
		return &turn.LoadError{Name: src.Name, Step: turn.StepDigest, Key: "sha256", Program: true, Err: fmt.Errorf(
			"its sha256 is %s, pinned is %s; if the change is wanted, write the new one into %ssha256", digest, src.SHA256, src.inTable())}
	}
	if why := notAProgram(src.Program); why != "" {
		return &turn.LoadError{Name: src.Name, Step: turn.StepAdmit, Program: true, Err: errors.New(why)}
	}
	return nil
}

// inTable begins the name of a key in the table of a program, if it is one agent's.
func (src Source) inTable() string {
	if src.Table == "" {
		return ""
	}
	return "[" + src.Table + "] "
}

func (p *Program) loadError(src Source, step turn.LoadStep, err error) error {
	var u *startError
	if errors.As(err, &u) {
		u.table = src.Table
	}
	return &turn.LoadError{Name: p.name, Step: step, Program: true, Err: err}
}

// startProcess starts a process with a memory limit in bytes.
func (p *Program) startProcess(ctx context.Context, memory int64) (*process, error) {
	s := p.spec
	s.Memory, s.Cgroup = memory, p.opt.Cgroup
	ctx, cancel := context.WithTimeoutCause(ctx, cmp.Or(p.opt.startTimeout, 2*startTimeout), errors.New("it says that it serves, and does not"))
	defer cancel()
	proc, err := startProcess(ctx, p.opt.Command, p.sealed, s, p.log)
	if err != nil {
		return nil, err
	}
	go proc.monitor(p.opt.monitorConfig())
	return proc, nil
}

// Digest is the sha256 of a program's bytes, in hexadecimal.
func Digest(program []byte) string {
	sum := sha256.Sum256(program)
	return hex.EncodeToString(sum[:])
}

// Digest is the sha256 of the program, in hexadecimal.
func (p *Program) Digest() string { return p.sealed.digest }

// Repeats reports that a re-run need not repeat the turn exactly.
func (p *Program) Repeats() bool { return false }

// Descriptor is the program's descriptor. It must not be changed.
func (p *Program) Descriptor() *abi.Descriptor { return p.descriptor }

// MinMemory is 0: a process takes memory as needed, up to its limit.
func (p *Program) MinMemory() int64 { return 0 }

// Turn runs one turn in the tenant's process, and starts the process if there is none. It
// returns soon after ctx ends, whatever the process does.
func (p *Program) Turn(ctx context.Context, t turn.Turn) turn.Result {
	return p.invoke(ctx, t, abi.ExportTurn)
}

// Action runs one call of an action, like Turn.
func (p *Program) Action(ctx context.Context, t turn.Turn) turn.Result {
	return p.invoke(ctx, t, abi.ExportAction)
}

func (p *Program) invoke(ctx context.Context, t turn.Turn, name string) turn.Result {
	p.turns.Add(1)
	defer p.turns.Add(-1)
	s, err := p.tenantProcess(tenantKey{t.Tenant, t.Limits.WithDefaults().Memory})
	if err != nil {
		return hostExit(err)
	}
	proc, err := s.acquire(ctx, p)
	switch {
	case ctx.Err() != nil:
		if proc != nil {
			proc.endTurn(false)
		}
		return turn.Result{Exit: turn.ContextExit(ctx)}
	case err != nil:
		return turn.Result{Exit: &turn.Exit{Kind: turn.ExitProcess, Message: err.Error(), Cause: err}}
	}
	res, stuck := proc.invoke(ctx, t, name)
	proc.endTurn(stuck)
	s.recordExit(res.Exit)
	return res
}

func hostExit(err error) turn.Result {
	return turn.Result{Exit: &turn.Exit{Kind: turn.ExitHost, Message: err.Error(), Cause: err}}
}

// tenantProcess returns the tenant's entry, and creates it if there is none.
func (p *Program) tenantProcess(at tenantKey) (*tenantProcess, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errClosed
	}
	s := p.tenants[at]
	if s == nil {
		s = newTenantProcess(at.memory)
		p.tenants[at] = s
	}
	return s, nil
}

// takeFresh returns the process that no tenant has used, if there is one with this memory
// limit.
func (p *Program) takeFresh(memory int64) *process {
	p.mu.Lock()
	defer p.mu.Unlock()
	if memory != p.spec.Memory {
		return nil
	}
	proc := p.fresh
	p.fresh = nil
	return proc
}

// Close asks all processes to end and waits for them. The host has cancelled all turns
// before.
func (p *Program) Close() error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil
	}
	p.closed = true
	seats, fresh := p.tenants, p.fresh
	p.tenants, p.fresh = map[tenantKey]*tenantProcess{}, nil
	p.mu.Unlock()
	var all sync.WaitGroup
	if fresh != nil {
		all.Go(fresh.stop)
	}
	for _, s := range seats {
		all.Go(s.close)
	}
	all.Wait()
	return p.sealed.close()
}
