package binary_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"skep/host/internal/turn/wasm/binary"
)

// The core spec scripts, as JSON commands, travel with the engine's sources.
type (
	specScript struct {
		Commands []specCommand `json:"commands"`
	}
	specCommand struct {
		Type       string
		Line       int
		Name       string
		Filename   string
		As         string
		Action     specAction
		Expected   []specValue
		ModuleType string `json:"module_type"`
		Text       string
	}
	specAction struct {
		Type   string
		Field  string
		Module string
		Args   []specValue
	}
	specValue struct {
		Type     string
		LaneType string `json:"lane_type"`
		Value    any
	}
)

func TestSpecScripts(t *testing.T) {
	root := specRoot(t)
	versions := map[string]api.CoreFeatures{"v1": api.CoreFeaturesV1, "v2": api.CoreFeaturesV2}
	if testing.Short() {
		delete(versions, "v1") // v2 has the same scripts and more; v1 checks older rules of instantiation
	}
	for version, features := range versions {
		scripts, err := filepath.Glob(filepath.Join(root, version, "testdata", "*.json"))
		if err != nil || len(scripts) == 0 {
			t.Fatalf("no spec scripts in %s: %v", version, err)
		}
		for _, path := range scripts {
			name := version + "/" + strings.TrimSuffix(filepath.Base(path), ".json")
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				runScript(t, path, compiler().WithCoreFeatures(features))
			})
		}
	}
}

func specRoot(t testing.TB) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/tetratelabs/wazero").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "internal", "integration_test", "spectest")
}

// specWorld is one runtime in which a script runs, metered or plain.
type specWorld struct {
	r       wazero.Runtime
	rewrite func([]byte) ([]byte, error)
	host    *fuelHost // nil in the plain world
	mods    map[string]api.Module
	all     []api.Module
	last    api.Module
}

// specRun runs a script in three worlds: as it is, metered, and metered exactly.
type specRun struct {
	dir                   string
	plain, metered, exact *specWorld
}

// specCaps are the caps raised to what the scripts need: they test the language,
// not the limits.
func specCaps() binary.Caps {
	caps := binary.DefaultCaps()
	caps.Locals = 2000
	caps.BrTable = 100_000
	caps.Body = 1 << 20
	caps.TableElements = math.MaxInt32
	caps.CompileWork = math.MaxInt32
	return caps
}

func same(wasm []byte) ([]byte, error) { return wasm, nil }

func meter(wasm []byte) ([]byte, error) {
	m, err := binary.Admit(wasm, specCaps())
	if err != nil {
		return nil, err
	}
	return m.Meter(binary.Options{})
}

func meterExactly(wasm []byte) ([]byte, error) {
	m, err := binary.Admit(wasm, specCaps())
	if err != nil {
		return nil, err
	}
	return binary.ExactMeter(m), nil
}

func runScript(t *testing.T, path string, cfg wazero.RuntimeConfig) {
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var script specScript
	if err := json.Unmarshal(raw, &script); err != nil {
		t.Fatal(err)
	}
	spectest, err := os.ReadFile(filepath.Join(filepath.Dir(path), "..", "..", "testdata", "spectest.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	s := &specRun{
		dir:     filepath.Dir(path),
		plain:   newWorld(t, cfg, spectest, same, nil),
		metered: newWorld(t, cfg, spectest, meter, &fuelHost{grant: binary.MaxCharge}),
		exact:   newWorld(t, cfg, spectest, meterExactly, &fuelHost{grant: binary.MaxCharge}),
	}
	for i := range script.Commands {
		s.command(t, &script.Commands[i], script.Commands[i+1:])
	}
}

func newWorld(t *testing.T, cfg wazero.RuntimeConfig, spectest []byte, rewrite func([]byte) ([]byte, error), host *fuelHost) *specWorld {
	w := &specWorld{r: newRuntime(t, cfg), rewrite: rewrite, host: host, mods: map[string]api.Module{}}
	if host != nil {
		host.link(t, w.r)
	}
	if _, err := w.r.Instantiate(t.Context(), spectest); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *specWorld) load(t *testing.T, wasm []byte, name string) (api.Module, error) {
	wasm, err := w.rewrite(wasm)
	if err != nil {
		return nil, err
	}
	return w.r.InstantiateWithConfig(t.Context(), wasm, wazero.NewModuleConfig().WithName(name))
}

func (s *specRun) command(t *testing.T, c *specCommand, rest []specCommand) {
	switch c.Type {
	case "module":
		s.module(t, c, rest)
	case "register": // done with the module before it
	case "action", "assert_return", "assert_trap", "assert_exhaustion":
		s.action(t, c)
	case "assert_malformed", "assert_invalid", "assert_unlinkable", "assert_uninstantiable":
		if c.ModuleType != "text" {
			s.refused(t, c)
		}
	default:
		t.Errorf("line %d: unknown command %q", c.Line, c.Type)
	}
}

func (s *specRun) module(t *testing.T, c *specCommand, rest []specCommand) {
	wasm := s.read(t, c.Filename)
	var as string
	if len(rest) > 0 && rest[0].Type == "register" {
		as = rest[0].As
	}
	for _, w := range []*specWorld{s.plain, s.metered, s.exact} {
		mod, err := w.load(t, wasm, as)
		if err != nil {
			t.Fatalf("line %d: %s: %v", c.Line, c.Filename, err)
		}
		w.last = mod
		w.all = append(w.all, mod)
		if c.Name != "" {
			w.mods[c.Name] = mod
		}
	}
}

func (s *specRun) read(t *testing.T, name string) []byte {
	b, err := os.ReadFile(filepath.Join(s.dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// refused checks a module that must not load: what the plain engine refuses must
// not pass Admit, Meter and the engine together. (The engine lets some modules
// of linking.wast live that the script calls dead; then both must agree.)
func (s *specRun) refused(t *testing.T, c *specCommand) {
	wasm := s.read(t, c.Filename)
	_, plain := s.plain.load(t, wasm, "")
	_, metered := s.metered.load(t, wasm, "")
	s.exact.load(t, wasm, "")
	if (plain == nil) != (metered == nil) {
		t.Errorf("line %d: %s %s: plain %v, metered %v", c.Line, c.Type, c.Filename, plain, metered)
	}
}

func (w *specWorld) do(t *testing.T, c *specCommand) ([]uint64, error) {
	m := w.last
	if c.Action.Module != "" {
		m = w.mods[c.Action.Module]
	}
	if c.Action.Type == "get" {
		return []uint64{m.ExportedGlobal(c.Action.Field).Get()}, nil
	}
	var args []uint64
	for _, a := range c.Action.Args {
		args = append(args, a.words()...)
	}
	return m.ExportedFunction(c.Action.Field).Call(t.Context(), args...)
}

// action runs an invocation in both worlds, which must agree to the bit, and
// checks against the script that it is the right thing they agree on.
func (s *specRun) action(t *testing.T, c *specCommand) {
	want, plain := s.plain.do(t, c)
	got, metered := s.metered.do(t, c)
	s.exact.do(t, c)
	where := fmt.Sprintf("line %d: %s", c.Line, c.Action.Field)
	if c.Type == "assert_exhaustion" {
		if plain == nil || !errors.Is(metered, errOutOfStack) {
			t.Errorf("%s: plain %v, metered %v, want %v", where, plain, metered, errOutOfStack)
		}
		s.metered.refill()
		s.exact.refill()
		return
	}
	if firstLine(plain) != firstLine(metered) {
		t.Errorf("%s: plain %v, metered %v", where, plain, metered)
	}
	if (metered != nil) != (c.Type == "assert_trap") {
		t.Errorf("%s: error %v in %s", where, metered, c.Type)
	}
	if !slices.Equal(got, want) && !anyRef(c.Expected) {
		t.Errorf("%s: metered %x, plain %x", where, got, want)
	}
	if metered == nil {
		s.metered.balanced(t, where)
	}
	s.metered.refill()
	s.exact.refill()
	if long, short := s.metered.used(), s.exact.used(); long < short {
		t.Errorf("%s: fuel %d, but instructions for %d were executed", where, long, short)
	}
}

// balanced checks that every way out of a function gives its frame back.
func (w *specWorld) balanced(t *testing.T, where string) {
	for _, m := range w.all {
		if got := m.ExportedGlobal(binary.GlobalStack).Get(); got != binary.DefaultStack {
			t.Errorf("%s: %d bytes of stack left, want %d", where, got, binary.DefaultStack)
		}
	}
}

// refill repairs the stack after a trap, because scripts go on with the instance.
func (w *specWorld) refill() {
	for _, m := range w.all {
		m.ExportedGlobal(binary.GlobalStack).(api.MutableGlobal).Set(binary.DefaultStack)
	}
}

// used returns the fuel taken by all modules together.
func (w *specWorld) used() int64 {
	used := w.host.granted
	for _, m := range w.all {
		used -= int64(m.ExportedGlobal(binary.GlobalSlice).Get())
	}
	return used
}

// anyRef reports whether results are references, which are addresses here and
// differ between two instances.
func anyRef(exps []specValue) bool {
	return slices.ContainsFunc(exps, func(v specValue) bool { return strings.HasSuffix(v.Type, "ref") })
}

func firstLine(err error) string {
	if err == nil {
		return ""
	}
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

func (v specValue) words() []uint64 {
	if v.Type != "v128" {
		text, _ := v.Value.(string)
		return []uint64{word(v.Type, text)}
	}
	var bits [2]uint64
	lanes := v.Value.([]any)
	width := 128 / len(lanes)
	for i, lane := range lanes {
		n, err := strconv.ParseUint(lane.(string), 10, 64)
		if err != nil {
			panic(err)
		}
		bits[i*width/64] |= n << (i * width % 64)
	}
	return bits[:]
}

// word reads an argument; references count from one, because null is zero.
func word(typ, text string) uint64 {
	if text == "" || text == "null" {
		return 0
	}
	if typ == "i32" || typ == "i64" {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil && n < 0 {
			if typ == "i32" {
				return uint64(uint32(n))
			}
			return uint64(n)
		}
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		panic(err)
	}
	if typ == "externref" {
		n++
	}
	return n
}
