// Command build owns the making of the repository's guests and of the compile
// cache that tests and the host open. It builds what is stale and compiles it
// once for binaries and once for test binaries, which the engine files under
// another version ("dev"). It must not know what the guests do.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"skep/host/internal/guests"
	"skep/host/internal/turn/wasm"
)

// asTest makes this program file its compiled code where test binaries look.
const asTest = "-X github.com/tetratelabs/wazero/internal/version.version=dev"

func main() {
	fill := flag.Bool("fill", false, "only compile the modules named as arguments into the cache")
	modules := flag.Bool("modules", false, "only build the guests of the directories named as arguments, as plugins, without a cache")
	flag.Parse()
	run := build
	switch {
	case *fill:
		run = func(root string) error { return compile(root, flag.Args()) }
	case *modules:
		run = func(root string) error { return buildModules(root, flag.Args()) }
	}
	if err := run(guests.Root()); err != nil {
		fmt.Fprintln(os.Stderr, "guests:", err)
		os.Exit(1)
	}
}

// buildModules makes the guests of some directories that are not built.
func buildModules(root string, dirs []string) error {
	unlock, err := lock(filepath.Join(root, "bin", "cache"))
	if err != nil {
		return err
	}
	defer unlock()
	stale, digests, err := findStale(root)
	if err != nil {
		return err
	}
	var broken error
	for i, g := range stale {
		if dir, _, _ := strings.Cut(g.Name, "/"); slices.Contains(dirs, dir) {
			broken = errors.Join(broken, buildGuest(root, g, digests[i]))
		}
	}
	return broken
}

// buildGuest makes a guest, if it is not built.
func buildGuest(root string, g guests.Guest, digest string) error {
	if g.Built(root, digest) {
		return nil
	}
	fmt.Println("guest", g.Name)
	if err := g.Build(root); err != nil {
		return err
	}
	return g.MarkBuilt(root, digest)
}

// build makes every stale guest and its compiled code.
func build(root string) error {
	unlock, err := lock(filepath.Join(root, "bin", "cache"))
	if err != nil {
		return err
	}
	defer unlock()
	stale, digests, err := findStale(root)
	if err != nil || len(stale) == 0 {
		return err
	}
	var files []string
	var marks []func() error
	var broken error // one guest that does not build keeps no other from it
	for i, g := range stale {
		if err := buildGuest(root, g, digests[i]); err != nil {
			broken = errors.Join(broken, err)
			continue
		}
		if !g.Program {
			files = append(files, g.File(root))
		}
		marks = append(marks, func() error { return g.MarkFresh(root, digests[i]) })
	}
	if err := errors.Join(compile(root, files), compileForTests(root, files)); err != nil {
		return errors.Join(broken, err)
	}
	for _, mark := range marks {
		broken = errors.Join(broken, mark())
	}
	return broken
}

func findStale(root string) (stale []guests.Guest, digests []string, err error) {
	all, err := guests.All(root)
	if err != nil {
		return nil, nil, err
	}
	for _, g := range all {
		digest, err := g.Digest()
		if err != nil {
			return nil, nil, err
		}
		if !g.Fresh(root, digest) {
			stale, digests = append(stale, g), append(digests, digest)
		}
	}
	return stale, digests, nil
}

// compile loads modules through the sandbox, which leaves them in the cache. A
// module that is refused is no fault here: some guests are there to be refused.
func compile(root string, files []string) error {
	ctx := context.Background()
	e, err := wasm.New(ctx, wasm.Options{CacheDir: filepath.Join(root, "bin", "cache")})
	if err != nil {
		return err
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		if _, err := e.Load(ctx, wasm.Source{Name: filepath.Base(f), Wasm: data}); err != nil {
			fmt.Fprintln(os.Stderr, "guests:", err)
		}
	}
	return e.Close(ctx)
}

// compileForTests does the same as a program that looks like a test binary to
// the engine.
func compileForTests(root string, files []string) error {
	args := append([]string{"run", "-ldflags", asTest, "./host/internal/guests/build", "-fill"}, files...)
	cmd := exec.Command("go", args...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("fill the cache for tests: %w\n%s", err, text)
	}
	return nil
}
