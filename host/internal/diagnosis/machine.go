package diagnosis

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"skep/host/internal/api/listener"
	"skep/host/internal/definition/config"
	"skep/host/internal/diskspace"
	"skep/host/internal/pathcheck"
)

func (d *diagnosis) checkMachine(ctx context.Context) {
	d.checkClock()
	d.checkSpace(existing(d.DataDir))
	d.checkOpenFiles()
	if !d.Running {
		d.checkAddress(ctx, "[server] listen", d.Config.Server.Listen)
		d.checkAddress(ctx, "[server] admin_listen", d.Config.Server.AdminListen)
	}
	d.checkConfinement()
}

// clockTolerance is how far files may be ahead, as on a share of another machine.
const clockTolerance = time.Minute

// checkClock compares the clock with what was written last: ids, timeouts and certificates
// go wrong when it was put back.
func (d *diagnosis) checkClock() {
	files, err := os.ReadDir(d.DataDir)
	if err != nil {
		return // checkData reports it
	}
	now := d.Machine.Now()
	for _, f := range files {
		info, err := f.Info()
		if err == nil && info.ModTime().Sub(now) > clockTolerance {
			d.add(ClockBehind, Error, f.Name(), "set the clock of this machine (timedatectl set-ntp true)",
				"the clock says %s, and %s was written at %s", now.UTC().Format(time.DateTime), filepath.Join(d.DataDir, f.Name()), info.ModTime().UTC().Format(time.DateTime))
			return
		}
	}
}

// existing is the directory, or the nearest above that is there.
func existing(dir string) string {
	for {
		if _, err := os.Stat(dir); err == nil || filepath.Dir(dir) == dir {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}

func (d *diagnosis) checkSpace(dir string) {
	free, err := d.Machine.Space(dir)
	if err != nil {
		return // checkData reports a directory that cannot be used
	}
	if free.FewBytes() {
		d.add(DiskLow, Warning, dir, "make room on it, or move the data directory: skep backup, then skep restore elsewhere", "%s", diskspace.Warning(dir, diskspace.Free{Bytes: free.Bytes}))
	}
	if free.FewFiles() {
		free.Bytes = diskspace.LeastBytes
		d.add(InodesLow, Warning, dir, "remove files from it: df -i shows how many it takes", "%s", diskspace.Warning(dir, free))
	}
}

// checkOpenFiles compares what a process may open with what the host takes of it.
func (d *diagnosis) checkOpenFiles() {
	files, most := d.Machine.OpenFiles(), d.Config.Server.MaxConnections
	if fit := listener.ConnectionsFor(files, most); fit != most {
		d.add(OpenFilesLow, Warning, "open files", "raise the limit (ulimit -n, LimitNOFILE of systemd), or lower [server] max_connections",
			"a process may open %d files, and so the host takes %d connections, fewer than [server] max_connections", files, fit)
	}
}

// checkAddress listens for a moment where the host will.
func (d *diagnosis) checkAddress(ctx context.Context, key, address string) {
	l, err := d.Machine.Listen(ctx, address)
	switch {
	case err == nil:
		_ = l.Close() // nothing was served
	case errors.Is(err, syscall.EADDRINUSE):
		d.add(AddressTaken, Error, address, "stop the other program, or change "+key, "another program listens on %s, the address of %s", address, key)
	default:
		d.add(AddressUnusable, Error, address, "change "+key+" to an address of this machine", "%s cannot be used: %v", key, err)
	}
}

// checkConfinement looks at what confines programs, if the file has any.
func (d *diagnosis) checkConfinement() {
	setting := d.Config.Limits.ProcessCgroup
	wantsGroup := setting != "" && setting != "off"
	if !hasPrograms(d.Config) && !wantsGroup {
		return
	}
	all, err := d.Machine.Confinements(setting)
	if err != nil {
		d.add(ConfinementMissing, Error, "processes", "run skep doctor processes", "%v", err)
		return
	}
	for _, c := range all {
		switch {
		case c.InForce:
		case c.Name == "cgroup" && wantsGroup:
			d.add(CgroupUnusable, Warning, setting, "delegate the control group to the host's user, or remove [limits] process_cgroup", "%s", c.Detail)
		case c.Name == "landlock" || c.Name == "seccomp":
			d.add(ConfinementMissing, Warning, c.Name, "run the host on a kernel that has it, or take the exec: sources out of the file", "%s", c.Detail)
		}
	}
}

// hasPrograms reports whether agents or actions of a file are processes.
func hasPrograms(c *config.Config) bool {
	for _, a := range c.Agents {
		if a.Source.Kind == config.SourceExec {
			return true
		}
	}
	for _, a := range c.Actions {
		if a.Source.Kind == config.SourceExec {
			return true
		}
	}
	return false
}

// checkCache looks at the directory of compiled modules. Where it cannot be made a host
// compiles into its data directory.
func (d *diagnosis) checkCache() {
	info, err := os.Stat(d.CacheDir)
	switch {
	case d.CacheDir == "" || errors.Is(err, fs.ErrNotExist) && !isLink(d.CacheDir):
	case err != nil:
		d.add(CacheUnusable, Warning, d.CacheDir, "name another directory in XDG_CACHE_HOME", "compiled modules cannot be kept there: %v", err)
	case !info.IsDir():
		d.add(CacheUnusable, Warning, d.CacheDir, "remove the file, or name another directory in XDG_CACHE_HOME", "compiled modules cannot be kept there: it is a file")
	default:
		d.checkReplaceable(CacheReplaceable, d.CacheDir, pathcheck.Dir(d.CacheDir))
	}
}
