package sandbox

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

	"skep/host/internal/wasmbin"
)

// Options are what an engine may be told; the zero value works.
type Options struct {
	// CacheDir keeps compiled modules between runs. It is made with mode 0700
	// when missing, and refused when others can write to it: what lies there
	// is executed. Empty keeps nothing: with a Child there is a temporary one.
	CacheDir string
	// Child compiles modules that are not trusted; nil compiles them in this
	// process.
	Child *Child
	// Caps bound the structure of modules; zero means [wasmbin.DefaultCaps].
	Caps wasmbin.Caps
	// Secret seeds the randomness of images together with the module's digest.
	Secret []byte
	// IdlePerModule and IdleTotal bound the instances that wait for their next
	// turn: by default 64 of 64 MiB, and 1024 of 256 MiB. A count below zero
	// keeps none.
	IdlePerModule, IdleTotal IdleLimits
	// Memory is what all instances and images may take before idle instances
	// are given up, by default 1 GiB. What runs is counted with the whole size
	// of its memory. A turn is never refused for it.
	Memory int64
	// CopyImages copies images also where the system could share their pages.
	CopyImages bool
	Logger     *slog.Logger
}

// Engine compiles modules and keeps them, their images and idle instances. It is
// safe for concurrent use.
type Engine struct {
	caps    wasmbin.Caps
	secret  []byte
	log     *slog.Logger
	cache   *cache // nil without a directory and a child
	child   *Child // for modules of strangers
	runtime wazero.Runtime
	// instances is the configuration of every instance: nameless, and nothing
	// runs by itself.
	instances wazero.ModuleConfig
	pool      *pool
	copies    bool

	running sync.WaitGroup // turns and loads

	mu      sync.Mutex
	closed  bool
	modules map[string]*slot // by digest
}

// slot is the place of one module. Its lock is held while the module is made,
// so that nothing is compiled twice at once.
type slot struct {
	mu     sync.Mutex
	module *Module
}

// errClosed is what a closed engine answers.
var errClosed = errors.New("the sandbox is closed")

// New makes an engine.
func New(ctx context.Context, o Options) (*Engine, error) {
	e := &Engine{caps: o.Caps, secret: o.Secret, log: cmp.Or(o.Logger, slog.New(slog.DiscardHandler)),
		// A source of its own would cost every instance 6 KiB, and nobody reads it:
		// random_get is ours.
		instances: wazero.NewModuleConfig().WithName("").WithStartFunctions().WithRandSource(strings.NewReader("")),
		pool:      newPool(o), copies: o.CopyImages, modules: map[string]*slot{}}
	if e.caps == (wasmbin.Caps{}) {
		e.caps = wasmbin.DefaultCaps()
	}
	if err := e.openCache(o); err != nil {
		return nil, fmt.Errorf("sandbox: compile cache: %w", err)
	}
	config := runtimeConfig()
	if e.cache != nil {
		config = config.WithCompilationCache(e.cache.CompilationCache)
	}
	e.runtime = wazero.NewRuntimeWithConfig(ctx, config)
	if err := offer(ctx, e.runtime); err != nil {
		return nil, errors.Join(fmt.Errorf("sandbox: %w", err), e.Close(ctx))
	}
	return e, nil
}

// openCache opens the cache that the options ask for. A child has no other way
// to hand code over.
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
	e.pool.close()
	err := e.runtime.Close(ctx)
	if e.cache != nil {
		err = errors.Join(err, e.cache.Close(ctx))
	}
	return err
}

// enter counts a turn or load in, unless the engine is closed.
func (e *Engine) enter() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return errClosed
	}
	e.running.Add(1)
	return nil
}

// slot returns the place of a module.
func (e *Engine) slot(digest string) *slot {
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
