package atomicfile

import (
	"os"
	"path/filepath"
	"testing"
)

func TestReplace(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path+".part", []byte("left by a crash"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"one", "two"} {
		if err := Replace(path, []byte(text)); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		info, statErr := os.Stat(path)
		if err != nil || statErr != nil || string(got) != text || info.Mode().Perm() != 0o600 {
			t.Errorf("%q, %v, %v, %v", got, info, err, statErr)
		}
	}
	if _, err := os.Lstat(path + ".part"); !os.IsNotExist(err) {
		t.Errorf("the part is still there: %v", err)
	}
	if err := Replace(filepath.Join(path, "below a file"), nil); err == nil {
		t.Error("a file below a file was written")
	}
}
