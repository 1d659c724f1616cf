package fileaction

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// No path of a call leads outside.
func TestPaths(t *testing.T) {
	t.Parallel()
	y := newFixture(t, Options{Write: true})
	y.put("../secret", "s")
	y.put("other/f", "another tenant's")
	long := strings.Repeat("n", 256)
	for p, want := range map[string]string{
		"":                              "INVALID: path is missing",
		"..":                            "DENIED: path must not have \"..\"",
		"../other/f":                    "DENIED: path must not have",
		"a/../../other/f":               "DENIED: path must not have",
		"a/..":                          "DENIED: path must not have",
		"/etc/passwd":                   "DENIED: path must be relative",
		"//x":                           "DENIED: path must be relative",
		`..\x`:                          "INVALID: path must have \"/\"",
		`C:\x`:                          "INVALID: path must have \"/\"",
		"a\x00b":                        "INVALID: path has control characters",
		"a\nb":                          "INVALID: path has control characters",
		"a\u0085b":                      "INVALID: path has control characters",
		long:                            "INVALID: a name in path has 256 bytes",
		strings.Repeat("a/", 512) + "a": "INVALID: path has 1025 bytes",
		strings.Repeat("a/", 32) + "a":  "INVALID: path has 33 names",
		".skep-part-1":                  "DENIED: names that begin with",
		"a/.SKEP-part-1":                "DENIED: names that begin with",
		"~/x":                           "NOT_FOUND",
		"%2e%2e/x":                      "NOT_FOUND",
		"．．/secret":                     "NOT_FOUND",
		"...":                           "NOT_FOUND",
		"t":                             "NOT_FOUND",
	} {
		for _, does := range []string{"read_file", "read_directory", "delete_file"} {
			if got := y.at(does, p); !strings.HasPrefix(got, want) {
				t.Errorf("%s of %.40q: %s, want %s", does, p, got, want)
			}
		}
		if got := y.write(p, "x"); !strings.HasPrefix(got, want) && want != "NOT_FOUND" {
			t.Errorf("write_file of %.40q: %s, want %s", p, got, want)
		}
	}
	if got, err := os.ReadFile(filepath.Join(y.dir, "../secret")); err != nil || string(got) != "s" {
		t.Errorf("the secret is %q: %v", got, err)
	}
}

// A link may lead to a place inside. A link that leads out is refused by every action.
func TestLinks(t *testing.T) {
	t.Parallel()
	y := newFixture(t, Options{Shared: true, Write: true})
	y.put("../secret", "s")
	y.put("../out/f", "s")
	y.put("in/f", "inside")
	y.link("in/f", "good")
	y.link("in", "gooddir")
	y.link("../secret", "bad")
	y.link("../out", "baddir")
	y.link(filepath.Join(filepath.Dir(y.dir), "secret"), "absolute")
	y.link("/proc/self/environ", "proc")
	y.link("loop", "loop")
	y.link("nowhere", "dangling")
	want(t, "good", y.at("read_file", "good"), `"inside"`)
	want(t, "gooddir", y.at("read_file", "gooddir/f"), `"inside"`)
	want(t, "write below", y.write("gooddir/g", "x"), `"successfully wrote to gooddir/g"`)
	want(t, "write to a link", y.write("good", "x"), `DENIED: "good" is no regular file, and is not replaced by one`)
	want(t, "delete a link", y.at("delete_file", "good"), `DENIED: "good" is neither a file nor a directory`)
	want(t, "loop", y.at("read_file", "loop"), `UPSTREAM: "loop": too many…`)
	want(t, "dangling", y.at("read_file", "dangling"), "NOT_FOUND: …")
	want(t, "write to dangling", y.write("dangling", "x"), "DENIED: …")
	for _, p := range []string{"bad", "absolute", "proc", "baddir/f", "baddir/new", "baddir"} {
		for _, does := range []string{"read_file", "read_directory"} {
			want(t, does+" "+p, y.at(does, p), "DENIED: "+`"`+p+`" leads out of the directory`)
		}
	}
	for _, p := range []string{"baddir/f", "baddir/new", "baddir/a/b"} {
		want(t, "write "+p, y.write(p, "x"), "DENIED: …")
		want(t, "delete "+p, y.at("delete_file", p), "DENIED: …")
		want(t, "create "+p, y.at("create_directory", p), "DENIED: …")
	}
	if got, err := os.ReadFile(filepath.Join(y.dir, "../out/f")); err != nil || string(got) != "s" {
		t.Errorf("outside is %q: %v", got, err)
	}
	if names, _ := os.ReadDir(filepath.Join(y.dir, "../out")); len(names) != 1 {
		t.Errorf("outside there is %v", names)
	}
}

// A name that alternates between a file and a link that leads out never shows an outside
// file, and no outside file is written.
func TestSwappedLinks(t *testing.T) {
	t.Parallel()
	y := newFixture(t, Options{Shared: true, Write: true})
	y.put("../out/f", "secret")
	y.put("real/f", "inside")
	stop := make(chan struct{})
	var swap sync.WaitGroup
	swap.Go(func() {
		name := filepath.Join(y.dir, "d")
		for {
			for _, to := range []string{"real", "../out"} {
				_ = os.Remove(name)
				_ = os.Symlink(to, name)
			}
			select {
			case <-stop:
				return
			default:
			}
		}
	})
	for i := range 2000 {
		if got := y.at("read_file", "d/f"); strings.Contains(got, "secret") {
			t.Errorf("read %s", got)
			break
		}
		if i%20 == 0 {
			y.write("d/g", "x")
		}
	}
	close(stop)
	swap.Wait()
	if names, _ := os.ReadDir(filepath.Join(y.dir, "../out")); len(names) != 1 {
		t.Errorf("outside there is %v", names)
	}
}

// A directory that replaces the root is refused.
func TestRootIsReplaced(t *testing.T) {
	t.Parallel()
	for what, replace := range map[string]func(y fixture) error{
		"by a link":      func(y fixture) error { return os.Symlink("elsewhere", y.dir) },
		"by a directory": func(y fixture) error { return os.Rename(filepath.Join(y.dir, "../elsewhere"), y.dir) },
	} {
		y := newFixture(t, Options{Shared: true})
		y.put("f", "x")
		y.put("../elsewhere/f", "secret")
		if err := errors.Join(os.Rename(y.dir, y.dir+".old"), replace(y)); err != nil {
			t.Fatal(err)
		}
		want(t, what, y.at("read_file", "f"), "DENIED: the root of [actions.a] is not the directory that was there when the file was read; reload the file")
		if _, err := y.EraseTenant("t"); err != nil {
			t.Errorf("%s: what is shared is not erased: %v", what, err)
		}
	}
	y := newFixture(t, Options{})
	if err := os.Remove(y.dir); err != nil {
		t.Fatal(err)
	}
	want(t, "gone", y.at("read_file", "f"), "UNAVAILABLE: the root of [actions.a] cannot be opened: no such file or directory")
	if _, err := y.EraseTenant("t"); err == nil {
		t.Error("erased what is gone")
	}
	if err := os.WriteFile(y.dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := NewLocks().OpenDirectory(y.dir, Options{}); err == nil {
		t.Error("a file is no root")
	}
	if _, err := NewLocks().OpenDirectory(y.dir+".none", Options{}); err == nil {
		t.Error("what is not there is no root")
	}
}

// A file that grows while it is read is bounded by MaxFile.
func TestGrowingFile(t *testing.T) {
	t.Parallel()
	y := newFixture(t, Options{Shared: true, MaxFile: 1 << 20, MaxTotal: 1})
	y.put("log", "")
	stop, grown := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(grown)
		f, err := os.OpenFile(filepath.Join(y.dir, "log"), os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = f.Close() }()
		for size := 0; size < 64<<20; size += 1 << 16 {
			if _, err := f.Write(bytes.Repeat([]byte("x"), 1<<16)); err != nil {
				t.Error(err)
			}
			select {
			case <-stop:
				return
			default:
			}
		}
	}()
	for range 200 {
		got := y.at("read_file", "log")
		if len(got) > 1<<20+2 || !strings.HasPrefix(got, `"`) && !strings.HasPrefix(got, "LIMIT: ") {
			t.Errorf("read %d bytes: %.60s", len(got), got)
		}
		if strings.HasPrefix(got, "LIMIT: ") {
			break
		}
	}
	close(stop)
	<-grown
}

func FuzzPath(f *testing.F) {
	for _, p := range []string{".", "a/b", "../x", "/x", "a/./b", "a//b", "a\x00", `a\b`, ".skep-part-x", "．．/x"} {
		f.Add(p)
	}
	f.Fuzz(func(t *testing.T, p string) {
		got, fault := cleanPath(p)
		if fault != nil {
			return
		}
		if !filepath.IsLocal(got) || got != filepath.ToSlash(filepath.Clean(got)) {
			t.Errorf("%q became %q", p, got)
		}
		if again, fault := cleanPath(got); fault != nil || again != got {
			t.Errorf("%q, then %q: %v", got, again, fault)
		}
	})
}

func FuzzArgs(f *testing.F) {
	f.Add([]byte(`{"path":"a","content":"x","encoding":"base64"}`))
	f.Add([]byte(`{"path":1}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		a, fault := parseArgs(raw)
		if fault == nil && !filepath.IsLocal(a.Path) {
			t.Errorf("%q", a.Path)
		}
	})
}
