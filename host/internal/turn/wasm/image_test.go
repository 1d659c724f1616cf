package wasm

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"skep/host/internal/guests"
	"skep/host/internal/turn"
)

// imagesEnv makes the test binary print the digests of images instead of testing.
const imagesEnv = "SKEP_TEST_IMAGES"

// engineWith makes an engine with options, which the test closes.
func engineWith(tb testing.TB, o Options) *Engine {
	tb.Helper()
	e, err := New(context.Background(), o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := e.Close(context.Background()); err != nil {
			tb.Error(err)
		}
		if left := e.pools.resident.Load(); left != 0 {
			tb.Errorf("%d bytes are counted after Close", left)
		}
	})
	return e
}

// loadInto loads a module into an engine.
func loadInto(tb testing.TB, e *Engine, wasm []byte) *Module {
	tb.Helper()
	m, err := e.Load(context.Background(), Source{Name: "test", Wasm: wasm})
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

// imageOf runs a turn of a module and returns the image it began as.
func imageOf(tb testing.TB, m *Module) *image {
	tb.Helper()
	play(tb, m, turn.Turn{Input: input(tb, "probe")})
	s := m.engine.pools.poolOf(m, newRun(context.Background(), m, turn.Turn{}).startLimits())
	if s.build == nil || s.build.image == nil {
		tb.Fatal("the module has no image")
	}
	return s.build.image
}

// printImages prints the digest of the image of every guest of the repository.
func printImages(tb testing.TB, copies bool) string {
	all, err := guests.All(guests.Root())
	if err != nil {
		tb.Fatal(err)
	}
	e, err := New(context.Background(), Options{CacheDir: guests.CacheDir(tb), CopyImages: copies, Secret: []byte("s")})
	if err != nil {
		tb.Fatal(err)
	}
	defer func() {
		if err := e.Close(context.Background()); err != nil {
			tb.Error(err)
		}
	}()
	var out strings.Builder
	for _, g := range all {
		if g.Program {
			continue
		}
		m := loadInto(tb, e, guests.Bytes(tb, g.Name))
		sum := imageOf(tb, m).sum()
		fmt.Fprintln(&out, g.Name, hex.EncodeToString(sum[:]))
	}
	return out.String()
}

// child re-executes the test binary, which then prints the images.
func child(t *testing.T) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, "-test.run=^TestImagesAreTheSameInEveryProcess$", "-test.v")
	cmd.Env = append(os.Environ(), imagesEnv+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	_, after, _ := strings.Cut(string(out), "BEGIN\n")
	sums, _, ok := strings.Cut(after, "END\n")
	if !ok {
		t.Fatalf("the child said\n%s", out)
	}
	return sums
}

// One digest, one image: in this process, mapped or copied, and in another one.
func TestImagesAreTheSameInEveryProcess(t *testing.T) {
	if os.Getenv(imagesEnv) != "" {
		fmt.Printf("BEGIN\n%sEND\n", printImages(t, false))
		checkNoImagesLeft(t)
		return
	}
	t.Parallel()
	here := printImages(t, true)
	if n := strings.Count(here, "\n"); n < 7 {
		t.Errorf("only %d guests:\n%s", n, here)
	}
	if there := child(t); there != here {
		t.Errorf("here\n%s, in another process\n%s", here, there)
	}
}

// checkNoImagesLeft looks for images that Close has left behind. It needs a
// process of its own.
func checkNoImagesLeft(t *testing.T) {
	if runtime.GOOS != "linux" {
		return
	}
	mapped, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(mapped, []byte("skep-image")); n > 0 {
		t.Errorf("%d mappings of images are left", n)
	}
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range open {
		if to, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && strings.Contains(to, "skep-image") {
			t.Errorf("descriptor %s is still open: %s", fd.Name(), to)
		}
	}
}

// std Go writes tens of thousands of data segments; few are kept.
func TestGoDataIsJoined(t *testing.T) {
	t.Parallel()
	m := goGuest(t, "plugins/script")
	size := 0
	for _, s := range m.data {
		size += len(s.Bytes)
	}
	if len(m.data) > 1000 || size < 500_000 {
		t.Errorf("%d segments of %d bytes", len(m.data), size)
	}
}

// patched makes an agent whose image has something here and there, zero pages
// in between and behind, in a memory of some pages.
func patched(pages int) []byte {
	b := newBuilder()
	b.mem(pages)
	b.global('i', 5)
	b.global('I', -7)
	for at := 0; at < (pages-1)*page*2/3; at += 3*osPage + 11 {
		b.segment(at, "something")
	}
	return b.agent("", ok)
}

// Whatever is written into an instance, a reset brings back every byte of its
// image, and every global.
func TestResetRestoresEveryByte(t *testing.T) {
	t.Parallel()
	for _, copies := range []bool{false, true} {
		for _, pages := range []int{1, 2, 15, 16, 17, 70} {
			t.Run(fmt.Sprint(pages, " pages, copied ", copies), func(t *testing.T) {
				t.Parallel()
				m := loadInto(t, engineWith(t, Options{CopyImages: copies}), patched(pages))
				img := imageOf(t, m)
				if img.mapped == (copies || runtime.GOOS != "linux") {
					t.Errorf("mapped: %v", img.mapped)
				}
				i, err := m.newInstance(startLimits{Memory: 64 << 20, Stack: 1 << 20}, img)
				if err != nil {
					t.Fatal(err)
				}
				defer i.close()
				want := whole(t, i)
				rnd := rand.New(rand.NewPCG(uint64(pages), 7))
				for n := range 6 {
					warm := n%2 == 0
					scribble(i, rnd)
					if now := whole(t, i); now == want {
						t.Fatal("nothing was changed")
					}
					if !i.restore(warm) {
						t.Fatal("not restored")
					}
					if now := whole(t, i); now != want {
						t.Fatal("the reset left something behind")
					}
				}
			})
		}
	}
}

// whole returns all that a turn can see of an instance.
func whole(t *testing.T, i *instance) string {
	t.Helper()
	memory, ok := i.memory.Read(0, i.memory.Size())
	if !ok {
		t.Fatal("no memory")
	}
	text := string(memory)
	for _, g := range append(slices.Clone(i.globals), i.stack) {
		text += fmt.Sprintf(" %x", g.Get())
	}
	return text
}

// scribble writes over some pages, or all of them, and over the globals.
func scribble(i *instance, rnd *rand.Rand) {
	memory, _ := i.memory.Read(0, i.memory.Size())
	every := 1 + rnd.IntN(5)
	for at := 0; at < len(memory); at += osPage * every {
		memory[at+rnd.IntN(osPage)]++
	}
	for _, g := range append(slices.Clone(i.globals), i.stack) {
		g.Set(g.Get() + 1)
	}
}

// outcome is what must not depend on how an instance came to be.
type outcome struct {
	output, exit  string
	fuel          uint64
	memory, calls int64
	asked         string
}

func outcomeOf(t *testing.T, m *Module, turn turn.Turn) outcome {
	t.Helper()
	ops := &fakeOps{}
	turn.Ops = ops
	r := play(t, m, turn)
	o := outcome{output: string(r.Output), fuel: r.Fuel, memory: r.Memory, calls: r.HostCalls}
	o.asked = fmt.Sprint(ops.asked, ops.logs)
	if r.Exit != nil {
		o.exit = r.Exit.Error()
	}
	return o
}

// ways are the ways in which an instance can come to be: begun from the module's
// own data, copy-on-write or copied; and then reset, or not.
func ways(t *testing.T, wasm []byte) map[string]*Module {
	list := map[string]*Module{}
	for name, o := range map[string]Options{
		"mapped and reset": {}, "mapped and given back, reset": {}, "copied and reset": {CopyImages: true},
		"mapped": {IdlePerModule: IdleLimits{Count: -1}}, "copied": {CopyImages: true, IdleTotal: IdleLimits{Count: -1}},
		"fresh": {},
	} {
		o.CacheDir = guests.CacheDir(t)
		m := loadInto(t, engineWith(t, o), wasm)
		switch name {
		case "fresh":
			m.noImageReason = "the test says so"
		case "mapped and given back, reset":
			m.engine.pools.maxWarm = 0
		}
		list[name] = m
	}
	return list
}

// Same input, same seed: same fuel and same bytes, however the instance came to
// be and whatever its last turn was.
func TestTurnsDoNotDependOnTheirInstance(t *testing.T) {
	t.Parallel()
	tests := []struct {
		guest  string
		bodies []string
	}{
		{"testguests/keeper", []string{"probe", "plant a secret", "error no", "panic oh", "grow", "probe"}},
		{"testguests/many", []string{"times", "order", "random", "goroutine", "timeout", "print x", "exit"}},
		{"plugins/script", []string{"hello", `[["random",{}],["now",{}],["alloc",{"mib":3}]]`}},
	}
	for _, tt := range tests {
		t.Run(tt.guest, func(t *testing.T) {
			t.Parallel()
			want := map[string]outcome{}
			for name, m := range ways(t, guests.Bytes(t, tt.guest)) {
				for n, body := range slices.Concat(tt.bodies, tt.bodies) {
					got := outcomeOf(t, m, turn.Turn{Input: input(t, body), Seed: [32]byte{9}})
					if first, ok := want[body]; !ok {
						want[body] = got
					} else if got != first {
						t.Errorf("%s, turn %d, %q:\n%+v, elsewhere\n%+v", name, n, body, got, first)
					}
				}
				reused := m.engine.Pool().Reused
				if strings.HasSuffix(name, "reset") && tt.guest == "testguests/keeper" && reused == 0 || !strings.HasSuffix(name, "reset") && reused > 0 {
					t.Errorf("%s: %d instances were used again", name, reused)
				}
			}
			if len(want) != len(slices.Compact(slices.Sorted(slices.Values(tt.bodies)))) {
				t.Errorf("outcomes of %v", slices.Sorted(maps.Keys(want)))
			}
		})
	}
}

// What a start leaves with the host is no part of a turn.
func TestStartLeavesNothingWithTheHost(t *testing.T) {
	t.Parallel()
	b := newBuilder()
	submit := b.importFunc("skep_v1", "submit", "iii", "I")
	read := b.importFunc("skep_v1", "read", "iii", "I")
	write := b.importFunc("skep_v1", "output_write", "ii", "i")
	b.segment(0, "{}")
	b.fn("skep_warm", "", "i", "",
		i32c(1), i32c(0), i32c(2), callf(submit), expect64(1), i32c(0), i32c(2), callf(write), expect32(2), ok)
	m := load(t, b.agent("",
		i32c(1), i32c(0), i32c(8), callf(read), expect64(-3), // NOT_FOUND
		i32c(1), i32c(0), i32c(2), callf(submit), expect64(1),
		i32c(0), i32c(2), callf(write), expect32(2), ok))
	for range 3 {
		r := play(t, m, turn.Turn{Limits: turn.Limits{Output: 2, HostCalls: 1}})
		if r.Exit != nil || r.HostCalls != 1 || string(r.Output) != "{}" {
			t.Errorf("%v, %d calls, %s", r.Exit, r.HostCalls, r.Output)
		}
	}
}

// The makers of an image pay for it in turn: one makes it, the others wait.
func TestOneRunMakesTheImage(t *testing.T) {
	t.Parallel()
	b := newBuilder()
	poll := b.importFunc(wasiModule, "sched_yield", "", "i")
	b.fn("skep_warm", "", "i", "i", i32c(200_000), set(0), loop(join(callf(poll), drop,
		get(0), i32c(1), op(0x6b), op(0x22, 0), brIf(0))), ok)
	m := load(t, b.agent("", ok))
	before := m.engine.Pool().Fresh
	done := make(chan *turn.Exit)
	for range 8 {
		go func() { done <- play(t, m, turn.Turn{}).Exit }()
	}
	for range 8 {
		wantExit(t, <-done, "", "")
	}
	if s := m.engine.Pool(); s.Fresh != before+1 || s.Images != 1 || s.FromImage+s.Reused != 8 {
		t.Errorf("%+v", s)
	}
}

// A cancelled maker does not spoil it for those who wait; a start that fails for
// everyone fails for everyone, every time.
func TestImageThatFails(t *testing.T) {
	t.Parallel()
	b := newBuilder()
	b.fn("skep_warm", "", "i", "", forever(), ok)
	loops := load(t, b.agent("", ok))
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	first := make(chan *turn.Exit)
	go func() { first <- loops.Turn(ctx, turn.Turn{Clock: newClock()}).Exit }()
	second := make(chan *turn.Exit)
	go func() { second <- play(t, loops, turn.Turn{}).Exit }()
	wantExit(t, <-first, turn.ExitCancelled, "")
	wantExit(t, <-second, turn.ExitFuel, "limits.fuel")

	b = newBuilder()
	b.fn("_initialize", "", "", "", unreachable)
	traps := load(t, b.agent("", ok))
	exits := make(chan *turn.Exit)
	for range 8 {
		go func() { exits <- play(t, traps, turn.Turn{}).Exit }()
	}
	for range 8 {
		wantExit(t, <-exits, turn.ExitTrap, "")
	}
	wantExit(t, play(t, traps, turn.Turn{}).Exit, turn.ExitTrap, "")
	if s := traps.engine.Pool(); s.Images+s.Idle != 0 || s.Fresh < 2 {
		t.Errorf("%+v", s)
	}
}

// sum is a digest of the image: of memory and globals alike.
func (img *image) sum() [sha256.Size]byte {
	h := sha256.New()
	head := binary.LittleEndian.AppendUint64(nil, uint64(img.size))
	for _, g := range img.globals {
		head = binary.LittleEndian.AppendUint64(head, g)
	}
	h.Write(head)
	h.Write(img.content)
	return [sha256.Size]byte(h.Sum(nil))
}
