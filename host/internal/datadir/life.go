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

// bootFile names the start of the machine (https://man7.org/linux/man-pages/man5/proc_sys_kernel.5.html).
// Systems without it have no name: the host before is then not known to be dead.
const bootFile = "/proc/sys/kernel/random/boot_id"

// NewLife names a start of a host on a data directory that is its own.
func NewLife() string { return rand.Text() + " " + readBoot(bootFile) }

// PriorLife returns the last name that was kept in a data directory. It is empty unless the machine has run
// ever since: whoever has locked the directory then knows that the host of that name is dead. A copy of the
// directory on another machine knows nothing.
func PriorLife(dir string) (string, error) {
	text, err := os.ReadFile(filepath.Join(dir, lifeName))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if _, boot, _ := strings.Cut(string(text), " "); boot == "" || boot != readBoot(bootFile) {
		return "", err
	}
	return string(text), err
}

// KeepLife keeps the name of a start.
func KeepLife(dir, life string) error {
	return atomicfile.Replace(filepath.Join(dir, lifeName), []byte(life))
}

// readBoot is empty where the system has no such file.
func readBoot(path string) string {
	text, _ := os.ReadFile(path)
	return strings.TrimSpace(string(text))
}
