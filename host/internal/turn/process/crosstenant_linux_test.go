package process_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"skep/abi"
	"skep/abi/pluginpb"
	"skep/host/internal/turn/process"
)

// heldConns are the connections that an attacker keeps open.
var heldConns []net.Conn

// occupy opens many connections to each socket and keeps them. It returns the number that
// were opened.
func occupy(paths string) (string, error) {
	for _, path := range strings.Split(paths, ",") {
		for range 16 {
			conn, err := net.DialTimeout("unix", path, time.Second)
			if err != nil {
				return "", err
			}
			heldConns = append(heldConns, conn)
		}
	}
	return fmt.Sprint(len(heldConns)), nil
}

// late connects to the host with the first turn, where others do it to be described.
func (a *actor) late(ctx context.Context, session string) (string, error) {
	host, err := a.dial(a.hostID)
	if err != nil {
		return "", err
	}
	rsp, err := host.Call(ctx, &pluginpb.OpRequest{Session: session, Op: int32(abi.OpKVGet), Request: []byte("x")})
	return string(rsp.GetBody()), err
}

// dnCreate is DN_CREATE of fcntl(2).
const dnCreate = 4

// observe tries to learn what others do with a file or directory.
func observe(how, path string) error {
	switch how {
	case "inotify":
		_, err := unix.InotifyInit1(0)
		return err
	case "fanotify":
		_, err := unix.FanotifyInit(unix.FAN_REPORT_DFID_NAME, 0)
		return err
	case "handle":
		_, _, err := unix.NameToHandleAt(unix.AT_FDCWD, path, 0)
		return err
	case "stat":
		var st unix.Stat_t
		return unix.Stat(path, &st)
	}
	fd, err := unix.Open("/usr", unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	switch how {
	case "dnotify":
		_, err = unix.FcntlInt(uintptr(fd), unix.F_NOTIFY, dnCreate)
	case "lease":
		_, err = unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_RDLCK)
	case "pipe size":
		_, err = unix.FcntlInt(uintptr(fd), unix.F_SETPIPE_SZ, 1<<20)
	}
	return err
}

// socketsOf lists the sockets in the directory of a tenant's process.
func socketsOf(t *testing.T, p *process.Program, tenant string) (paths []string) {
	t.Helper()
	dir, exit := askOf(t, t.Context(), p, tenant, "getenv", "PLUGIN_UNIX_SOCKET_DIR")
	if exit != nil {
		t.Fatal(exit)
	}
	err := filepath.WalkDir(filepath.Dir(dir), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type() == fs.ModeSocket {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil || len(paths) < 2 { // the host's and the process's
		t.Fatal(paths, err)
	}
	return paths
}

// A stranger who finds the sockets of a tenant's process does not keep it from its host:
// not another tenant's process, and no other process of the user.
func TestConnectionsAreTheProcesses(t *testing.T) {
	p, err := open(t, process.Source{Name: "late", Memory: 256 << 20})
	if err != nil {
		t.Fatal(err)
	}
	paths := socketsOf(t, p, "victim")
	note, exit := askOf(t, t.Context(), p, "attacker", "occupy", strings.Join(paths, ","))
	if exit != nil || canMount() && !strings.Contains(note, "no such file") {
		t.Errorf("the other tenant: %q %v", note, exit)
	}
	for _, path := range paths {
		for range 16 {
			conn, err := net.Dial("unix", path)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = conn.Close() })
		}
	}
	if note, exit := askOf(t, t.Context(), p, "victim", "late", ""); note != "answer to x" || exit != nil {
		t.Errorf("the victim: %q %v", note, exit)
	}
}

// A process cannot watch files, hold them up, or name them without their path.
func TestObservesNoFiles(t *testing.T) {
	file := filepath.Join(t.TempDir(), "of-another-tenant")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := newActor(t)
	for _, how := range []string{"inotify", "fanotify", "handle", "dnotify", "lease", "pipe size", "stat"} {
		want := "operation not permitted"
		if how == "stat" {
			want = "no such file"
		}
		note, exit := ask(t, t.Context(), p, "observe", how+":"+file)
		if how == "stat" && strings.Contains(note, "done") && !canMount() {
			continue // without a root of its own it sees attributes
		}
		if !strings.Contains(note, want) || exit != nil {
			t.Errorf("%s: %q %v, want %q", how, note, exit, want)
		}
	}
}

// A process finds what it may read at its path, also where that leads over links, and its
// own directory at its.
func TestOwnRootHasWhatIsReadable(t *testing.T) {
	dir := t.TempDir()
	target, link := filepath.Join(dir, "target"), filepath.Join(dir, "link")
	err := errors.Join(os.Mkdir(target, 0o700), os.Symlink("target", link), os.WriteFile(filepath.Join(target, "prices"), []byte("tea 250"), 0o600),
		os.WriteFile(filepath.Join(dir, "hidden"), nil, 0o600))
	if err != nil {
		t.Fatal(err)
	}
	p, err := open(t, process.Source{Name: "actor", Memory: 256 << 20, Read: []string{link, filepath.Join(target, "prices")}})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(link, "prices"), filepath.Join(target, "prices")} {
		if note, exit := ask(t, t.Context(), p, "read", path); note != "tea 250" || exit != nil {
			t.Errorf("%s: %q %v", path, note, exit)
		}
	}
	if note, exit := ask(t, t.Context(), p, "observe", "stat:"+filepath.Join(dir, "hidden")); canMount() && !strings.Contains(note, "no such file") || exit != nil {
		t.Errorf("a file beside it: %q %v", note, exit)
	}
	if note, exit := ask(t, t.Context(), p, "read", "/dev/stdin"); note != "" || exit != nil {
		t.Errorf("its input: %q %v", note, exit)
	}
}
