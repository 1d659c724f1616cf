package listener_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"skep/host/internal/api/listener"
)

// Each of the files may be a pipe without a writer, at the start and later: it is
// refused, and the old certificate stays.
func TestPipesInTheFilesPlace(t *testing.T) {
	t.Parallel()
	a := newTestCA(t)
	for _, name := range []string{"cert", "key", "ca"} {
		d := newCertificateFixture(t)
		cert, key := a.issue(2, nextYear())
		d.put(cert, key)
		d.files.ClientCA = d.files.Cert + ".ca"
		d.write(d.files.ClientCA, a.pem())
		path := map[string]string{"cert": d.files.Cert, "key": d.files.Key, "ca": d.files.ClientCA}[name]
		certs := d.load()
		if err := errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o600)); err != nil {
			t.Fatal(err)
		}
		certs.Reload(t.Context())
		if all := strings.Join(certs.Warnings(), "\n"); !strings.Contains(all, path+" is no regular file") {
			t.Errorf("%s: the warnings are %q", name, all)
		}
		if _, err := listener.LoadCertificates(listener.CertificateOptions{Files: d.files}); err == nil || !strings.Contains(err.Error(), path+" is no regular file") {
			t.Errorf("%s: Load = %v", name, err)
		}
		if err := d.files.Check(time.Time{}); err == nil {
			t.Errorf("%s: Check takes a pipe", name)
		}
	}
}

// Files that block for ever, as on a hanging mount, block nothing else: a warning
// is logged, and Run ends.
func TestFilesThatHang(t *testing.T) {
	t.Parallel()
	a, d := newTestCA(t), newCertificateFixture(t)
	d.put(a.issue(2, nextYear()))
	certs := d.load(func(o *listener.CertificateOptions) { o.ReloadEvery = time.Millisecond })
	l := open(t, listener.Limits{}, certs, hello)
	free := make(chan struct{})
	certs.Hang(free, time.Millisecond)
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		certs.Run(ctx)
	}()
	const told = "do not let themselves be read; the old one stays"
	until(t, "the files hang", func() bool { return d.log.count(told) == 1 })
	if all := certs.Warnings(); len(all) != 1 || !strings.Contains(all[0], told) || !strings.Contains(all[0], d.files.Cert) {
		t.Errorf("the warnings are %q", all)
	}
	if n := shown(t, a, l); n != 2 {
		t.Errorf("certificate %d is shown", n)
	}
	certs.Reload(t.Context()) // returns
	stop()
	select {
	case <-over:
	case <-time.After(20 * time.Second):
		t.Error("Run waits for the files")
	}
	close(free)
	until(t, "they are read", func() bool { certs.Reload(t.Context()); return len(certs.Warnings()) == 0 })
}

// A key that everybody can read is worth a word each time one is taken.
func TestExposedKey(t *testing.T) {
	t.Parallel()
	a, d := newTestCA(t), newCertificateFixture(t)
	d.put(a.issue(2, nextYear()))
	certs := d.load()
	for i, c := range []struct {
		mode os.FileMode
		said int
	}{{0o600, 0}, {0o640, 0}, {0o644, 1}, {0o604, 2}, {0o600, 2}} {
		d.put(a.issue(int64(3+i), nextYear()))
		if err := os.Chmod(d.files.Key, c.mode); err != nil {
			t.Fatal(err)
		}
		certs.Reload(t.Context())
		certs.Reload(t.Context())
		if n := d.log.count("everybody on this machine can read the key"); n != c.said {
			t.Errorf("after a key of mode %o there are %d warnings, want %d", c.mode, n, c.said)
		}
	}
	if d.log.count(slog.LevelWarn.String()) != 2 || d.log.count(d.files.Key) != 2 {
		t.Errorf("the log: %s", d.log.buf.String())
	}
}
