package wasm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/tetratelabs/wazero"

	"skep/abi"
	"skep/host/internal/pathcheck"
	"skep/host/internal/turn"
	"skep/host/internal/turn/wasm/binary"
)

// Source is a module's bytes and the operator's settings for them.
type Source struct {
	// Name is the module's name in messages, for instance file:calc.wasm.
	Name string
	Wasm []byte
	// SHA256 pins the bytes, in hexadecimal; empty accepts any.
	SHA256 string
	// Trusted modules are compiled in this process: the host's own modules are
	// trusted.
	Trusted bool
}

// Load checks, compiles and describes a module, or returns the loaded module of
// the same bytes. A refusal is a *turn.LoadError; a fault that is not the module's is
// a *CompileError, or a *pathcheck.Error of the compile cache.
func (e *Engine) Load(ctx context.Context, src Source) (*Module, error) {
	if err := e.beginUse(); err != nil {
		return nil, err
	}
	defer e.running.Done()
	sum := sha256.Sum256(src.Wasm)
	digest := hex.EncodeToString(sum[:])
	if src.SHA256 != "" && !strings.EqualFold(src.SHA256, digest) {
		return nil, &turn.LoadError{Name: src.Name, Step: turn.StepDigest, Key: "sha256", Err: fmt.Errorf(
			"its sha256 is %s, pinned is %s; if the change is wanted, write the new one into sha256", digest, src.SHA256)}
	}
	s := e.slotOf(digest)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.module != nil {
		return s.module, nil
	}
	m, err := e.buildModule(ctx, src, digest)
	if err != nil {
		return nil, withModuleName(err, src.Name)
	}
	s.module = m
	return m, nil
}

// withModuleName puts a module's name into an error of loading it.
func withModuleName(err error, name string) error {
	var refused *turn.LoadError
	var fault *CompileError
	switch {
	case errors.As(err, &refused):
		refused.Name = name
	case errors.As(err, &fault):
		fault.Name = name
	}
	return err
}

// buildModule makes a module from its bytes, step by step.
func (e *Engine) buildModule(ctx context.Context, src Source, digest string) (*Module, error) {
	prepared := e.cache.findPrepared(digest, e.caps)
	isCached := prepared != nil
	if !isCached {
		var err error
		if prepared, err = prepareModule(src.Wasm, e.caps); err != nil {
			return nil, err
		}
	}
	compiled, err := e.compile(ctx, prepared.Metered, src.Trusted)
	var fault *CompileError
	var weak *pathcheck.Error
	switch {
	case errors.As(err, &fault), errors.As(err, &weak):
		return nil, err
	case err != nil:
		return nil, newLoadError(turn.StepCompile, err)
	}
	m := newModule(e, digest, prepared)
	m.size, m.compiled = len(src.Wasm), compiled
	m.descriptor, err = m.describe(ctx, prepared)
	if err != nil {
		return nil, newLoadError(turn.StepDescribe, errors.Join(err, compiled.Close(ctx)))
	}
	if !isCached {
		e.cache.savePrepared(digest, e.caps, prepared)
	}
	return m, nil
}

// compile compiles a metered module. With a cache the code goes there first; the
// child compiles untrusted modules.
func (e *Engine) compile(ctx context.Context, metered []byte, trusted bool) (wazero.CompiledModule, error) {
	if e.cache == nil {
		compiled, err := e.runtime.CompileModule(ctx, metered)
		return compiled, classifyCompileError(err)
	}
	err := e.cache.ensure(ctx, metered, func(ctx context.Context, dir string) error {
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

func newLoadError(step turn.LoadStep, err error) *turn.LoadError {
	le := &turn.LoadError{Step: step, Err: err}
	var tooLarge *binary.CapError
	var exit *turn.Exit
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
func (m *Module) describe(ctx context.Context, p *preparedModule) (*abi.Descriptor, error) {
	switch len(p.Descriptors) {
	case 0:
	case 1:
		return parseDescriptor(p.Descriptors[0])
	default:
		return nil, fmt.Errorf("%d sections %s; keep one", len(p.Descriptors), abi.DescriptorSection)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, describeWall,
		fmt.Errorf("%s took longer than %v", abi.ExportDescribe, describeWall))
	defer cancel()
	raw, exit := m.runDescribe(ctx)
	if exit != nil && p.IsProgram {
		return nil, fmt.Errorf("%s; %s: %w", asReactor, abi.ExportDescribe, exit)
	}
	if exit != nil {
		return nil, fmt.Errorf("%s: %w", abi.ExportDescribe, exit)
	}
	return parseDescriptor(raw)
}

// parseDescriptor reads the descriptor of a module whose marker has passed checkMarker.
func parseDescriptor(raw []byte) (*abi.Descriptor, error) {
	d, err := abi.ParseDescriptor(raw)
	if errors.Is(err, abi.ErrVersion) {
		return nil, fmt.Errorf("the marker speaks ABI version %d, but %w", abi.Version, err)
	}
	return d, err
}

// runDescribe runs skep_describe in an instance of its own.
func (m *Module) runDescribe(ctx context.Context) ([]byte, *turn.Exit) {
	r := newRun(ctx, m, turn.Turn{})
	r.limits.Output = abi.MaxDescriptor
	exit := r.guard(func() *turn.Exit {
		if exit := r.acquireAndAdmit(); exit != nil {
			return exit
		}
		if exit := r.instantiate(); exit != nil {
			return exit
		}
		status, exit := r.callStatus(abi.ExportDescribe)
		if exit == nil && status != abi.StatusOK {
			exit = turn.FailedExit(abi.ExportDescribe, status, r.output)
		}
		if exit == nil && r.outputRefused {
			exit = &turn.Exit{Kind: turn.ExitOutput, Message: fmt.Sprintf("a descriptor is at most %d bytes", abi.MaxDescriptor)}
		}
		return exit
	})
	if exit != nil && exit.Limit != "" { // no agent's limits hold here
		exit.Limit = ""
		exit.Message += "; a descriptor in a custom section " + abi.DescriptorSection + " needs no run"
	}
	return r.output, exit
}
