package datadir

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"skep/host/internal/api/audit"
	"skep/host/internal/store/atomicfile"
)

// hostNameFile is the file of a data directory that names its host in the audit logs of others.
const hostNameFile = "audit.name"

// AuditName returns the name of a data directory's host in the audit logs of other hosts. It stays over
// restarts and changes of address; the first call makes it.
func AuditName(dir string) (string, error) {
	name, err := readAuditName(dir)
	if err != nil || name != "" {
		return name, err
	}
	name = rand.Text()
	return name, atomicfile.Replace(filepath.Join(dir, hostNameFile), []byte(name))
}

// readAuditName returns the name in a directory, empty for none.
func readAuditName(dir string) (string, error) {
	path := filepath.Join(dir, hostNameFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	name := strings.TrimSpace(string(text))
	if err == nil && !audit.IsName(name) {
		err = fmt.Errorf("%s is not as it was written: it has %d bytes, and a name is up to 64 letters, digits and hyphens; put it back, or move it away, and the next start gives the host a new name", path, len(text))
	}
	return name, err
}
