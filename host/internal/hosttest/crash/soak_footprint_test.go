package crash_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"

	"skep/host/internal/hosttest"
)

// What a host may hold more after the last part of a soak than before it, in bytes of memory,
// goroutines, and files with connections. Its data may grow by soakQuestion bytes for each question,
// and by soakLogs for the database's own log.
const (
	soakMemory     = 48 << 20
	soakGoroutines = 16
	soakFiles      = 16
	soakQuestion   = 64 << 10
	soakLogs       = 32 << 20
)

// footprint is what a host holds: bytes of memory and of its data directory, goroutines, and files
// with connections.
type footprint struct {
	memory, data      int64
	goroutines, files int
}

// String implements [fmt.Stringer].
func (f footprint) String() string {
	return fmt.Sprintf("%d MiB of memory, %d goroutines, %d files, %d MiB of data", f.memory>>20, f.goroutines, f.files, f.data>>20)
}

// footprint is a line about both hosts.
func (s *soak) footprint() string {
	hive, _ := footprintOf(s.e.Hive)
	depot, _ := footprintOf(s.e.Depot)
	return fmt.Sprintf("hive: %v\ndepot: %v", hive, depot)
}

var (
	memoryLine     = regexp.MustCompile(`VmRSS:\s+(\d+) kB`)
	goroutinesLine = regexp.MustCompile(`(?m)^skep_goroutines (\d+)`)
)

// footprintOf looks at a host from outside. It fails while the host is down.
func footprintOf(p *hosttest.Process) (f footprint, err error) {
	proc := filepath.Join("/proc", strconv.Itoa(p.ID()))
	status, err := os.ReadFile(filepath.Join(proc, "status"))
	if err != nil {
		return f, err
	}
	kib, err := number(memoryLine, status)
	if err != nil {
		return f, err
	}
	files, err := os.ReadDir(filepath.Join(proc, "fd"))
	if err != nil {
		return f, err
	}
	rsp, err := http.Get("http://" + p.Admin() + "/metrics")
	if err != nil {
		return f, err
	}
	defer rsp.Body.Close()
	page, err := io.ReadAll(rsp.Body)
	if err != nil {
		return f, err
	}
	goroutines, err := number(goroutinesLine, page)
	f.memory, f.files, f.goroutines = kib<<10, len(files), int(goroutines)
	_ = filepath.WalkDir(p.Data(), func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil { // else it was a temporary one
				f.data += info.Size()
			}
		}
		return nil
	})
	return f, err
}

// number is what a line has.
func number(line *regexp.Regexp, text []byte) (int64, error) {
	found := line.FindSubmatch(text)
	if found == nil {
		return 0, errors.New("there is no line " + line.String())
	}
	return strconv.ParseInt(string(found[1]), 10, 64)
}

// footprints measures both hosts. The result is by name.
func (s *soak) footprints(when string) map[string]footprint {
	s.t.Helper()
	list := map[string]footprint{}
	for name, p := range s.hosts() {
		hosttest.Eventually(s.t, name+" tells what it holds", func() bool {
			f, err := footprintOf(p)
			list[name] = f
			return err == nil
		})
		s.t.Logf("%s %s: %v", name, when, list[name])
	}
	return list
}

// checkFootprints compares both hosts at rest with what they held before.
func (s *soak) checkFootprints(before map[string]footprint, questions int64) {
	for name, p := range s.hosts() {
		was := before[name]
		hosttest.Eventually(s.t, name+" has let go of its connections", func() bool {
			f, err := footprintOf(p)
			return err == nil && f.goroutines <= was.goroutines+soakGoroutines && f.files <= was.files+soakFiles
		})
	}
	for name, f := range s.footprints("at rest after it") {
		was := before[name]
		if f.memory > was.memory+soakMemory {
			s.t.Errorf("%s holds %v, and held %v", name, f, was)
		}
		if grown := f.data - was.data; grown > questions*soakQuestion+soakLogs {
			s.t.Errorf("the data of %s grew by %d bytes for %d questions", name, grown, questions)
		}
	}
}
