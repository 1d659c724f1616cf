package fileaction

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"skep/abi"
)

// fixture is an opened directory.
type fixture struct {
	t   *testing.T
	dir string
	*Directory
}

func newFixture(t *testing.T, opt Options) fixture {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(dir, "root")
	if err := os.Mkdir(root, 0o700); err != nil {
		t.Fatal(err)
	}
	opt.Table = "[actions.a]"
	if opt.MaxFile == 0 {
		opt.MaxFile, opt.MaxTotal = 1000, 2000
	}
	j, err := NewLocks().OpenDirectory(root, opt)
	if err != nil {
		t.Fatal(err)
	}
	return fixture{t, root, j}
}

// put creates a file in the root, at a path that may lead out of it.
func (y fixture) put(p, content string) {
	y.t.Helper()
	full := filepath.Join(y.dir, p)
	if err := os.MkdirAll(filepath.Dir(full), 0o700); err != nil {
		y.t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(content), 0o600); err != nil {
		y.t.Fatal(err)
	}
}

func (y fixture) link(to, p string) {
	y.t.Helper()
	if err := os.Symlink(to, filepath.Join(y.dir, p)); err != nil {
		y.t.Fatal(err)
	}
}

// do runs an action of tenant "t" and returns its answer or its error.
func (y fixture) do(does string, args map[string]string) string {
	y.t.Helper()
	return y.call(Call{Action: does, Tenant: "t", Key: "k"}, args)
}

func (y fixture) call(c Call, args map[string]string) string {
	y.t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		y.t.Fatal(err)
	}
	c.Args = raw
	answer, fault := y.Do(y.t.Context(), c)
	if fault != nil {
		return fault.Error()
	}
	return string(answer)
}

func (y fixture) at(does, p string) string { return y.do(does, map[string]string{"path": p}) }

func (y fixture) write(p, content string) string {
	return y.do("write_file", map[string]string{"path": p, "content": content})
}

func want(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want && !(strings.HasSuffix(want, "…") && strings.HasPrefix(got, strings.TrimSuffix(want, "…"))) {
		t.Errorf("%s:\n got %s\nwant %s", what, got, want)
	}
}

func TestActions(t *testing.T) {
	t.Parallel()
	y := newFixture(t, Options{Write: true})
	for _, step := range []struct{ got, want string }{
		{y.at("read_directory", "."), `""`},
		{y.at("read_directory", "a"), `NOT_FOUND: there is no "a"`},
		{y.at("read_file", "a/b.txt"), `NOT_FOUND: there is no "a/b.txt"`},
		{y.write("./a//b.txt", "<é>\n"), `"successfully wrote to a/b.txt"`},
		{y.at("read_file", "a/b.txt"), `"<é>\n"`},
		{y.write("a/b.txt", "two"), `"successfully wrote to a/b.txt"`},
		{y.at("read_file", "a/b.txt"), `"two"`},
		{y.do("write_file", map[string]string{"path": "bin", "content": "/wA=", "encoding": "base64"}), `"successfully wrote to bin"`},
		{y.at("read_file", "bin"), `{"encoding":"base64","content":"/wA="}`},
		{y.at("create_directory", "d/e/"), `"successfully created directory at d/e"`},
		{y.at("create_directory", "d/e"), `CONFLICT: "d/e" is there already`},
		{y.at("read_directory", "."), `"a/\nbin\nd/"`},
		{y.at("read_directory", "a"), `"b.txt"`},
		{y.at("read_directory", "bin"), `INVALID: "bin" is not a directory`},
		{y.at("read_file", "a"), `INVALID: "a" is a directory; read_directory lists it`},
		{y.at("read_file", "bin/x"), `UPSTREAM: "bin/x": not a directory`},
		{y.write("a", "x"), `INVALID: "a" is a directory`},
		{y.write("bin/x", "x"), `UPSTREAM: "bin/x": not a directory`},
		{y.at("delete_file", "d"), `INVALID: "d" is a directory; only files are deleted`},
		{y.at("delete_file", "bin"), `"successfully deleted bin"`},
		{y.at("delete_file", "bin"), `NOT_FOUND: there is no "bin"`},
		{y.at("create_directory", "."), `CONFLICT: "." is there already`},
		{y.at("read", "a"), `UNSUPPORTED: there is no file action "read"`},
		{y.do("write_file", map[string]string{"path": "x", "content": "!", "encoding": "base64"}), "INVALID: content is not base64 of RFC 4648 with padding"},
		{y.do("write_file", map[string]string{"path": "x", "content": "!", "encoding": "hex"}), `INVALID: encoding must be "base64" or left out, not "hex"`},
		{y.do("read_file", map[string]string{"name": "x"}), "INVALID: the arguments: …"},
	} {
		want(t, step.want, step.got, step.want)
	}
	if got, err := os.ReadFile(filepath.Join(y.dir, "t", "a", "b.txt")); err != nil || string(got) != "two" {
		t.Errorf("the tenant's file is %q: %v", got, err)
	}
}

// Names are the file system's own: similar names differ, and no case or Unicode folding
// happens.
func TestNamesAreNotFolded(t *testing.T) {
	t.Parallel()
	y := newFixture(t, Options{Write: true})
	for i, name := range []string{"\u00e9", "e\u0301", "🐝", "a b", "-rf", "K"} {
		y.write(name, string(rune('0'+i)))
	}
	for i, name := range []string{"\u00e9", "e\u0301", "🐝", "a b", "-rf", "K"} {
		want(t, name, y.at("read_file", name), `"`+string(rune('0'+i))+`"`)
	}
}

// Each tenant has a directory of its own; a tenant whose name cannot name a directory has
// none.
func TestTenants(t *testing.T) {
	t.Parallel()
	y := newFixture(t, Options{Write: true})
	as := func(tenant, does string, args map[string]string) string {
		return y.call(Call{Action: does, Tenant: tenant, Key: "k"}, args)
	}
	for _, tenant := range []string{"a", "b"} {
		want(t, tenant, as(tenant, "write_file", map[string]string{"path": "f", "content": "of " + tenant}), `"successfully wrote to f"`)
	}
	for _, tenant := range []string{"a", "b"} {
		want(t, tenant, as(tenant, "read_file", map[string]string{"path": "f"}), `"of `+tenant+`"`)
		want(t, tenant, as(tenant, "read_directory", map[string]string{"path": "."}), `"f"`)
	}
	for _, tenant := range []string{"", ".", "..", "a/../b", "../x", ".hidden", "é", strings.Repeat("a", 256)} {
		want(t, tenant, as(tenant, "read_file", map[string]string{"path": "f"}), "DENIED: a tenant of this name can have no directory")
		if _, err := y.EraseTenant(tenant); err != nil {
			t.Error(err)
		}
	}
	y.link("b", "c")
	want(t, "a link", as("c", "read_file", map[string]string{"path": "f"}), "DENIED: the tenant's directory in the root of [actions.a] is none")
	y.put("d", "")
	want(t, "a file", as("d", "write_file", map[string]string{"path": "f", "content": "x"}), "DENIED: …")
	for i, tenant := range []string{"a", "a", "c"} {
		if had, err := y.EraseTenant(tenant); err != nil || had != (i != 1) {
			t.Fatalf("%s had something: %t, %v", tenant, had, err)
		}
	}
	want(t, "erased", as("a", "read_file", map[string]string{"path": "f"}), "NOT_FOUND: …")
	want(t, "the other", as("b", "read_file", map[string]string{"path": "f"}), `"of b"`)
}

func TestReadOnly(t *testing.T) {
	t.Parallel()
	y := newFixture(t, Options{Shared: true})
	y.put("f", "x")
	want(t, "read", y.at("read_file", "f"), `"x"`)
	for _, does := range []string{"create_directory", "delete_file"} {
		want(t, does, y.at(does, "f"), "DENIED: [actions.a] does not allow to change files; write = true does")
	}
	want(t, "write", y.write("f", "y"), "DENIED: …")
}

// Limit errors name the key to change, and no answer is truncated.
func TestLimits(t *testing.T) {
	t.Parallel()
	y := newFixture(t, Options{Write: true})
	y.put("t/big", strings.Repeat("x", 1001))
	want(t, "big", y.at("read_file", "big"), `LIMIT: "big" has more than 1000 bytes; [actions.a] max_file allows more`)
	want(t, "write big", y.write("f", strings.Repeat("x", 1001)), "LIMIT: the content has 1001 bytes, at most 1000; [actions.a] max_file allows more")
	want(t, "write", y.write("f", strings.Repeat("x", 999)), `"successfully wrote to f"`)
	want(t, "total", y.write("g", "x"), "LIMIT: all files together would have 2001 bytes, at most 2000; [actions.a] max_total allows more")
	want(t, "no file", y.at("read_file", "g"), "NOT_FOUND: …")
	want(t, "in its place", y.write("f", strings.Repeat("y", 999)), `"successfully wrote to f"`)
	want(t, "less", y.write("f", "y"), `"successfully wrote to f"`)
	want(t, "and now", y.write("g", "x"), `"successfully wrote to g"`)
	encoded := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{255}, 1001))
	want(t, "base64", y.do("write_file", map[string]string{"path": "h", "content": encoded, "encoding": "base64"}), "LIMIT: the content has 1001 bytes…")
}

func TestEntries(t *testing.T) {
	t.Parallel()
	y := newFixture(t, Options{Write: true})
	if y.maxEntries != maxEntries {
		t.Errorf("%d names", y.maxEntries)
	}
	y.maxEntries = 5
	for _, p := range []string{"d/a", "d/b", "c"} {
		y.write(p, "")
	}
	want(t, "two names", y.write("new/f", "x"), "LIMIT: the directory has 5 files and directories, the most there may be")
	want(t, "the last", y.write("f", "x"), `"successfully wrote to f"`)
	want(t, "one more", y.at("create_directory", "e"), "LIMIT: …")
	want(t, "replaced", y.write("f", "y"), `"successfully wrote to f"`)
	for i := range maxListed - 1 {
		y.put("t/d/"+strings.Repeat("a", i%50+1)+strings.Repeat("b", i/50+1), "")
	}
	want(t, "list", y.at("read_directory", "d"), `LIMIT: "d" has more than 1000 names, too many to be listed`)
	want(t, "replaced", y.write("f", "z"), `"successfully wrote to f"`)
}

// A retry after the death of the host has the same effect as one call.
func TestAgain(t *testing.T) {
	t.Parallel()
	y := newFixture(t, Options{Write: true})
	again := func(does string, args map[string]string) string {
		return y.call(Call{Action: does, Tenant: "t", Key: "k", Retry: true}, args)
	}
	y.put("t/"+partName("k"), "what was written when the host died")
	file := map[string]string{"path": "f", "content": "x"}
	for range 2 {
		want(t, "write", again("write_file", file), `"successfully wrote to f"`)
	}
	want(t, "create", again("create_directory", map[string]string{"path": "d"}), `"successfully created directory at d"`)
	want(t, "create", again("create_directory", map[string]string{"path": "d"}), `"successfully created directory at d"`)
	want(t, "a file", again("create_directory", map[string]string{"path": "f"}), "CONFLICT: …")
	for range 2 {
		want(t, "delete", again("delete_file", map[string]string{"path": "f"}), `"successfully deleted f"`)
	}
	want(t, "list", y.at("read_directory", "."), `"d/"`)
	if names, err := os.ReadDir(filepath.Join(y.dir, "t")); err != nil || len(names) != 1 {
		t.Errorf("there is %v: %v", names, err)
	}
}

// An abandoned unfinished file is removed after a while.
func TestLeftParts(t *testing.T) {
	t.Parallel()
	y := newFixture(t, Options{Write: true})
	old, fresh := partName("old"), partName("fresh")
	y.put("t/"+old, strings.Repeat("x", 1999))
	y.put("t/"+fresh, "x")
	long := time.Now().Add(-2 * abandonedPartAge)
	if err := os.Chtimes(filepath.Join(y.dir, "t", old), long, long); err != nil {
		t.Fatal(err)
	}
	want(t, "list", y.at("read_directory", "."), `""`)
	want(t, "write", y.write("f", "xx"), `"successfully wrote to f"`)
	if _, err := os.Stat(filepath.Join(y.dir, "t", old)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the old part: %v", err)
	}
	if _, err := os.Stat(filepath.Join(y.dir, "t", fresh)); err != nil {
		t.Error(err)
	}
}

// Concurrent calls do not exceed the total together, and readers see the old file or the
// new one.
func TestTogether(t *testing.T) {
	t.Parallel()
	y := newFixture(t, Options{Write: true, MaxFile: 1000, MaxTotal: 3000})
	y.write("f", strings.Repeat("a", 100))
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			raw, _ := json.Marshal(map[string]string{"path": strings.Repeat("n", i+1), "content": strings.Repeat("x", 1000)})
			_, _ = y.Do(t.Context(), Call{Action: "write_file", Tenant: "t", Key: strings.Repeat("k", i+1), Args: raw})
		})
		all.Go(func() {
			raw, _ := json.Marshal(map[string]string{"path": "f", "content": strings.Repeat("b", 100)})
			_, _ = y.Do(t.Context(), Call{Action: "write_file", Tenant: "t", Key: "f" + strings.Repeat("k", i+1), Args: raw})
		})
		all.Go(func() {
			got := y.at("read_file", "f")
			if got != `"`+strings.Repeat("a", 100)+`"` && got != `"`+strings.Repeat("b", 100)+`"` {
				t.Errorf("read %s", got)
			}
		})
	}
	all.Wait()
	names, err := os.ReadDir(filepath.Join(y.dir, "t"))
	if err != nil || len(names) != 3 {
		t.Errorf("there is %v: %v", names, err)
	}
}

func TestCalledOff(t *testing.T) {
	t.Parallel()
	y := newFixture(t, Options{Write: true})
	y.put("t/f", "x")
	leave, fault := y.lockTenant(t.Context(), "t")
	if fault != nil {
		t.Fatal(fault)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	past, done := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer done()
	for _, does := range []string{"write_file", "read_file"} {
		args := json.RawMessage(`{"path":"f","content":"y"}`)
		for ctx, want := range map[context.Context]abi.Code{gone: abi.CodeCancelled, past: abi.CodeDeadline} {
			if _, fault := y.Do(ctx, Call{Action: does, Tenant: "t", Key: "k", Args: args}); fault == nil || fault.Code != want {
				t.Errorf("%s: %v", does, fault)
			}
		}
	}
	leave()
	want(t, "unchanged", y.at("read_file", "f"), `"x"`)
	want(t, "free again", y.write("f", "z"), `"successfully wrote to f"`)
	if _, fault := y.Do(gone, Call{Action: "create_directory", Tenant: "t", Key: "k", Args: json.RawMessage(`{"path":"n"}`)}); fault == nil || fault.Code != abi.CodeCancelled {
		t.Errorf("%v", fault)
	}
}

// A replaced file keeps its mode, and a hard link keeps the old content.
func TestModes(t *testing.T) {
	t.Parallel()
	y := newFixture(t, Options{Shared: true, Write: true})
	y.put("../outside", "outside")
	if err := errors.Join(os.Link(filepath.Join(y.dir, "../outside"), filepath.Join(y.dir, "f")), os.Chmod(filepath.Join(y.dir, "f"), 0o750)); err != nil {
		t.Fatal(err)
	}
	want(t, "write", y.write("f", "x"), `"successfully wrote to f"`)
	info, err := os.Stat(filepath.Join(y.dir, "f"))
	if err != nil || info.Mode() != 0o750 {
		t.Errorf("%v: %v", info.Mode(), err)
	}
	if got, err := os.ReadFile(filepath.Join(y.dir, "../outside")); err != nil || string(got) != "outside" {
		t.Errorf("outside is %q: %v", got, err)
	}
	y.write("g", "x")
	if info, err := os.Stat(filepath.Join(y.dir, "g")); err != nil || info.Mode() != fileMode {
		t.Errorf("%v: %v", info.Mode(), err)
	}
}

func TestForeignNames(t *testing.T) {
	t.Parallel()
	y := newFixture(t, Options{Shared: true, Write: true})
	y.put("a\nb", "")
	if err := os.Mkdir(filepath.Join(y.dir, "bad\xff"), 0o700); err != nil {
		t.Skip("this file system has no such names")
	}
	want(t, "list", y.at("read_directory", "."), `"\"a\\nb\"\n\"bad\\xff\"/"`)
	want(t, "write", y.write("f", "x"), `"successfully wrote to f"`)
}
