package sqlite

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

func TestOpenMakesPrivateFiles(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a", ".skep")
	s := openTest(t, dir)
	if err := s.Commit(t.Context(), testStep("t1", 1)); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]fs.FileMode{
		"": 0o700, fileName: 0o600, fileName + "-wal": 0o600, fileName + "-shm": 0o600, lockName: 0o600, ignoreName: 0o600,
	} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Error(err)
		} else if got := info.Mode().Perm(); got != want {
			t.Errorf("mode of %q is %#o, want %#o", name, got, want)
		}
	}
	if b, err := os.ReadFile(filepath.Join(dir, ignoreName)); string(b) != "*\n" || err != nil {
		t.Errorf("%s holds %q, %v", ignoreName, b, err)
	}
}

// The engine removes its log when the last connection ends, and no sooner: a store that is
// closed holds no file open.
func TestCloseEndsConnections(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openTest(t, dir)
	if err := s.Commit(t.Context(), testStep("t1", 1)); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, suffix := range []string{"-wal", "-shm"} {
		if _, err := os.Stat(filepath.Join(dir, fileName+suffix)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s after Close: %v; a connection is open", fileName+suffix, err)
		}
	}
}

// A path is no URL: what would end one in a URL is part of the name.
func TestOpenOddPath(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a?b#c%20d é")
	openTest(t, dir)
	if _, err := os.Stat(filepath.Join(dir, fileName)); err != nil {
		t.Error(err)
	}
}

func TestOpenRefusesSharedDirectory(t *testing.T) {
	t.Parallel()
	for _, mode := range []fs.FileMode{0o770, 0o702, 0o1777} {
		dir := t.TempDir()
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		wantOpenError(t, dir, "others could replace", "chmod go-w")
	}
}

func TestOpenRefusesNoDirectory(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	wantOpenError(t, file, "not a directory")
	wantOpenError(t, filepath.Join(file, "sub", "dir"), "not a directory")
}

// Neither a link to nowhere nor a file system that takes no directories is tried
// again and again.
func TestOpenRefusesNowhere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	if err := os.Symlink(filepath.Join(dir, "gone"), link); err != nil {
		t.Fatal(err)
	}
	for _, data := range []string{link, filepath.Join(link, "x"), filepath.Join(link, "x", "y")} {
		wantOpenError(t, data, link+" is a link to "+filepath.Join(dir, "gone")+", which is not there")
	}
	wantOpenError(t, "/proc/nope", "mkdir /proc/nope")
	wantOpenError(t, "/proc/nope/x", "mkdir /proc/nope")
	openTest(t, dir+"/a/b/../c")
}

func TestOpenRefusesSecondHost(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openTest(t, dir)
	wantOpenError(t, dir, "in use by process "+strconv.Itoa(os.Getpid()), "stop it first")
	if err := s.Commit(t.Context(), testStep("t1", 1)); err != nil {
		t.Errorf("Commit after the refusal = %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	openTest(t, dir)
}

func TestOpenRefusesForeignFile(t *testing.T) {
	t.Parallel()
	for name, make := range map[string]func(t *testing.T, dir string){
		"text": func(t *testing.T, dir string) {
			write(t, dir, []byte(strings.Repeat("this is no database\n", 500)))
		},
		"tables of another program": func(t *testing.T, dir string) {
			exec(t, openRaw(t, dir), "CREATE TABLE t (a)")
		},
		"id of another program": func(t *testing.T, dir string) {
			exec(t, openRaw(t, dir), "PRAGMA application_id = 7")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			make(t, dir)
			before, err := os.ReadFile(filepath.Join(dir, fileName))
			if err != nil {
				t.Fatal(err)
			}
			wantOpenError(t, dir, "choose another data directory")
			wantOpenError(t, dir, "choose another data directory") // not "in use": the lock is free again
			if after, err := os.ReadFile(filepath.Join(dir, fileName)); !bytes.Equal(before, after) || err != nil {
				t.Errorf("the file was changed, %v", err)
			}
		})
	}
}

func TestOpenDamagedFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := openTest(t, dir).Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, fileName)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	// The schema page survives, all else is gone.
	for i := 4096; i < len(b); i++ {
		b[i] = 0xa5
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	wantOpenError(t, dir, "the database is damaged", "backup")
}

func TestOpenReports(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openTest(t, dir)
	for _, task := range []string{"t1", "t2", "t3"} {
		if err := s.Commit(t.Context(), testStep(task, 1)); err != nil {
			t.Fatal(err)
		}
	}
	ended := testStep("t3", 2)
	ended.Task.State = "completed"
	if err := s.Commit(t.Context(), ended); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if hasLog(s.path) {
		t.Error("Close left a log behind")
	}

	var out bytes.Buffer
	s, err := Open(t.Context(), dir, Options{Logger: slog.New(slog.NewTextHandler(&out, nil))})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"epoch=2", "unclean=false", "tasks_running=2", "rows_pending=0"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("log is %q, want it to say %q", out.String(), want)
		}
	}
}

// The promise of durability rests on these, so they are read back.
func TestOpenSettings(t *testing.T) {
	t.Parallel()
	s := openTest(t, t.TempDir())
	ctx := context.Background()
	for pragma, want := range map[string]string{
		"synchronous": "2", "fullfsync": "1", "journal_mode": "wal", "application_id": strconv.Itoa(applicationID),
		"journal_size_limit": strconv.Itoa(logBytes), "busy_timeout": strconv.Itoa(busyMS),
		"cache_spill": strconv.Itoa(spillPages),
	} {
		var got string
		if err := s.writer.conn.QueryRowContext(ctx, "PRAGMA "+pragma).Scan(&got); err != nil || got != want {
			t.Errorf("%s = %q, %v, want %q", pragma, got, err, want)
		}
	}
	if _, err := s.readers.db.ExecContext(ctx, "DELETE FROM tasks"); err == nil {
		t.Error("a reader can write")
	}
	if _, err := s.readers.db.ExecContext(ctx, "PRAGMA query_only = 0; DELETE FROM tasks"); err == nil {
		t.Error("a reader can give itself the right to write")
	}
}

func write(t *testing.T, dir string, content []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, fileName), content, 0o600); err != nil {
		t.Fatal(err)
	}
}
