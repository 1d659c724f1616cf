package cli

import (
	"context"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"skep/host/internal/diagnosis"
	"skep/host/internal/guests"
)

// tree is every file below a directory with its mode, time and content, but the index of
// SQLite's readers and an empty log beside it (https://www.sqlite.org/wal.html#read_only_databases).
func (p *patient) tree() (all string) {
	p.t.Helper()
	p.must(filepath.WalkDir(p.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil || e.Name() == "skep.db-shm" || e.Name() == "skep.db-wal" && info.Size() == 0 {
			return err
		}
		all += fmt.Sprintf("%s %v", path, info.Mode())
		if !e.IsDir() {
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			all += fmt.Sprintf(" %v %x", info.ModTime(), text)
		}
		all += "\n"
		return nil
	}))
	return all
}

// TestDoctorChangesNothing: the files of a host are as they were, and no directory is made.
func TestDoctorChangesNothing(t *testing.T) {
	t.Parallel()
	p := healthyPatient(t)
	p.must(os.RemoveAll(p.cache))
	check := func(about string, want ...string) {
		t.Helper()
		before := p.tree()
		var ids []string
		found, code := p.diagnose()
		for _, f := range found {
			ids = append(ids, f.ID)
		}
		if !slices.Equal(ids, want) || code != exitOK {
			t.Errorf("%s: %d %+v", about, code, found)
		}
		if after := p.tree(); after != before {
			t.Errorf("%s: before %d bytes of\n%.3000s\nafter %d of\n%.3000s", about, len(before), before, len(after), after)
		}
	}
	check("without a cache")
	p.must(os.RemoveAll(p.data))
	check("without data", diagnosis.DataMissing)
}

// TestDoctorOfRunningHost: nothing is wrong with a host because it runs.
func TestDoctorOfRunningHost(t *testing.T) {
	t.Parallel()
	p := healthyPatient(t)
	public, admin := p.freeAddress(), p.freeAddress()
	p.write("swarm.toml", patientText+"[server]\nlisten = \""+public+"\"\nadmin_listen = \""+admin+"\"\n[[auth.keys]]\nid = \"op\"\nrole = \"operator\"\nkey = \"env::OPERATOR\"\n")
	stop := p.serve("http://" + admin + "/readyz")
	if found, code := p.diagnose(); len(found) > 0 || code != exitOK {
		t.Errorf("while it runs: %d %+v", code, found)
	}
	stop()
	if found, code := p.diagnose(); len(found) > 0 || code != exitOK {
		t.Errorf("after it ran: %d %+v", code, found)
	}
}

// freeAddress is an address where nobody listens.
func (p *patient) freeAddress() string {
	p.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	p.must(err)
	defer l.Close() // nothing was served
	return l.Addr().String()
}

// serve runs the host until it is ready, and returns how it is stopped.
func (p *patient) serve(ready string) (stop func()) {
	p.t.Helper()
	ctx, cancel := context.WithCancel(p.t.Context())
	s := newShell(p.vars, "serve", "-c", p.file, "--data", p.data)
	s.Bundled, s.Cache = inProgram{guests.Bytes(p.t, "plugins/script")}, p.cache
	done := make(chan int, 1)
	go func() { done <- Main(ctx, s.Env) }()
	p.t.Cleanup(cancel)
	for {
		rsp, err := http.Get(ready)
		if err == nil {
			_ = rsp.Body.Close() // its status is all
		}
		if err == nil && rsp.StatusCode == http.StatusOK {
			return func() { cancel(); <-done }
		}
		select {
		case code := <-done:
			p.t.Fatalf("serve: %d\n%s", code, s.stderr.String())
		case <-time.After(10 * time.Millisecond):
		}
	}
}
