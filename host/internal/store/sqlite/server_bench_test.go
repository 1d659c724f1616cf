package sqlite_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"skep/host/internal/store/pgtest"
	"skep/host/internal/store/sqlite"
)

// BenchmarkServer measures the durable steps of a trivial task on both engines in turns, so
// that they see the same disk: of_file is the server's steps a second to the file's, cpu/file
// its CPU, its own processes' included, to the file's.
func BenchmarkServer(b *testing.B) {
	for _, writers := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			file := newLane(b, false, nil)
			s, err := sqlite.OpenServer(b.Context(), sqlite.Server{DSN: pgtest.Schema(b)}, sqlite.Options{})
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { s.Close() })
			server := &lane{store: s}
			var below time.Duration
			for left := b.N; left > 0; left -= turnTasks {
				n := min(left, turnTasks)
				file.run(b, writers, n)
				began := childrenTime(b)
				server.run(b, writers, n)
				below += childrenTime(b) - began
			}
			server.cpu += below
			steps, groups := s.Stats()
			b.ReportMetric(float64(steps)/float64(groups), "steps/group")
			b.ReportMetric(file.took.Seconds()/server.took.Seconds(), "of_file")
			b.ReportMetric(server.cpu.Seconds()/file.cpu.Seconds(), "cpu/file")
			b.ReportMetric(perTask(file, b.N), "file_cpu_us/task")
			b.ReportMetric(perTask(server, b.N), "cpu_us/task")
			b.ReportMetric(float64(below.Microseconds())/float64(b.N), "server_cpu_us/task")
		})
	}
}

// tick is the unit of times in /proc, https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html.
const tick = 10 * time.Millisecond

// childrenTime is what the processes that this one has started, and theirs, have used.
func childrenTime(b *testing.B) (sum time.Duration) {
	b.Helper()
	type process struct {
		parent string
		used   time.Duration
	}
	all := map[string]process{}
	paths, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(paths) == 0 {
		b.Skip("CPU of other processes is read in /proc")
	}
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		_, text, _ := strings.Cut(string(raw), ") ")
		fields := strings.Fields(text) // the third and those behind it
		user, _ := strconv.Atoi(fields[11])
		system, _ := strconv.Atoi(fields[12])
		all[filepath.Base(filepath.Dir(path))] = process{fields[1], time.Duration(user+system) * tick}
	}
	own := strconv.Itoa(os.Getpid())
	for pid, p := range all {
		for p.parent != own && p.parent != "" {
			p.parent = all[p.parent].parent
		}
		if p.parent == own && pid != own {
			sum += p.used
		}
	}
	return sum
}
