package audit_test

import (
	"bytes"
	"path/filepath"
	"testing"

	"skep/host/internal/api/audit"
)

// For any file, reading does not panic and accepts no forged entry, and after
// opening the file is whole.
func FuzzVerify(f *testing.F) {
	_, text := small(f, 3)
	f.Add(text)
	f.Add(text[:len(text)-10])
	f.Add(bytes.Repeat([]byte("\n"), 100))
	f.Add([]byte(`{"seq":1,"prev":"","hash":"` + "0" + `"}` + "\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		path := filepath.Join(t.TempDir(), audit.Name)
		put(t, path, text)
		before, err := audit.Verify(path, audit.Expect{})
		if whole := err == nil; whole && before.Entries != int64(bytes.Count(text, []byte{'\n'})) {
			t.Errorf("%+v of %q", before, text)
		}
		l, openErr := audit.Open(path, audit.Options{})
		if openErr != nil {
			return
		}
		record(t, l, 1)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if after, afterErr := audit.Verify(path, audit.Expect{}); err == nil && (afterErr != nil || after.Entries != before.Entries+1) {
			t.Errorf("%+v, %v after %+v", after, afterErr, before)
		}
	})
}
