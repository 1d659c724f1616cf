package pathcheck

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// most is more than any file of these tests holds.
const most = 1 << 10

// tree makes a directory that is good as far as this process decides, and a
// file in it.
func tree(t *testing.T) (dir, file string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "modules")
	must(t, os.Mkdir(dir, 0o755))
	file = filepath.Join(dir, "calc.wasm")
	must(t, os.WriteFile(file, []byte("bytes"), 0o644))
	return dir, file
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// refused demands an *Error that has each text.
func refused(t *testing.T, err error, texts ...string) {
	t.Helper()
	var weak *Error
	if !errors.As(err, &weak) {
		t.Fatalf("got %v, want a refusal with %q", err, texts)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%q does not say %q", err, text)
		}
	}
}

func TestReadFile(t *testing.T) {
	t.Parallel()
	dir, file := tree(t)
	if raw, err := ReadFile(file, most); err != nil || string(raw) != "bytes" {
		t.Errorf("%q, %v", raw, err)
	}
	_, err := ReadFile(dir, most)
	if err == nil || !strings.Contains(err.Error(), "is not a regular file: it is a directory") {
		t.Errorf("a directory: %v", err)
	}
	if _, err := ReadFile(filepath.Join(dir, "none"), most); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if _, err := ReadFile(filepath.Join(file, "below"), most); err == nil || !strings.Contains(err.Error(), "is not a directory") {
		t.Errorf("below a file: %v", err)
	}
	pipe := filepath.Join(dir, "pipe")
	must(t, syscall.Mkfifo(pipe, 0o644))
	if _, err := ReadFile(pipe, most); err == nil || !strings.Contains(err.Error(), "is not a regular file: it is a pipe") {
		t.Errorf("a pipe: %v", err)
	}
}

func TestWritableByOthers(t *testing.T) {
	t.Parallel()
	dir, file := tree(t)
	up := filepath.Dir(dir)

	must(t, os.Chmod(file, 0o646))
	_, err := ReadFile(file, most)
	refused(t, err, "others could replace "+file, file+" has mode 0646", "run chmod go-w "+file)
	must(t, os.Chmod(file, 0o644))

	must(t, os.Chmod(dir, 0o777))
	must(t, os.Chmod(up, 0o757))
	_, err = ReadFile(file, most)
	refused(t, err, up+" has mode 0757 (and 1 more)", "run chmod go-w "+up+" "+dir)
	refused(t, Dir(dir), "chmod go-w "+up+" "+dir)
	refused(t, Dir(filepath.Join(dir, "not", "yet")), "chmod go-w "+up+" "+dir)

	must(t, os.Chmod(up, 0o755))
	must(t, os.Chmod(dir, 0o775)) // for our own group, if that is private
	refused(t, Dir(dir), "chmod go-w "+dir)
	must(t, os.Chmod(dir, 0o777|fs.ModeSticky))
	if _, err := ReadFile(file, most); err != nil {
		t.Errorf("our file in a sticky directory: %v", err)
	}
	if err := Dir(filepath.Join(dir, "new")); err != nil {
		t.Errorf("a new directory in a sticky one: %v", err)
	}
	refused(t, Dir(dir), dir+" has mode 01777", "choose a directory of your own")
}

// What counts is where the links lead, and where they lie.
func TestLinks(t *testing.T) {
	t.Parallel()
	dir, file := tree(t)
	open, _ := tree(t)
	must(t, os.Chmod(open, 0o777))
	other := t.TempDir()

	direct := filepath.Join(other, "direct")
	must(t, os.Symlink(file, direct))
	through := filepath.Join(open, "through")
	must(t, os.Symlink(file, through))
	first := filepath.Join(other, "first")
	must(t, os.Symlink(open, first))
	relative := filepath.Join(other, "relative")
	back, err := filepath.Rel(other, dir)
	must(t, err)
	must(t, os.Symlink(back, relative))
	loop := filepath.Join(other, "loop")
	must(t, os.Symlink(loop, loop))

	for _, good := range []string{direct, filepath.Join(relative, "calc.wasm")} {
		if raw, err := ReadFile(good, most); err != nil || string(raw) != "bytes" {
			t.Errorf("%s: %q, %v", good, raw, err)
		}
	}
	_, err = ReadFile(through, most)
	refused(t, err, open+" has mode 0777")
	_, err = ReadFile(filepath.Join(first, "calc.wasm"), most)
	refused(t, err, open+" has mode 0777", first)
	if _, err = ReadFile(loop, most); err == nil || !strings.Contains(err.Error(), "leads through more than 40 symbolic links") {
		t.Errorf("a loop: %v", err)
	}
}

func TestJudgement(t *testing.T) {
	t.Parallel()
	const me, she = 1000, 1001
	at := func(owner, group int, mode fs.FileMode) place {
		return place{path: "/d", owner: owner, group: group, mode: mode, sticky: mode&fs.ModeSticky != 0}
	}
	in := func(p place) place { p.within = true; return p }
	tests := []struct {
		name          string
		user          user
		p             place
		final         bool
		open, foreign bool
	}{
		{"mine", me, at(me, me, 0o755), true, false, false},
		{"root's", me, at(0, 0, 0o755), true, false, false},
		{"hers", me, at(she, she, 0o755), false, false, true},
		{"for all", me, at(me, me, 0o757), true, true, false},
		{"my private group", me, at(me, me, 0o775), true, false, false},
		{"a shared group", me, at(me, 100, 0o775), true, true, false},
		{"root's, for my group", me, at(0, me, 0o775), true, false, false},
		{"root's, for the group root", me, at(0, 0, 0o775), true, false, false},
		{"root's, for a shared group", me, at(0, 100, 0o775), false, true, false},
		{"sticky", me, at(0, 0, 0o777|fs.ModeSticky), false, false, false},
		{"hers in a sticky one", me, in(at(she, she, 0o755)), false, false, true},
		{"hers further up, for root", 0, at(she, she, 0o775), false, false, false},
		{"hers for a shared group, for root", 0, at(she, 100, 0o775), false, true, false},
		{"hers, for root", 0, at(she, she, 0o755), true, false, true},
		{"hers in a sticky one, for root", 0, in(at(she, she, 0o755)), false, false, true},
	}
	for _, tt := range tests {
		if w := tt.user.weak(tt.p, tt.final); w.Open != tt.open || w.Foreign != tt.foreign {
			t.Errorf("%s: %+v, want open %v, foreign %v", tt.name, w, tt.open, tt.foreign)
		}
	}
}

// A stranger's process sees our tree as foreign, unless it is root's.
func TestAnotherUser(t *testing.T) {
	t.Parallel()
	dir, file := tree(t)
	stranger := user(os.Geteuid() + 12345)
	link := filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink(file, link))
	if os.Geteuid() == 0 {
		if _, err := stranger.readFile(file, most); err != nil {
			t.Errorf("root's file: %v", err)
		}
		must(t, os.Chown(file, 4242, 4242))
		must(t, os.Lchown(link, 4242, 4242))
		_, err := current().readFile(file, most)
		refused(t, err, file+" belongs to user 4242; run skep as user 4242, or keep a copy in a directory of your own")
		return
	}
	_, err := stranger.readFile(file, most)
	refused(t, err, "belongs to user")
	refused(t, stranger.dir(dir), "belongs to user")
}

// A link that a stranger has put into a directory for all is not followed.
func TestLinkInStickyDirectory(t *testing.T) {
	t.Parallel()
	_, file := tree(t)
	shared := filepath.Join(t.TempDir(), "shared")
	must(t, os.Mkdir(shared, 0o755))
	must(t, os.Chmod(shared, 0o777|fs.ModeSticky))
	link := filepath.Join(shared, "calc.wasm")
	must(t, os.Symlink(file, link))
	if _, err := ReadFile(link, most); err != nil {
		t.Errorf("our own link: %v", err)
	}
	w, err := current().walk(link)
	must(t, err)
	if len(w.links) != 1 {
		t.Fatalf("the way has %d links in sticky places", len(w.links))
	}
	w.links[0].owner = os.Geteuid() + 12345
	refused(t, w.verdict(link), link+" belongs to user")
}

func TestQuoted(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"/srv/a-b_c.1": "/srv/a-b_c.1", "/my files": "'/my files'", "/it's": `'/it'\''s'`, "/a;b": "'/a;b'",
	} {
		if got := Quote(path); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}
