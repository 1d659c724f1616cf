package wasm

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"github.com/tetratelabs/wazero"

	"skep/host/internal/turn/wasm/binary"
)

// Options configure an engine; the zero value works.
type Options struct {
	// CacheDir keeps compiled modules between runs. It is made with mode 0700
	// when missing, and refused when others can write to it: its files
	// are executed. Empty keeps nothing: with a Child there is a temporary one.
	CacheDir string
	// Child compiles modules that are not trusted; nil compiles them in this
	// process.
	Child *ChildCompiler
	// Caps bound the structure of modules; zero means [binary.DefaultCaps].
	Caps binary.Caps
	// Secret seeds the randomness of images together with the module's digest.
	Secret []byte
	// IdlePerModule and IdleTotal bound the instances that wait for their next
	// turn: by default 64 of 64 MiB, and 1024 of 256 MiB. A count below zero
	// keeps none.
	IdlePerModule, IdleTotal IdleLimits
	// Memory is the bytes that all instances and images may take before idle
	// instances are closed, by default 1 GiB. A running instance counts with the
	// whole size of its memory. No turn is refused for it.
	Memory int64
	// CopyImages copies images also where the system could share their pages.
	CopyImages bool
	Logger     *slog.Logger
}

// Engine compiles modules and keeps them, their images and idle instances. It is
// safe for concurrent use.
type Engine struct {
	caps    binary.Caps
	secret  []byte
	log     *slog.Logger
	cache   *cache         // nil without a directory and a child
	child   *ChildCompiler // for untrusted modules
	runtime wazero.Runtime
	// instances is the configuration of every instance: without a name and
	// without start functions.
	instances wazero.ModuleConfig
	pools     *poolSet
	copies    bool

	running sync.WaitGroup // turns and loads

	mu      sync.Mutex
	closed  bool
	modules map[string]*slot // by digest
}

// slot holds one module. Its lock is held while the module is made,
// so that nothing is compiled twice at once.
type slot struct {
	mu     sync.Mutex
	module *Module
}

// errClosed is the error of a closed engine.
var errClosed = errors.New("the sandbox is closed")

// New makes an engine.
func New(ctx context.Context, o Options) (*Engine, error) {
	e := &Engine{caps: o.Caps, secret: o.Secret, log: cmp.Or(o.Logger, slog.New(slog.DiscardHandler)),
		// A source of its own would cost every instance 6 KiB, and no code reads it:
		// random_get is a function of this package.
		instances: wazero.NewModuleConfig().WithName("").WithStartFunctions().WithRandSource(strings.NewReader("")),
		pools:     newPoolSet(o), copies: o.CopyImages, modules: map[string]*slot{}}
	if e.caps == (binary.Caps{}) {
		e.caps = binary.DefaultCaps()
	}
	if err := e.openCache(o); err != nil {
		return nil, fmt.Errorf("sandbox: compile cache: %w", err)
	}
	config := runtimeConfig()
	if e.cache != nil {
		config = config.WithCompilationCache(e.cache.CompilationCache)
	}
	e.runtime = wazero.NewRuntimeWithConfig(ctx, config)
	if err := registerHostModules(ctx, e.runtime); err != nil {
		return nil, errors.Join(fmt.Errorf("sandbox: %w", err), e.Close(ctx))
	}
	return e, nil
}

// openCache opens the cache that the options ask for. A child can hand code
// over in no other way.
func (e *Engine) openCache(o Options) (err error) {
	e.child = o.Child
	switch {
	case o.CacheDir != "":
		e.cache, err = openCache(o.CacheDir, e.log)
	case o.Child != nil:
		e.cache, err = temporaryCache(e.log)
	}
	return err
}

// Close waits for running turns and frees all instances, images and modules.
// Cancel the turns' contexts first.
func (e *Engine) Close(ctx context.Context) error {
	e.mu.Lock()
	closed := e.closed
	e.closed = true
	e.mu.Unlock()
	if closed {
		return nil
	}
	e.running.Wait()
	e.pools.close()
	err := e.runtime.Close(ctx)
	if e.cache != nil {
		err = errors.Join(err, e.cache.Close(ctx))
	}
	return err
}

// beginUse counts a turn or load, unless the engine is closed.
func (e *Engine) beginUse() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return errClosed
	}
	e.running.Add(1)
	return nil
}

// slotOf returns the slot of a module.
func (e *Engine) slotOf(digest string) *slot {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.modules[digest]
	if s == nil {
		s = &slot{}
		e.modules[digest] = s
	}
	return s
}

// imageSeed derives the seed of a module's image: one digest, one image.
func (e *Engine) imageSeed(digest string) (seed [32]byte) {
	mac := hmac.New(sha256.New, e.secret)
	mac.Write([]byte("image " + digest))
	mac.Sum(seed[:0])
	return seed
}
