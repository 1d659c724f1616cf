package diagnosis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"skep/host/internal/api/listener"
	"skep/host/internal/definition/config"
	"skep/host/internal/diskspace"
	"skep/host/internal/pathcheck"
	"skep/host/internal/turn/process"
)

// Options of [Diagnose]. Config and the directories must be set.
type Options struct {
	Config *config.Config
	// DataDir and CacheDir need not be there.
	DataDir, CacheDir string
	// Running: a host with this file runs, and so its addresses are taken.
	Running bool
	Machine Machine
}

// Machine is what the machine tells about itself. Tests replace parts of [ThisMachine].
type Machine struct {
	Now func() time.Time
	// Space is what the file system of a directory still takes.
	Space func(dir string) (diskspace.Free, error)
	// OpenFiles is how many files a process may have open.
	OpenFiles func() uint64
	// Confinements is what confines processes, with a setting of [limits] process_cgroup.
	Confinements func(cgroup string) ([]process.Confinement, error)
	Listen       func(ctx context.Context, address string) (net.Listener, error)
}

// ThisMachine is the machine that the program runs on.
func ThisMachine() Machine {
	return Machine{
		Now: time.Now, Space: diskspace.Of, OpenFiles: listener.MaxOpenFiles, Confinements: process.Confinements,
		Listen: func(ctx context.Context, address string) (net.Listener, error) {
			return new(net.ListenConfig).Listen(ctx, "tcp", address)
		},
	}
}

// Diagnose looks for what is wrong on this machine. It calls no other one but the server of
// [store].
func Diagnose(ctx context.Context, o Options) []Finding {
	d := &diagnosis{Options: o}
	d.checkFile()
	d.checkCache()
	d.checkMachine(ctx)
	d.checkData(ctx)
	d.checkCertificates()
	return d.found
}

// diagnosis gathers findings.
type diagnosis struct {
	Options
	found []Finding
}

func (d *diagnosis) add(id string, severity Severity, subject, fix, format string, args ...any) {
	d.found = append(d.found, Finding{ID: id, Severity: severity, Subject: subject, Message: fmt.Sprintf(format, args...), Fix: fix})
}

// has reports whether there is a finding about a subject.
func (d *diagnosis) has(id, subject string) bool {
	for _, f := range d.found {
		if f.ID == id && f.Subject == subject {
			return true
		}
	}
	return false
}

// checkReplaceable reports a path that others could replace.
func (d *diagnosis) checkReplaceable(id, path string, err error) {
	var weak *pathcheck.Error
	if errors.As(err, &weak) {
		d.add(id, Error, path, "take the right to write away from others, as the message says", "%v", err)
	}
}

func (d *diagnosis) checkFile() {
	file := d.Config.File
	d.checkReplaceable(FileReplaceable, file, pathcheck.File(file))
}
