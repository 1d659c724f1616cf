package process

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// sealedProgram is a program in a memory file that cannot be changed. See memfd_create(2).
type sealedProgram struct {
	file   *os.File
	digest string
}

const allSeals = unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE

// sealProgram copies a program. The digest is taken from the copy.
func sealProgram(program []byte) (_ *sealedProgram, err error) {
	fd, err := unix.MemfdCreate("skep-agent", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|unix.MFD_EXEC)
	if errors.Is(err, unix.EINVAL) { // older kernels lack MFD_EXEC
		fd, err = unix.MemfdCreate("skep-agent", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	}
	if err != nil {
		return nil, fmt.Errorf("hold the program in memory: %w", err)
	}
	i := &sealedProgram{file: os.NewFile(uintptr(fd), "skep-agent")}
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

func (i *sealedProgram) close() error { return i.file.Close() }
