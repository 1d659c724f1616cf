package datadir

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"skep/host/internal/store/atomicfile"
)

// auditNameName is the file of a data directory that names its host in the audit logs of others.
const auditNameName = "audit.name"

// AuditName returns the name of a data directory's host in the audit logs of other hosts. It stays over
// restarts and changes of address; the first call makes it.
func AuditName(dir string) (string, error) {
	name, err := readAuditName(dir)
	if err != nil || name != "" {
		return name, err
	}
	name = rand.Text()
	return name, atomicfile.Replace(filepath.Join(dir, auditNameName), []byte(name))
}

// readAuditName returns the name in a directory, empty for none.
func readAuditName(dir string) (string, error) {
	text, err := os.ReadFile(filepath.Join(dir, auditNameName))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return string(text), err
}
