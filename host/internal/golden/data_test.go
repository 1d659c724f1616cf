package golden_test

import (
	"archive/tar"
	"compress/gzip"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	_ "modernc.org/sqlite"
)

var updateData = flag.Bool("update-data", false, "make the data directory in testdata anew")

// archive holds the data directory of an earlier build.
const archive = "testdata/data/skep.tar.gz"

// recorded are the bodies of the tasks of the data directory, all of one user.
var recorded = []struct {
	task string
	code int
	body string
}{
	{"all", 0, `[["set",{"value":{"n":1}}],["random",{}],["wall",{}],["clock",{}],["sleep",{"ms":20}],["log",{"level":1,"message":"hi"}],
		["call",{"op":21,"request":{"scope":"task","key":"a","value":"x"}}],["call",{"op":24,"request":{"scope":"task","key":"b","expect":null,"value":"y"}}],
		["call",{"op":20,"request":{"scope":"task","key":"b"}}],["blob_put",{"text":"kept"}],["action",{"name":"echo","args":{"n":1}}],["action",{"name":"absent","args":{}}],
		["emit_progress",{"text":"half","fraction":0.5}],["metric",{"name":"seen","value":2}],["tail",{}],["send_request",{"target":"nobody","subject":"s","body":"b"}],
		["send_request",{"target":"math","subject":"s","body":"[[\"look\",{}],[\"send_response\",{\"target\":\"boss\",\"subject\":\"re\",\"body\":\"[[\\\"state\\\",{}],[\\\"history\\\",{\\\"after\\\":0,\\\"limit\\\":50}],[\\\"task_complete\\\",{\\\"finish_message\\\":\\\"42\\\"}]]\"}]]"}],["await_message",{}]]`},
	{"failed", 1, `[["random",{}],["fail",{"code":1,"message":"it does not go on"}]]`},
	{"paused", 0, `[["random",{}],["action",{"name":"confirm","args":{"order":7}}],["task_complete",{"finish_message":"confirmed"}]]`},
}

// makeData records the tasks on a new data directory and packs it.
func makeData(t *testing.T) {
	s := newShell(t, "data")
	h := s.serve("-c", s.file("swarm.toml"), "--data", s.file("data"))
	s.write("alice", variables["ALICE_KEY"])
	s.write("ada", variables["ADA_KEY"])
	for _, r := range recorded {
		if code, stdout, stderr := s.run("send", "--url", h.url, "--token-file", s.file("alice"), "--task", r.task, r.body); code != r.code {
			t.Fatalf("%s: exit code %d, want %d\n%s%s", r.task, code, r.code, stdout, stderr)
		}
	}
	for _, args := range [][]string{
		{"token", "create", "--role", "user", "--id", "bob", "--label", "laptop"},
		{"peer", "add", "yard", "http://127.0.0.1:9"},
	} {
		if code, _, stderr := s.run(append(args, "--url", h.url, "--token-file", s.file("ada"))...); code != 0 {
			t.Fatalf("%v: exit code %d, %s", args, code, stderr)
		}
	}
	h.stop()
	if err := pack(s.file("data")); err != nil {
		t.Fatal(err)
	}
}

// A host opens what an earlier build has written, shows its tasks, goes on with the
// one that is paused, and repeats every recorded turn.
func TestData(t *testing.T) {
	t.Parallel()
	if *updateData {
		makeData(t)
	}
	s := newShell(t, "data")
	if err := unpack(s.dir); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	show := func(args ...string) {
		t.Helper()
		code, stdout, stderr := s.run(args...)
		if i := len(args) - 4; i > 0 && args[i] == "--url" {
			args = args[:i]
		}
		fmt.Fprintf(&b, "\n$ skep %s\n%s-- exit code %d, stderr --\n%s", s.scrub(strings.Join(args, " ")), dated(stdout), code, dated(stderr))
	}
	offline := []string{"-c", s.file("swarm.toml"), "--data", s.file("data")}
	show(append([]string{"audit", "list", "-o", "json"}, offline...)...)
	h := s.serve(offline...)
	s.write("alice", variables["ALICE_KEY"])
	s.write("ada", variables["ADA_KEY"])
	as := func(who string, args ...string) {
		t.Helper()
		show(append(args, "--url", h.url, "--token-file", s.file(who))...)
	}
	as("alice", "task", "list", "-o", "json")
	for _, r := range recorded {
		as("alice", "task", "show", r.task, "-o", "json")
	}
	as("ada", "token", "list", "-o", "json")
	as("ada", "peer", "list", "-o", "json")
	h.stop()
	if runtime.GOARCH == "amd64" { // where it was recorded
		for _, r := range recorded {
			show(append([]string{"replay", r.task, "-o", "json"}, offline...)...)
			show(append([]string{"replay", r.task, "--calls"}, offline...)...)
		}
	}
	show(append([]string{"tenant", "list", "-o", "json"}, offline...)...)
	golden(t, "data/shown.txt", b.String())
	s.resume()
}

// resume answers what the paused task waits for.
func (s shell) resume() {
	s.t.Helper()
	h := s.serve("-c", s.file("swarm.toml"), "--data", s.file("data"))
	code, stdout, stderr := s.run("task", "resume", "paused", "--result", `{"content":"yes"}`, "--url", h.url, "--token-file", s.file("alice"))
	if code != 0 || stdout != "confirmed\n" {
		s.t.Errorf("resume: exit code %d, %q, %s", code, stdout, stderr)
	}
}

var dates = regexp.MustCompile(`("state": "valid|"state": "expired|"(?:error|last_seen|latency)": .*)`)

// dated takes out what the time of the test decides, and whether a swarm that is not
// there has been looked for already.
func dated(text string) string { return dates.ReplaceAllString(text, "…") }

// The database of a new host, as text. It is also what an older one becomes.
func TestSchema(t *testing.T) {
	t.Parallel()
	fresh, old := newShell(t, "data"), newShell(t, "data")
	if err := unpack(old.dir); err != nil {
		t.Fatal(err)
	}
	for _, s := range []shell{fresh, old} {
		s.serve("-c", s.file("swarm.toml"), "--data", s.file("data")).stop()
		golden(t, "data/schema.sql", s.schema())
	}
}

func (s shell) schema() string {
	s.t.Helper()
	db, err := sql.Open("sqlite", "file:"+s.file("data/skep.db")+"?mode=ro")
	if err != nil {
		s.t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.QueryContext(s.t.Context(), "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY type DESC, name")
	if err != nil {
		s.t.Fatal(err)
	}
	defer rows.Close()
	var b strings.Builder
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			s.t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s;\n", text)
	}
	if err := rows.Err(); err != nil {
		s.t.Fatal(err)
	}
	for _, pragma := range []string{"page_size", "auto_vacuum", "journal_mode", "application_id", "user_version"} {
		var text string
		if err := db.QueryRowContext(s.t.Context(), "PRAGMA "+pragma).Scan(&text); err != nil {
			s.t.Fatal(err)
		}
		fmt.Fprintf(&b, "PRAGMA %s = %s;\n", pragma, text)
	}
	return b.String()
}

func pack(dir string) (err error) {
	f, err := os.Create(archive)
	if err != nil {
		return err
	}
	z, err := gzip.NewWriterLevel(f, gzip.BestCompression)
	if err != nil {
		return err
	}
	w := tar.NewWriter(z)
	defer func() { err = errors.Join(err, w.Close(), z.Close(), f.Close()) }()
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(path, "-shm") {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(filepath.Dir(dir), path)
		if err != nil {
			return err
		}
		if err := w.WriteHeader(&tar.Header{Name: filepath.ToSlash(name), Mode: 0o600, Size: int64(len(raw))}); err != nil {
			return err
		}
		_, err = w.Write(raw)
		return err
	})
}

func unpack(dir string) error {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	for r := tar.NewReader(z); ; {
		head, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		file := filepath.Join(dir, filepath.FromSlash(head.Name))
		raw, err := io.ReadAll(r)
		if err == nil {
			err = errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, raw, 0o600))
		}
		if err != nil {
			return err
		}
	}
}
