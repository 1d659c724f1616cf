package definition

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"skep/abi"
	"skep/host/internal/definition/config"
	"skep/host/internal/pathcheck"
	"skep/host/internal/turn/capability"
	"skep/host/internal/turn/process"
	"skep/host/internal/turn/wasm"
)

// Module is what an agent or action runs on: a module in the sandbox, or a program.
type Module interface {
	capability.Module
	Descriptor() *abi.Descriptor
	// MinMemory is the memory at the start, in bytes; 0 if it is unknown.
	MinMemory() int64
}

var (
	_ Module = (*wasm.Module)(nil)
	_ Module = (*process.Program)(nil)
)

// programs holds the open programs of exec: sources, by digest. It is safe for concurrent
// use.
type programs struct {
	opt           process.Options
	cgroupSetting string // [limits] process_cgroup

	opening sync.Mutex      // held while a program is opened
	cgroup  *process.Cgroup // nil before the first program

	mu   sync.Mutex
	open map[string]*openProgram
}

// openProgram is a program with its readable paths in the file.
type openProgram struct {
	*process.Program
	readable []string
}

func newPrograms(opt process.Options, cgroupSetting string) *programs {
	return &programs{opt: opt, cgroupSetting: cgroupSetting, open: map[string]*openProgram{}}
}

// maxProgram bounds a program's file, in bytes.
const maxProgram = 256 << 20

// loadProgram starts the program of an agent or action, unless it runs.
func (l *Loader) loadProgram(ctx context.Context, kind string, a config.Agent) (Module, error) {
	name := string(a.Source.Kind) + ":" + a.Source.Ref
	program, err := pathcheck.ReadFile(a.Source.Path, maxProgram)
	if err != nil {
		return nil, fmt.Errorf("%s %q: %w", kind, a.Name, err)
	}
	p, err := l.modules.programs.load(ctx, process.Source{
		Name: name, Program: program, SHA256: a.SHA256, Memory: int64(a.Limits.Memory), Read: a.Readable, Table: kind + "s." + a.Name,
	})
	if err != nil {
		return nil, err
	}
	l.log.Warn("runs outside the sandbox", kind, a.Name, "source", name, "digest", p.Digest())
	return p, nil
}

// load opens a program, unless it is open with the same readable paths.
func (p *programs) load(ctx context.Context, src process.Source) (*process.Program, error) {
	p.opening.Lock()
	defer p.opening.Unlock()
	digest := process.Digest(src.Program)
	p.mu.Lock()
	has := p.open[digest]
	p.mu.Unlock()
	if has != nil && slices.Equal(has.readable, src.Read) && (src.SHA256 == "" || src.SHA256 == digest) {
		return has.Program, nil
	}
	if err := p.openCgroup(); err != nil {
		return nil, err
	}
	fresh, err := process.Open(ctx, p.opt, src)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if has != nil { // its turns may still run
		p.open[digest+" "+rand.Text()] = has
	}
	p.open[digest] = &openProgram{fresh, src.Read}
	return fresh, nil
}

// openCgroup prepares the control group of all processes, once. A group that the file names
// must be usable.
func (p *programs) openCgroup() (err error) {
	if p.cgroup != nil || len(p.opt.Command) == 0 {
		return nil
	}
	cgroup, err := process.OpenCgroup(p.cgroupSetting)
	switch {
	case err == nil:
		p.opt.Logger.Info("processes are limited by control groups", "cgroup", cgroup.Dir())
	case p.cgroupSetting == "" || p.cgroupSetting == "off":
		p.opt.Logger.Warn("processes have no control group: their memory is measured ten times a second", "why", err)
	default:
		return fmt.Errorf("[limits] process_cgroup: %w", err)
	}
	p.cgroup, p.opt.Cgroup = cgroup, cgroup.Dir()
	return nil
}

// find returns the program with a digest, nil if none is open.
func (p *programs) find(digest string) *process.Program {
	p.mu.Lock()
	defer p.mu.Unlock()
	if h := p.open[digest]; h != nil {
		return h.Program
	}
	return nil
}

// closeUnused ends the programs that are not wanted and in which no turn runs.
func (p *programs) closeUnused(wanted func(digest string) bool) (err error) {
	p.mu.Lock()
	var old []*openProgram
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
	if p.cgroup != nil {
		err = errors.Join(err, p.cgroup.Close())
	}
	return err
}

// CheckProgram reads the program of an agent or action without starting it, and returns
// its digest. A program that is not the pinned one, or that could not run, is a
// *turn.LoadError. kind is as in [Loader.loadOne].
func CheckProgram(kind string, a config.Agent) (digest string, err error) {
	program, err := pathcheck.ReadFile(a.Source.Path, maxProgram)
	if err != nil {
		return "", err
	}
	return process.CheckedDigest(process.Source{
		Name: string(a.Source.Kind) + ":" + a.Source.Ref, Program: program, SHA256: a.SHA256, Read: a.Readable, Table: kind + "s." + a.Name,
	})
}

// ProgramDigest is the digest of the program that is in a source's file now.
func ProgramDigest(s config.Source) (string, error) {
	program, err := pathcheck.ReadFile(s.Path, maxProgram)
	if err != nil {
		return "", err
	}
	return process.Digest(program), nil
}

// programFaults lists agents and actions that share a program but differ in its readable
// paths: a program runs in one way.
func programFaults(cfg *config.Config) (faults config.Faults) {
	type user struct {
		section, name string
		readable      []string
	}
	first := map[string]user{}
	check := func(s config.Source, u user) {
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
		check(a.Source, user{"agents", a.Name, a.Readable})
	}
	for _, a := range cfg.Actions {
		check(a.Source, user{"actions", a.Name, a.Readable})
	}
	return faults
}
