package subprocess

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// image is a program in memory that nobody can change any more.
type image struct {
	file   *os.File
	digest string
}

const allSeals = unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE

// newImage copies a program. Its digest is taken from the copy.
func newImage(program []byte) (_ *image, err error) {
	fd, err := unix.MemfdCreate("skep-agent", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|unix.MFD_EXEC)
	if errors.Is(err, unix.EINVAL) { // the kernel does not know MFD_EXEC
		fd, err = unix.MemfdCreate("skep-agent", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	}
	if err != nil {
		return nil, fmt.Errorf("hold the program in memory: %w", err)
	}
	i := &image{file: os.NewFile(uintptr(fd), "skep-agent")}
	defer func() {
		if err != nil {
			err = errors.Join(err, i.file.Close())
		}
	}()
	if _, err := i.file.Write(program); err != nil {
		return nil, fmt.Errorf("hold the program in memory: %w", err)
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, allSeals); err != nil {
		return nil, fmt.Errorf("seal the program: %w", err)
	}
	copied := make([]byte, len(program))
	if _, err := i.file.ReadAt(copied, 0); err != nil {
		return nil, fmt.Errorf("read the sealed program: %w", err)
	}
	i.digest = Digest(copied)
	return i, nil
}

func (i *image) close() error { return i.file.Close() }
