package wasm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// Exit codes of a child. A crash of its own is 2.
const (
	exitChild   = 1 // it could not begin
	exitInvalid = 3 // the module is refused
	exitCache   = 4 // the code could not be written
	exitMemory  = 5
)

// CompileChild is the child's side: it limits itself, reads a metered module
// from in, and compiles it into a directory. args are what [Child.Command] was
// completed with. It returns the process's exit code.
func CompileChild(ctx context.Context, in io.Reader, errs io.Writer, args []string) int {
	var memory, seconds int64
	if len(args) != 3 {
		fmt.Fprintln(errs, "usage: DIR MEMORY SECONDS")
		return exitChild
	}
	if _, err := fmt.Sscan(args[1]+" "+args[2], &memory, &seconds); err != nil {
		fmt.Fprintln(errs, err)
		return exitChild
	}
	if err := limitSelf(memory, seconds); err != nil {
		fmt.Fprintln(errs, "limit this process:", err)
		return exitChild
	}
	wasm, err := io.ReadAll(io.LimitReader(in, maxMetered))
	if err != nil {
		fmt.Fprintln(errs, "read the module:", err)
		return exitChild
	}
	err = compileInto(ctx, wasm, args[0])
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errInvalid):
		fmt.Fprintln(errs, err)
		return exitInvalid
	case errors.Is(err, syscall.ENOMEM):
		return exitMemory
	}
	fmt.Fprintln(errs, err)
	return exitCache
}

// compileInto compiles a metered module and leaves its code in a directory. An
// error of the module's is errInvalid.
func compileInto(ctx context.Context, wasm []byte, dir string) (err error) {
	cache, err := wazero.NewCompilationCacheWithDir(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cache.Close(ctx)) }()
	rt := wazero.NewRuntimeWithConfig(ctx, runtimeConfig().WithCompilationCache(cache))
	defer func() { err = errors.Join(err, rt.Close(ctx)) }()
	_, err = rt.CompileModule(ctx, wasm)
	return classifyCompileError(err)
}

// runtimeConfig is how every runtime of this package is set up; the cache's
// key depends on it.
func runtimeConfig() wazero.RuntimeConfig {
	return wazero.NewRuntimeConfig().WithCoreFeatures(api.CoreFeaturesV2).WithDebugInfoEnabled(false)
}
