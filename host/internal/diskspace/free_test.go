package diskspace_test

import (
	"strings"
	"testing"

	"skep/host/internal/diskspace"
)

func TestOf(t *testing.T) {
	t.Parallel()
	free, err := diskspace.Of(t.TempDir())
	if err != nil || free.Bytes == 0 {
		t.Errorf("%+v, %v", free, err)
	}
	if _, err := diskspace.Of("/there/is/none"); err == nil {
		t.Error("a directory that is not there has space")
	}
}

func TestWarning(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		free diskspace.Free
		want string
	}{
		"enough":            {diskspace.Free{Bytes: diskspace.LeastBytes, Files: diskspace.LeastFiles, Counted: true}, ""},
		"no limit on files": {diskspace.Free{Bytes: diskspace.LeastBytes}, ""},
		"few bytes":         {diskspace.Free{Bytes: diskspace.LeastBytes - 1, Files: diskspace.LeastFiles, Counted: true}, "the disk of d has 511 MiB left"},
		"few files":         {diskspace.Free{Bytes: diskspace.LeastBytes, Files: 3, Counted: true}, "the disk of d takes 3 more files"},
	} {
		if got := diskspace.Warning("d", c.free); !strings.HasPrefix(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
