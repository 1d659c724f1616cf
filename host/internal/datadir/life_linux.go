package datadir

import (
	"fmt"
	"os"
	"strings"
	"syscall"
)

// bootFile names the start of the machine, which its containers share
// (https://man7.org/linux/man-pages/man5/proc_sys_kernel.5.html).
const bootFile = "/proc/sys/kernel/random/boot_id"

// place names a directory of this machine since its start, empty if the system does not say.
func place(dir string) string {
	boot, _ := os.ReadFile(bootFile)
	info, err := os.Stat(dir)
	if err != nil || len(boot) == 0 {
		return ""
	}
	at, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%s %d:%d", strings.TrimSpace(string(boot)), at.Dev, at.Ino)
}
