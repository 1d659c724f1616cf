package host

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"skep/abi"
	"skep/host/internal/capability"
	"skep/host/internal/config"
	"skep/host/internal/guard"
	"skep/host/internal/sandbox"
	"skep/host/internal/subprocess"
)

// Module is what an agent runs on: a module in the sandbox, or a program of its own.
type Module interface {
	capability.Module
	Descriptor() *abi.Descriptor
	// MinMemory is what it starts with, in bytes; 0 where that is not known.
	MinMemory() int64
}

var (
	_ Module = (*sandbox.Module)(nil)
	_ Module = (*subprocess.Program)(nil)
)

// programs are the programs of exec: sources that are held, by digest. It is safe
// for concurrent use.
type programs struct {
	opt subprocess.Options

	opening sync.Mutex // held while a program is opened

	mu   sync.Mutex
	open map[string]*held
}

// held is a program and what the file says of it.
type held struct {
	*subprocess.Program
	readable []string
}

func newPrograms(opt subprocess.Options) *programs {
	return &programs{opt: opt, open: map[string]*held{}}
}

// maxProgram bounds a program's file.
const maxProgram = 256 << 20

// loadProgram starts the program of an agent or action, or finds it where it runs.
func (h *Host) loadProgram(ctx context.Context, kind string, a config.Agent) (Module, error) {
	name := string(a.Source.Kind) + ":" + a.Source.Ref
	program, err := guard.ReadFile(a.Source.Path, maxProgram)
	if err != nil {
		return nil, fmt.Errorf("%s %q: %w", kind, a.Name, err)
	}
	p, err := h.kept.programs.load(ctx, subprocess.Source{
		Name: name, Program: program, SHA256: a.SHA256, Memory: int64(a.Limits.Memory), Read: a.Readable, Owner: kind + "s." + a.Name,
	})
	if err != nil {
		return nil, err
	}
	h.log.Warn("runs outside the sandbox", kind, a.Name, "source", name, "digest", p.Digest())
	return p, nil
}

// load opens a program unless it is open.
func (p *programs) load(ctx context.Context, src subprocess.Source) (*subprocess.Program, error) {
	p.opening.Lock()
	defer p.opening.Unlock()
	digest := subprocess.Digest(src.Program)
	p.mu.Lock()
	has := p.open[digest]
	p.mu.Unlock()
	if has != nil && slices.Equal(has.readable, src.Read) && (src.SHA256 == "" || src.SHA256 == digest) {
		return has.Program, nil
	}
	fresh, err := subprocess.Open(ctx, p.opt, src)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if has != nil { // its turns may still run
		p.open[digest+" "+rand.Text()] = has
	}
	p.open[digest] = &held{fresh, src.Read}
	return fresh, nil
}

// find returns the program with a digest, nil if none is open.
func (p *programs) find(digest string) *subprocess.Program {
	p.mu.Lock()
	defer p.mu.Unlock()
	if h := p.open[digest]; h != nil {
		return h.Program
	}
	return nil
}

// closeOthers ends the programs that nobody wants any more, unless turns run in
// them.
func (p *programs) closeOthers(wanted func(digest string) bool) (err error) {
	p.mu.Lock()
	var old []*held
	for digest, h := range p.open {
		if !wanted(digest) && !h.Busy() {
			old = append(old, h)
			delete(p.open, digest)
		}
	}
	p.mu.Unlock()
	for _, h := range old {
		err = errors.Join(err, h.Close())
	}
	return err
}

// close ends all programs. No turn runs any more.
func (p *programs) close() (err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for digest, h := range p.open {
		err = errors.Join(err, h.Close())
		delete(p.open, digest)
	}
	return err
}

// CheckProgram looks at an agent's program without starting it, and returns its
// digest. One that is not what the file pins is a *sandbox.LoadError.
func CheckProgram(a config.Agent) (digest string, err error) {
	program, err := guard.ReadFile(a.Source.Path, maxProgram)
	if err != nil {
		return "", err
	}
	return subprocess.Pinned(subprocess.Source{Name: string(a.Source.Kind) + ":" + a.Source.Ref, Program: program, SHA256: a.SHA256})
}

// programFaults are agents and actions that share a program and differ in what its
// processes may read: one program has one way to run.
func programFaults(cfg *config.Config) (faults config.Faults) {
	type user struct {
		section, name string
		readable      []string
	}
	first := map[string]user{}
	look := func(s config.Source, u user) {
		if s.Kind != config.SourceExec {
			return
		}
		was, again := first[s.Path]
		if again && !slices.Equal(was.readable, u.readable) {
			faults = append(faults, cfg.Fault(fmt.Sprintf(
				"%s %q runs the same program; readable must be the same for both", strings.TrimSuffix(was.section, "s"), was.name), u.section, u.name, "readable"))
		}
		if !again {
			first[s.Path] = u
		}
	}
	for _, a := range cfg.Agents {
		look(a.Source, user{"agents", a.Name, a.Readable})
	}
	for _, a := range cfg.Actions {
		look(a.Source, user{"actions", a.Name, a.Readable})
	}
	return faults
}
