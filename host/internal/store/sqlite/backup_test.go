package sqlite

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"skep/host/internal/store/durabletest"
	"skep/host/internal/store/keyring"
)

// backedUp returns a backup, the keyring beside it, and what it exports.
func backedUp(t *testing.T) (backup, ring, want string) {
	t.Helper()
	dir := t.TempDir()
	s := openSealed(t, dir, &keyring.Options{})
	plant(t, s, "acme", "t1", planted)
	backup = filepath.Join(t.TempDir(), "backup")
	mustDo(t, s.Backup(t.Context(), backup))
	want = export(t, s, "acme")
	plant(t, s, "acme", "later", "later text")
	return backup, filepath.Join(dir, keyringName), want
}

func TestRestore(t *testing.T) {
	t.Parallel()
	backup, ring, want := backedUp(t)
	info, err := os.Stat(backup)
	mustDo(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode of the backup is %#o", info.Mode().Perm())
	}
	wantFiles(t, filepath.Dir(backup), filepath.Base(backup))
	dir := filepath.Join(t.TempDir(), "new", ".skep")
	mustDo(t, Restore(t.Context(), backup, dir, nil))
	refusedWith(t, dir, &keyring.Options{}, "missing")
	b, err := os.ReadFile(ring)
	mustDo(t, err)
	mustDo(t, os.WriteFile(filepath.Join(dir, keyringName), b, 0o600))
	s := openSealed(t, dir, &keyring.Options{})
	if got := export(t, s, "acme"); got != want {
		t.Errorf("restored export is %q, want %q", got, want)
	}
	wantCounted(t, s)
	plant(t, s, "acme", "t2", "goes on")
}

// When a copy has its name, a power cut takes neither of them away.
func TestBackupLasts(t *testing.T) {
	t.Parallel()
	s, file := openTest(t, t.TempDir()), filepath.Join(t.TempDir(), "backup")
	mustDo(t, s.Commit(t.Context(), testStep("t", 1)))
	durabletest.Trace(t, func() error { return s.Backup(t.Context(), file) }).Want(t, file)
	dir := filepath.Join(t.TempDir(), "new", "data")
	durabletest.Trace(t, func() error { return Restore(t.Context(), file, dir, nil) }).Want(t, filepath.Join(dir, fileName))
	// The engine syncs the copies that it makes: only a file of another writer shows the sync of nameFile.
	part, named := filepath.Join(t.TempDir(), "part"), filepath.Join(t.TempDir(), "named")
	mustDo(t, os.WriteFile(part, []byte("not synced"), 0o600))
	durabletest.Trace(t, func() error { return nameFile(part, named) }).Want(t, named)
}

func wantRestoreError(t *testing.T, backup, dir string, words ...string) {
	t.Helper()
	err := Restore(t.Context(), backup, dir, nil)
	if err == nil {
		t.Fatalf("Restore(%s, %s) succeeded", backup, dir)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("Restore() = %v, want it to say %q", err, w)
		}
	}
	switch filepath.Base(dir) {
	case "used":
	case "none": // what is no database is seen before a directory is made
		if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a directory is left behind: %v", err)
		}
	default:
		wantFiles(t, dir, ignoreName, lockName)
	}
}

func wantFiles(t *testing.T, dir string, want ...string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	mustDo(t, err)
	var names []string
	for _, e := range list {
		names = append(names, e.Name())
	}
	if !slices.Equal(names, want) {
		t.Errorf("%s holds %q, want %q", dir, names, want)
	}
}

func TestRestoreRefuses(t *testing.T) {
	t.Parallel()
	backup, _, _ := backedUp(t)
	whole, err := os.ReadFile(backup)
	mustDo(t, err)
	spoiled := func(name string, change func([]byte) []byte) string {
		path := filepath.Join(t.TempDir(), name)
		mustDo(t, os.WriteFile(path, change([]byte(string(whole))), 0o600))
		return path
	}
	fresh := func() string { return filepath.Join(t.TempDir(), "d") }
	nowhere, none := fresh(), filepath.Join(t.TempDir(), "none")
	if err := Restore(t.Context(), filepath.Join(t.TempDir(), "none"), nowhere, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Restore() of nothing = %v", err)
	}
	if _, err := os.Lstat(nowhere); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a directory is made for a backup that is not there: %v", err)
	}
	wantRestoreError(t, spoiled("empty", func([]byte) []byte { return nil }), none, "it is empty")
	wantRestoreError(t, spoiled("text", func([]byte) []byte { return []byte(strings.Repeat("no database ", 500)) }), none, "no database")
	wantRestoreError(t, spoiled("cut", func(b []byte) []byte { return b[:len(b)-4096] }), fresh(), "damaged")
	wantRestoreError(t, spoiled("noise", func(b []byte) []byte {
		for i := 3 * 4096; i < 6*4096; i++ {
			b[i] = 0xa5
		}
		return b
	}), fresh(), "damaged")

	foreign := t.TempDir()
	exec(t, openRaw(t, foreign), "CREATE TABLE t (a)")
	wantRestoreError(t, filepath.Join(foreign, fileName), fresh(), "another program")
	newer := spoiled("newer", func(b []byte) []byte { return b })
	exec(t, openRawFile(t, newer), "INSERT INTO versions VALUES (99, 0)")
	wantRestoreError(t, newer, fresh(), "version 99", "newer skep")

	used := filepath.Join(t.TempDir(), "used")
	s := openTest(t, used)
	wantRestoreError(t, backup, used, "in use")
	mustDo(t, s.Close())
	wantRestoreError(t, backup, used, "there already", "empty data directory")
}

// A restore reads regular files alone: a pipe would keep it waiting for ever, a device would
// fill the disk. It leaves no directory behind, and a copy ends with its context.
func TestRestoreReadsFilesOnly(t *testing.T) {
	t.Parallel()
	backup, _, _ := backedUp(t)
	dir := t.TempDir()
	pipe, link := filepath.Join(dir, "pipe"), filepath.Join(dir, "link")
	mustDo(t, syscall.Mkfifo(pipe, 0o600))
	mustDo(t, os.Symlink(backup, link))
	for file, want := range map[string]string{pipe: "a pipe", "/dev/zero": "device", dir: "directory", link: "symbolic link"} {
		to := filepath.Join(t.TempDir(), "d")
		if err := Restore(t.Context(), file, to, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", file, err, want)
		}
		if _, err := os.Lstat(to); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s leaves a directory behind: %v", file, err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	to := filepath.Join(t.TempDir(), "d")
	if err := Restore(ended, backup, to, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("Restore() that was cancelled = %v", err)
	}
	mustDo(t, Restore(t.Context(), backup, to, nil))
}

// A host of schema version 1 made this backup; it is migrated when it opens.
func TestRestoreOld(t *testing.T) {
	t.Parallel()
	old, dir := t.TempDir(), filepath.Join(t.TempDir(), "d")
	oldFile(t, old)
	mustDo(t, Restore(t.Context(), filepath.Join(old, fileName), dir, nil))
	wantOldTask(t, openTest(t, dir), "t1")
}

// Whatever a stranger's database would have the engine run is refused before it runs,
// beside a host and without one; and so is what the store did not write itself.
func TestForeignSchema(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change []string
		want   string
	}{
		"trigger": {[]string{"CREATE TRIGGER evil AFTER UPDATE ON meta BEGIN DELETE FROM versions; END"}, `its trigger "evil" is none of skep's`},
		"view":    {[]string{"ALTER TABLE tenants RENAME TO t2", "CREATE VIEW tenants AS SELECT * FROM t2"}, `is none of skep's`},
		"view that goes on for ever": {[]string{"DROP TABLE versions",
			"CREATE VIEW versions AS WITH RECURSIVE r(version) AS (SELECT 1 UNION ALL SELECT version FROM r) SELECT * FROM r"}, `its table "versions" is not as skep makes it`},
		"virtual table": {[]string{"CREATE VIRTUAL TABLE v USING fts5(a)"}, "is none of skep's"},
		"check": {[]string{"DROP TABLE kv", "CREATE TABLE kv (sid INTEGER NOT NULL, name BLOB NOT NULL, size INTEGER NOT NULL, value BLOB NOT NULL CHECK (length(randomblob(400000000)) > 0), PRIMARY KEY (sid, name)) STRICT, WITHOUT ROWID"},
			`its table "kv" is not as skep makes it`},
		"generated column": {[]string{"ALTER TABLE tenants ADD COLUMN more INTEGER AS (length(zeroblob(400000000)))"}, `its table "tenants" is not as skep makes it`},
		"index gone":       {[]string{"DROP INDEX tasks_by_age"}, `its index "tasks_by_age" is missing`},
		"version":          {[]string{"UPDATE versions SET version = -version"}, "its schema has the version -1"},
		"older version":    {[]string{"DELETE FROM versions WHERE version > 3"}, "is none of skep's"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			mustDo(t, openTest(t, dir).Close())
			file := openRaw(t, dir)
			for _, q := range append(c.change, "PRAGMA wal_checkpoint(TRUNCATE)") {
				exec(t, file, q)
			}
			mustDo(t, file.Close())
			wantRestoreError(t, filepath.Join(dir, fileName), filepath.Join(t.TempDir(), "d"), "not a skep store", c.want)
			wantOpenError(t, dir, "not a skep store", c.want)
			if _, err := OpenReader(t.Context(), dir, Options{}); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("OpenReader() = %v, want it to say %q", err, c.want)
			}
		})
	}
}

// Numbers and keys of the store that it did not write itself are no reason to write past
// other hosts, or with a key that everybody knows.
func TestForeignMeta(t *testing.T) {
	t.Parallel()
	for change, want := range map[string]string{
		"UPDATE meta SET value = 9223372036854775807 WHERE name = 'epoch'": "no epoch that can be used",
		"UPDATE meta SET value = 'one' WHERE name = 'epoch'":               "no epoch that can be used",
		"UPDATE meta SET value = x'' WHERE name = 'secret'":                "no secret that can be used",
		"UPDATE meta SET value = 5 WHERE name = 'secret'":                  "no secret that can be used",
		"UPDATE meta SET value = zeroblob(1000) WHERE name = 'secret'":     "no secret that can be used",
	} {
		dir := t.TempDir()
		mustDo(t, openTest(t, dir).Close())
		exec(t, openRaw(t, dir), change)
		wantOpenError(t, dir, want, "restore the data directory from a backup")
	}
	backup, _, _ := backedUp(t)
	exec(t, openRawFile(t, backup), "UPDATE meta SET value = 'known' WHERE name = 'secret'")
	wantRestoreError(t, backup, filepath.Join(t.TempDir(), "d"), "no secret that can be used")
}

// A definition that cannot be read says so, and hides no other.
func TestLoadedListsDamaged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openTest(t, dir)
	exec(t, openRaw(t, dir), "INSERT INTO loaded VALUES (x'61636d65', x'68697665', 1, x'', x'05'), (x'626f6c74', x'68697665', 1, x'', x'017b7d')")
	list, err := s.Loaded(t.Context())
	if err != nil || len(list) != 2 || list[0].Tenant != "acme" || !IsDamaged(list[0].Damaged) || list[1].Damaged != nil || string(list[1].Text) != "{}" {
		t.Errorf("Loaded() = %+v, %v", list, err)
	}
}

// A database that was copied while a host used it lacks what its log has.
func TestRestoreRefusesHalves(t *testing.T) {
	t.Parallel()
	backup, _, _ := backedUp(t)
	for _, suffix := range []string{"-wal", "-journal"} {
		mustDo(t, os.WriteFile(backup+suffix, []byte("log"), 0o600))
		wantRestoreError(t, backup, filepath.Join(t.TempDir(), "none"), backup+suffix+" lies beside it", "skep backup")
		mustDo(t, os.Remove(backup+suffix))
	}
	mustDo(t, Restore(t.Context(), backup, filepath.Join(t.TempDir(), "d"), nil))
}
