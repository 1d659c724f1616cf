package server

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"skep/host/internal/diskspace"
)

// A disk that is nearly full, or that cannot be asked, is warned of, and its free space is a metric.
func TestDisk(t *testing.T) {
	t.Parallel()
	of := func(free diskspace.Free, err error) freeSpace {
		return func(string) (diskspace.Free, error) { return free, err }
	}
	for name, c := range map[string]struct {
		of      freeSpace
		warning string
		metrics []string
	}{
		"room":        {of(diskspace.Free{Bytes: 1 << 40}, nil), "", []string{"skep_disk_free_bytes"}},
		"nearly full": {of(diskspace.Free{Bytes: 100 << 20, Files: 1e6, Counted: true}, nil), "/data has 100 MiB left", []string{"skep_disk_free_bytes"}},
		"few files":   {of(diskspace.Free{Bytes: 1 << 40, Files: 7, Counted: true}, nil), "/data takes 7 more files", []string{"skep_disk_free_bytes"}},
		"gone":        {of(diskspace.Free{}, errors.New("it is gone")), "/data cannot be asked what it takes: it is gone", nil},
	} {
		got := diskWarnings("/data", c.of)
		if want := c.warning != ""; (len(got) == 1) != want || want && !strings.Contains(got[0], c.warning) {
			t.Errorf("%s: warnings %q", name, got)
		}
		var names []string
		for _, f := range diskMetrics("/data", c.of) {
			names = append(names, f.Name)
		}
		if !slices.Equal(names, c.metrics) {
			t.Errorf("%s: metrics %v", name, names)
		}
	}
}
