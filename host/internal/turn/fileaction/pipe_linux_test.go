package fileaction

import (
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
)

// A pipe without a writer, a socket or a device is neither opened nor waited for.
func TestPipes(t *testing.T) {
	t.Parallel()
	y := newFixture(t, Options{Shared: true, Write: true})
	if err := syscall.Mkfifo(filepath.Join(y.dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(y.dir, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	names := []string{"pipe", "socket"}
	if syscall.Mknod(filepath.Join(y.dir, "zero"), syscall.S_IFCHR|0o600, 1<<8|5) == nil {
		names = append(names, "zero")
	}
	for _, p := range names {
		want(t, p, y.at("read_file", p), `DENIED: "`+p+`" is neither a file nor a directory`)
		want(t, p, y.at("read_directory", p), `INVALID: "`+p+`" is not a directory`)
		want(t, p, y.write(p, "x"), `DENIED: "`+p+`" is no regular file, and is not replaced by one`)
		want(t, p, y.at("delete_file", p), `DENIED: "`+p+`" is neither a file nor a directory`)
	}
}

// A file that becomes a pipe between the check and the opening is not waited for.
func TestSwappedPipe(t *testing.T) {
	t.Parallel()
	y := newFixture(t, Options{Shared: true})
	y.put("file", "x")
	pipe, name := filepath.Join(y.dir, "pipe"), filepath.Join(y.dir, "f")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var swap sync.WaitGroup
	swap.Go(func() {
		for {
			for _, from := range []string{filepath.Join(y.dir, "file"), pipe} {
				_ = os.Link(from, name+".next")
				_ = os.Rename(name+".next", name)
				_ = os.Remove(name + ".next")
			}
			select {
			case <-stop:
				return
			default:
			}
		}
	})
	for range 1000 {
		switch got := y.at("read_file", "f"); got {
		case `"x"`, `DENIED: "f" is neither a file nor a directory`, `NOT_FOUND: there is no "f"`:
		default:
			t.Errorf("read %s", got)
		}
	}
	close(stop)
	swap.Wait()
}
