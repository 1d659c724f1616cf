package subprocess

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// services is where those of the system listen.
const services = "/run"

// hideServices empties the directory in which the system's services listen, for this
// process alone: neither landlock nor seccomp can refuse a socket that has a path.
// Who may not do it, as a host that is not root's, goes without.
func hideServices(s spec) error {
	for _, path := range append([]string{s.Dir}, s.Read...) {
		if path == services || strings.HasPrefix(path, services+"/") {
			return nil // it needs something there
		}
	}
	if err := unix.Unshare(unix.CLONE_NEWNS); errors.Is(err, unix.EPERM) {
		return nil
	} else if err != nil {
		return fmt.Errorf("have mounts of its own: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("part the mounts: %w", err)
	}
	err := unix.Mount("tmpfs", services, "tmpfs", unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "size=4k")
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("cover %s: %w", services, err)
	}
	return nil
}
