// Package guests owns the agents of this repository as files, Wasm modules and the
// programs of subprocesses: where their sources lie, whether what was built from them is still good, and how tests get
// at it. It must not know how a module is run, and no host binary imports it.
//
// Modules and their compiled code lie under bin; the command in build makes
// both. Tests call [Bytes] and [CacheDir], which run that command when something
// is stale, so that go test needs no make before it: a Go guest takes a second to
// compile, and ten under the race detector.
package guests

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// Guest is one module of this repository.
type Guest struct {
	// Name is its place under bin, without .wasm: plugins/script.
	Name string
	// Program: it is built for this machine, to run as a subprocess.
	Program bool
	// Dir holds its package main.
	Dir string
	// Inputs are the directories whose Go files decide what is built.
	Inputs []string
}

// root is found before a test changes its directory.
var root = findRoot()

// Root returns the repository's root.
func Root() string { return root }

// findRoot looks for the repository's go.mod at the working directory and above it: a
// program built with -trimpath does not know where its sources lie.
func findRoot() string {
	begin, err := os.Getwd()
	if err != nil {
		return ""
	}
	for dir := begin; ; dir = filepath.Dir(dir) {
		mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(mod), "module skep\n") {
			return dir
		}
		if dir == filepath.Dir(dir) {
			return begin
		}
	}
}

// roots are the directories below which guests lie, and where they go.
var roots = []struct{ dir, bin string }{
	{"plugins", "plugins"},
	{"examples", "examples"},
	{"host/internal/turn/wasm/testdata/guests", "testguests"},
}

// All lists the guests of the repository: every package main below the roots
// that is written against the SDK.
func All(root string) ([]Guest, error) {
	var all []Guest
	for _, r := range roots {
		base := filepath.Join(root, filepath.FromSlash(r.dir))
		err := filepath.WalkDir(base, func(path string, d fs.DirEntry, err error) error {
			server := err == nil && d.IsDir() && says(path, `"github.com/modelcontextprotocol/go-sdk/mcp"`)
			if err != nil || !d.IsDir() || !server && !isGuest(path) {
				return skipMissing(err)
			}
			name, err := filepath.Rel(base, path)
			if err != nil {
				return err
			}
			g := Guest{
				Name: r.bin + "/" + filepath.ToSlash(name), Dir: path,
				Inputs: []string{path, filepath.Join(root, "sdk", "go"), filepath.Join(root, "host", "internal", "turn", "wasm", "binary")},
			}
			if shared := filepath.Join(base, "internal"); says(path, `"skep/`+r.dir+`/internal/`) {
				g.Inputs = append(g.Inputs, shared)
			}
			if server { // an MCP server, which is a program and no agent
				g.Program, g.Inputs = true, []string{path}
				all = append(all, g)
				return nil
			}
			all = append(all, g)
			if says(path, `"skep/sdk/goproc"`) {
				g.Program, g.Inputs = true, []string{path, filepath.Join(root, "sdk", "go"), filepath.Join(root, "sdk", "goproc")}
				all = append(all, g)
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("list guests: %w", err)
		}
	}
	return all, nil
}

func skipMissing(err error) error {
	if os.IsNotExist(err) {
		return nil
	}
	return err
}

// isGuest reports whether a directory holds a main package that imports the SDK
// or exports the ABI on its own.
func isGuest(dir string) bool {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return false
	}
	isMain, isAgent := false, false
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil || strings.HasSuffix(f, "_test.go") {
			continue
		}
		isMain = isMain || strings.Contains(string(text), "\npackage main\n") || strings.HasPrefix(string(text), "package main\n")
		isAgent = isAgent || strings.Contains(string(text), `"skep/sdk/go"`) || strings.Contains(string(text), "//go:wasmexport skep_")
	}
	return isMain && isAgent
}

// says reports whether one of the Go files of a directory has a text.
func says(dir, text string) bool {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	return err == nil && slices.ContainsFunc(files, func(f string) bool {
		all, err := os.ReadFile(f)
		return err == nil && strings.Contains(string(all), text)
	})
}

// File is where the guest's module or program lies.
func (g Guest) File(root string) string {
	file := filepath.Join(root, "bin", filepath.FromSlash(g.Name))
	if g.Program {
		return file
	}
	return file + ".wasm"
}

// key separates the module of a guest from its program.
func (g Guest) key() string {
	if g.Program {
		return g.Name + ".program"
	}
	return g.Name
}

// stamp is where the digest of the sources lies that the module was built from.
func (g Guest) stamp(root string) string {
	return filepath.Join(root, "bin", "cache", "stamps", strings.ReplaceAll(g.key(), "/", "-"))
}

// Digest is the digest of everything the module is built from, the rewriter and
// the Go version included: both decide what lies in the compile cache.
func (g Guest) Digest() (string, error) {
	h := sha256.New()
	fmt.Fprintln(h, runtime.Version(), buildFlags)
	for _, dir := range g.Inputs {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || strings.HasSuffix(path, "_test.go") {
				return err
			}
			if ext := filepath.Ext(path); ext != ".go" && ext != ".mod" && ext != ".s" {
				return nil
			}
			text, err := os.ReadFile(path)
			fmt.Fprintf(h, "%s %d\n%s", filepath.Base(path), len(text), text)
			return err
		})
		if err != nil {
			return "", fmt.Errorf("digest %s: %w", g.Name, err)
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Fresh reports whether the module and its compiled code are there and good.
func (g Guest) Fresh(root, digest string) bool { return g.holds(root, g.stamp(root), digest) }

// holds reports whether a stamp has the digest, and the guest its file.
func (g Guest) holds(root, stamp, digest string) bool {
	old, err := os.ReadFile(stamp)
	if err != nil || string(old) != digest {
		return false
	}
	_, err = os.Stat(g.File(root))
	return err == nil
}

// Built reports whether the module or the program is there and good. Its compiled code need
// not be.
func (g Guest) Built(root, digest string) bool {
	return g.Fresh(root, digest) || g.holds(root, g.stamp(root)+".built", digest)
}

// MarkBuilt records that the module or the program is good.
func (g Guest) MarkBuilt(root, digest string) error {
	return writeStamp(g.stamp(root)+".built", digest)
}

// MarkFresh records that the module and its compiled code are good.
func (g Guest) MarkFresh(root, digest string) error { return writeStamp(g.stamp(root), digest) }

func writeStamp(stamp, digest string) error {
	if err := os.MkdirAll(filepath.Dir(stamp), 0o700); err != nil {
		return err
	}
	return os.WriteFile(stamp, []byte(digest), 0o600)
}

var buildFlags = []string{"build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w"}

// Build makes the module or the program. It replaces the file in one step.
func (g Guest) Build(root string) error {
	out := g.File(root)
	if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
		return err
	}
	fresh := out + ".new"
	args, env := slices.Clone(buildFlags), append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=")
	if !g.Program {
		args, env = append(args, "-buildmode=c-shared"), append(env, "GOOS=wasip1", "GOARCH=wasm")
	}
	cmd := exec.Command("go", append(args, "-o", fresh, ".")...)
	cmd.Dir, cmd.Env = g.Dir, env
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", g.Name, err, text)
	}
	return os.Rename(fresh, out)
}

// ToolchainsRequired reports whether a test that needs the compilers of another
// language must fail without them, instead of being skipped: so it is in CI.
func ToolchainsRequired() bool { return os.Getenv("SKEP_TOOLCHAINS") == "required" }

// TB is what the helpers need of a test.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
}

// prepare builds what is stale, once in a process. It returns the digests of
// all guests by name.
var prepare = sync.OnceValues(func() (map[string]string, error) {
	root := Root()
	all, err := All(root)
	if err != nil {
		return nil, err
	}
	digests, stale := map[string]string{}, false
	for _, g := range all {
		digest, err := g.Digest()
		if err != nil {
			return nil, err
		}
		digests[g.key()] = digest
		stale = stale || !g.Fresh(root, digest)
	}
	if !stale {
		return digests, nil
	}
	cmd := exec.Command("go", "run", "./host/internal/guests/build")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return digests, fmt.Errorf("build the guests: %w\n%s", err, text)
	}
	return digests, nil
})

// Bytes returns a guest's module by its name, for instance plugins/script. It
// fails the test when that guest is missing or does not build.
func Bytes(tb TB, name string) []byte {
	tb.Helper()
	root := Root()
	digests, failed := prepare()
	if g := (Guest{Name: name}); !g.Fresh(root, digests[name]) {
		tb.Fatalf("guest %s is not built: %v", name, failed)
	}
	wasm, err := os.ReadFile(Guest{Name: name}.File(root))
	if err != nil {
		tb.Fatalf("guest %s: %v", name, err)
	}
	return wasm
}

// Program returns where a guest's program lies, by the guest's name. It fails the
// test when it is missing or does not build.
func Program(tb TB, name string) string {
	tb.Helper()
	digests, failed := prepare()
	g := Guest{Name: name, Program: true}
	if !g.Fresh(Root(), digests[g.key()]) {
		tb.Fatalf("program %s is not built: %v", name, failed)
	}
	return g.File(Root())
}

// CacheDir returns the compile cache that holds all guests.
func CacheDir(tb TB) string {
	tb.Helper()
	if digests, err := prepare(); digests == nil {
		tb.Fatalf("%v", err)
	}
	return filepath.Join(Root(), "bin", "cache")
}

// Python returns the Python that has what agents in Python import, which make
// python makes, and the directories that its processes must be able to read. Without
// one it is empty, which fails the test where toolchains are required.
func Python(tb TB) (python string, readable []string) {
	tb.Helper()
	home := filepath.Join(Root(), "bin", "python")
	python = filepath.Join(home, "bin", "python")
	err := exec.Command(python, "-c", "import cryptography, grpc, google.protobuf").Run()
	switch {
	case err != nil && ToolchainsRequired():
		tb.Fatalf("there is no Python for agents: %v; make python makes it", err)
	case err != nil:
		return "", nil
	}
	return python, []string{home, filepath.Join(home, "base")}
}
