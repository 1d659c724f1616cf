package sandbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/tetratelabs/wazero"

	"skep/abi"
	"skep/host/internal/guard"
	"skep/host/internal/wasmbin"
)

// Source is a module's bytes and what the operator says about them.
type Source struct {
	// Name is how messages call the module, for instance file:calc.wasm.
	Name string
	Wasm []byte
	// SHA256 pins the bytes, in hexadecimal; empty accepts any.
	SHA256 string
	// Trusted modules are compiled in this process, as those that come with
	// the host.
	Trusted bool
}

// Step is where loading a module stopped.
type Step string

// The steps, in order.
const (
	StepRead     Step = "read"
	StepDigest   Step = "digest"
	StepAdmit    Step = "admit"
	StepABI      Step = "abi"
	StepMeter    Step = "meter"
	StepCompile  Step = "compile"
	StepDescribe Step = "describe"
	StepStart    Step = "start" // of a subprocess, before it is described
)

// LoadError says why a module is refused, and what to do about it.
type LoadError struct {
	Name string
	Step Step
	// Key is the key of swarm.toml that decides, if one does: a cap under
	// limits.module, or sha256 of the agent.
	Key string
	// Program says that it is no module but a program.
	Program bool
	Err     error
}

// Error renders the refusal.
func (e *LoadError) Error() string {
	what := "module"
	if e.Program {
		what = "program"
	}
	return fmt.Sprintf("%s %s refused (%s): %v", what, e.Name, e.Step, e.Err)
}

// Unwrap returns the reason.
func (e *LoadError) Unwrap() error { return e.Err }

// Load checks, compiles and describes a module, or returns the one it has of
// the same bytes. A refusal is a *LoadError; what keeps any module from being
// compiled is a *CompileError, or a *guard.Error of the compile cache.
func (e *Engine) Load(ctx context.Context, src Source) (*Module, error) {
	if err := e.enter(); err != nil {
		return nil, err
	}
	defer e.running.Done()
	sum := sha256.Sum256(src.Wasm)
	digest := hex.EncodeToString(sum[:])
	if src.SHA256 != "" && !strings.EqualFold(src.SHA256, digest) {
		return nil, &LoadError{Name: src.Name, Step: StepDigest, Key: "sha256", Err: fmt.Errorf(
			"its sha256 is %s, pinned is %s; if the change is wanted, write the new one into sha256", digest, src.SHA256)}
	}
	s := e.slot(digest)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.module != nil {
		return s.module, nil
	}
	m, err := e.make(ctx, src, digest)
	if err != nil {
		return nil, named(err, src.Name)
	}
	s.module = m
	return m, nil
}

// named puts a module's name into the error it was met with.
func named(err error, name string) error {
	var refused *LoadError
	var fault *CompileError
	switch {
	case errors.As(err, &refused):
		refused.Name = name
	case errors.As(err, &fault):
		fault.Name = name
	}
	return err
}

// make turns bytes into a module, step by step.
func (e *Engine) make(ctx context.Context, src Source, digest string) (*Module, error) {
	admitted, err := wasmbin.Admit(src.Wasm, e.caps)
	if err != nil {
		return nil, refusal(StepAdmit, err)
	}
	if err := checkContract(admitted); err != nil {
		return nil, refusal(StepABI, err)
	}
	bare, err := admitted.MeterBare(wasmbin.Options{})
	if err != nil {
		return nil, refusal(StepMeter, err)
	}
	compiled, err := e.compile(ctx, bare.Wasm, src.Trusted)
	var fault *CompileError
	var weak *guard.Error
	switch {
	case errors.As(err, &fault), errors.As(err, &weak):
		return nil, err
	case err != nil:
		return nil, refusal(StepCompile, err)
	}
	m := newModule(e, digest, admitted, bare)
	m.size, m.compiled = len(src.Wasm), compiled
	m.descriptor, err = m.describe(ctx, admitted)
	if err != nil {
		return nil, refusal(StepDescribe, errors.Join(err, compiled.Close(ctx)))
	}
	return m, nil
}

// compile compiles a metered module. With a cache the code goes there first, that
// of a stranger's module through the child.
func (e *Engine) compile(ctx context.Context, metered []byte, trusted bool) (wazero.CompiledModule, error) {
	if e.cache == nil {
		compiled, err := e.runtime.CompileModule(ctx, metered)
		return compiled, judged(err)
	}
	err := e.cache.fill(ctx, metered, func(ctx context.Context, dir string) error {
		if e.child != nil && !trusted {
			return e.child.withDefaults().run(ctx, dir, metered)
		}
		err := compileInto(ctx, metered, dir)
		if err != nil && !errors.Is(err, errInvalid) {
			return &CompileError{Dir: dir, Err: err}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	compiled, err := e.runtime.CompileModule(ctx, metered)
	if err != nil { // it was compiled once
		return nil, &CompileError{Dir: e.cache.dir, Err: err}
	}
	return compiled, nil
}

func refusal(step Step, err error) *LoadError {
	le := &LoadError{Step: step, Err: err}
	var tooLarge *wasmbin.CapError
	var exit *Exit
	switch {
	case errors.As(err, &tooLarge):
		le.Key = "limits.module." + tooLarge.Cap
	case errors.As(err, &exit):
		le.Key = exit.Limit
	}
	return le
}

// describe reads the module's descriptor from its custom section, or runs
// skep_describe without any grant.
func (m *Module) describe(ctx context.Context, admitted *wasmbin.Module) (*abi.Descriptor, error) {
	sections := admitted.Custom(abi.DescriptorSection)
	if len(sections) > 1 {
		return nil, fmt.Errorf("%d sections %s; keep one", len(sections), abi.DescriptorSection)
	}
	if len(sections) == 1 {
		return parseDescriptor(sections[0])
	}
	ctx, cancel := context.WithTimeoutCause(ctx, describeWall,
		fmt.Errorf("%s took longer than %v", abi.ExportDescribe, describeWall))
	defer cancel()
	raw, exit := m.runDescribe(ctx)
	if exit != nil && isProgram(admitted) {
		return nil, fmt.Errorf("%s; %s: %w", asReactor, abi.ExportDescribe, exit)
	}
	if exit != nil {
		return nil, fmt.Errorf("%s: %w", abi.ExportDescribe, exit)
	}
	return parseDescriptor(raw)
}

// parseDescriptor reads the descriptor of a module whose marker this host knows.
func parseDescriptor(raw []byte) (*abi.Descriptor, error) {
	d, err := abi.ParseDescriptor(raw)
	if errors.Is(err, abi.ErrVersion) {
		return nil, fmt.Errorf("the marker speaks ABI version %d, but %w", abi.Version, err)
	}
	return d, err
}

// runDescribe runs skep_describe in an instance of its own.
func (m *Module) runDescribe(ctx context.Context) ([]byte, *Exit) {
	r := newRun(ctx, m, Turn{})
	r.limits.Output = abi.MaxDescriptor
	exit := r.fence(func() *Exit {
		if exit := r.admitted(); exit != nil {
			return exit
		}
		if exit := r.instantiate(); exit != nil {
			return exit
		}
		status, exit := r.callStatus(abi.ExportDescribe)
		if exit == nil && status != abi.StatusOK {
			exit = r.failed(abi.ExportDescribe, status)
		}
		if exit == nil && r.spoiled {
			exit = &Exit{Kind: ExitOutput, Message: fmt.Sprintf("a descriptor is at most %d bytes", abi.MaxDescriptor)}
		}
		return exit
	})
	if exit != nil && exit.Limit != "" { // no agent's limits hold here
		exit.Limit = ""
		exit.Message += "; a descriptor in a custom section " + abi.DescriptorSection + " needs no run"
	}
	return r.output, exit
}
