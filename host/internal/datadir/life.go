package datadir

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"skep/host/internal/store/atomicfile"
)

// lifeName is the file of a data directory that names the last start of a host beside others.
const lifeName = "life"

// NewLife names a start of a host on a data directory that is its own.
func NewLife(dir string) string { return rand.Text() + " " + place(dir) }

// PriorLife returns the last name that was kept in a data directory. It is empty unless the machine has run
// ever since: whoever has locked the directory then knows that the host of that name is dead. A copy of the
// directory knows nothing: the host that has the original may run.
func PriorLife(dir string) (string, error) {
	text, err := os.ReadFile(filepath.Join(dir, lifeName))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if _, where, _ := strings.Cut(string(text), " "); where == "" || where != place(dir) {
		return "", err
	}
	return string(text), err
}

// KeepLife keeps the name of a start.
func KeepLife(dir, life string) error {
	return atomicfile.Replace(filepath.Join(dir, lifeName), []byte(life))
}
