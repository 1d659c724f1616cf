package sqlite

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"skep/host/internal/pathcheck"
	"skep/host/internal/store/pgtest"
	"skep/host/internal/swarm"
)

func testDigest(data string) string {
	sum := sha256.Sum256([]byte(data))
	return hex.EncodeToString(sum[:])
}

func mustAdd(t *testing.T, m *ServerModules, texts ...string) {
	t.Helper()
	for _, text := range texts {
		mustDo(t, m.AddModule(t.Context(), testDigest(text), []byte(text)))
	}
}

// mustAge makes all rows two hours older.
func mustAge(t *testing.T, m *ServerModules) {
	t.Helper()
	exec(t, m.db, "UPDATE modules SET at = at - 7200000")
}

func mustList(t *testing.T, m *ServerModules) []ServerModule {
	t.Helper()
	list, err := m.ListModules(t.Context(), time.Hour)
	mustDo(t, err)
	return list
}

// TestServerModules: a module that one host keeps is read by all. One that is larger than its reader takes, packed or
// not, is not read.
func TestServerModules(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Schema(t)
	one, other := openShared(t, dsn).ServerModules(), openShared(t, dsn).ServerModules()
	if _, err := one.ReadModule(t.Context(), testDigest("none"), 100); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a module that no host has kept: %v", err)
	}
	packed := string(bytes.Repeat([]byte("packed "), 1000))
	for _, text := range []string{packed, "short", ""} {
		mustAdd(t, one, text)
		if got, err := other.ReadModule(t.Context(), testDigest(text), int64(len(text))); string(got) != text || err != nil {
			t.Errorf("%d bytes, %v", len(got), err)
		}
		var large *pathcheck.SizeError
		if _, err := other.ReadModule(t.Context(), testDigest(text), int64(len(text)-1)); !errors.As(err, &large) || large.Size != int64(len(text)) {
			t.Errorf("a module that is too large: %v", err)
		}
	}
	there, err := other.TouchModules(t.Context(), []string{testDigest("short"), testDigest("none")})
	if err != nil || len(there) != 1 || !there[testDigest("short")] {
		t.Errorf("there are %v, %v", there, err)
	}
	if n := len(mustList(t, other)); n != 3 {
		t.Errorf("%d modules are listed", n)
	}
	if s := openTest(t, t.TempDir()); s.ServerModules() != nil {
		t.Error("a store in a file has modules on a server")
	}
}

// TestServerModuleDamaged: what is not the module's body is damaged, and not away. A host drops it, so that the next
// one that has the module makes it anew.
func TestServerModuleDamaged(t *testing.T) {
	t.Parallel()
	m := openShared(t, pgtest.Schema(t)).ServerModules()
	for _, body := range []string{`\x`, `\x02ffff`, `\x01616e6f74686572`} {
		mustAdd(t, m, "a module")
		exec(t, m.db, `UPDATE modules SET body = '`+body+`'`)
		if _, err := m.ReadModule(t.Context(), testDigest("a module"), 100); !IsDamaged(err) {
			t.Errorf("%s: %v", body, err)
		}
		if n := len(mustList(t, m)); n != 0 {
			t.Errorf("%s: %d rows are left", body, n)
		}
	}
}

// TestServerModuleLater: a module of a codec that this version does not have is not damaged, and stays.
func TestServerModuleLater(t *testing.T) {
	t.Parallel()
	m := openShared(t, pgtest.Schema(t)).ServerModules()
	mustAdd(t, m, "a module")
	exec(t, m.db, `UPDATE modules SET body = '\x7f'`)
	if _, err := m.ReadModule(t.Context(), testDigest("a module"), 100); !errors.Is(err, ErrLaterModule) || IsDamaged(err) {
		t.Error(err)
	}
	if n := len(mustList(t, m)); n != 1 {
		t.Errorf("%d rows are left", n)
	}
}

// TestServerModuleDropped: a module goes as it was listed, unless a host has touched it since, or the host that drops it
// was fenced. Of two hosts that drop it at once one has done so.
func TestServerModuleDropped(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Schema(t)
	one, other := openShared(t, dsn).ServerModules(), openShared(t, dsn).ServerModules()
	mustAdd(t, one, "a module")
	if list := mustList(t, other); len(list) != 1 || list[0].Old {
		t.Errorf("new: %v", list)
	}
	mustAge(t, one)
	list := mustList(t, other)
	if len(list) != 1 || !list[0].Old || list[0].Digest != testDigest("a module") {
		t.Fatalf("old: %v", list)
	}
	_, err := one.TouchModules(t.Context(), []string{list[0].Digest})
	mustDo(t, err)
	if dropped, err := other.DropModule(t.Context(), list[0]); dropped || err != nil {
		t.Errorf("touched since it was listed: dropped is %v, %v", dropped, err)
	}
	list = mustList(t, other)
	exec(t, one.db, fmt.Sprintf("UPDATE hosts SET dead = true WHERE hid = %d", one.hid))
	if dropped, err := one.DropModule(t.Context(), list[0]); dropped || err != nil {
		t.Errorf("by a host that was fenced: dropped is %v, %v", dropped, err)
	}
	var wg sync.WaitGroup
	var dropped [2]bool
	for i := range dropped {
		wg.Go(func() {
			var err error
			if dropped[i], err = other.DropModule(t.Context(), list[0]); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if dropped[0] == dropped[1] {
		t.Errorf("dropped are %v, want one", dropped)
	}
}

// TestServerModuleKept: a module that a host finds there is there afterwards, whatever another one drops meanwhile.
func TestServerModuleKept(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Schema(t)
	one, other := openShared(t, dsn).ServerModules(), openShared(t, dsn).ServerModules()
	digest := testDigest("a module")
	for range 20 {
		mustAdd(t, one, "a module")
		mustAge(t, one)
		list := mustList(t, other)
		var wg sync.WaitGroup
		var dropped bool
		wg.Go(func() { dropped, _ = other.DropModule(t.Context(), list[0]) })
		there, err := one.TouchModules(t.Context(), []string{digest})
		wg.Wait()
		if err != nil || there[digest] == dropped {
			t.Fatalf("found there: %v, dropped: %v, %v", there[digest], dropped, err)
		}
		if n := len(mustList(t, one)); (n == 1) != there[digest] {
			t.Fatalf("found there: %v, rows: %d", there[digest], n)
		}
	}
}

// TestServerModulesRestart: a server that was away for a moment is waited for, also by who used it before.
func TestServerModulesRestart(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t)
	m := openShared(t, server.DSN()).ServerModules()
	m.readers.patience = time.Hour
	mustAdd(t, m, "before")
	if _, err := m.ReadModule(t.Context(), testDigest("before"), 100); err != nil {
		t.Fatal(err)
	}
	server.Kill(t)
	server.Start(t)
	mustAdd(t, m, "after")
	server.Kill(t)
	server.Start(t)
	if _, err := m.ReadModule(t.Context(), testDigest("after"), 100); err != nil {
		t.Error(err)
	}
}

// TestServerModulesAway: without a server nothing is known of a module, which may be there.
func TestServerModulesAway(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t)
	s := openShared(t, server.DSN())
	m := s.ServerModules()
	s.readers.patience = 100 * time.Millisecond
	server.Kill(t)
	_, read := m.ReadModule(t.Context(), testDigest("a"), 100)
	_, list := m.ListModules(t.Context(), 0)
	_, touch := m.TouchModules(t.Context(), []string{testDigest("a")})
	_, drop := m.DropModule(t.Context(), ServerModule{Digest: testDigest("a")})
	for name, err := range map[string]error{"read": read, "list": list, "drop": drop, "touch": touch, "add": m.AddModule(t.Context(), testDigest("a"), nil)} {
		if !errors.Is(err, swarm.ErrUnavailable) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestServerModuleSlow: a body may take longer than other answers. One that stops in its midst, while its connection
// stays, ends.
func TestServerModuleSlow(t *testing.T) {
	t.Parallel()
	w, dsn := wireTo(t, pgtest.Schema(t))
	m := openShared(t, dsn).ServerModules()
	text := make([]byte, 1<<20)
	if _, err := rand.Read(text); err != nil {
		t.Fatal(err)
	}
	mustAdd(t, m, string(text))
	m.readers.patience = 200 * time.Millisecond
	w.left.Store(256 << 10)
	w.pause.Store(int64(300 * time.Millisecond))
	w.armed.Store(true)
	if _, err := m.ReadModule(t.Context(), testDigest(string(text)), 256<<20); err != nil {
		t.Error(err)
	}
	w.left.Store(256 << 10)
	w.holds.Store(true)
	w.armed.Store(true)
	if _, err := m.ReadModule(t.Context(), testDigest(string(text)), 1<<20); !errors.Is(err, swarm.ErrUnavailable) {
		t.Error(err)
	}
}

// TestServerModuleReadOnly: a write waits for a server that is only read, as one that is replaced.
func TestServerModuleReadOnly(t *testing.T) {
	t.Parallel()
	m := openShared(t, pgtest.Schema(t)).ServerModules()
	tries := 0
	err := m.change(t.Context(), 0, func(context.Context) error {
		if tries++; tries == 1 {
			return &pgconn.PgError{Code: "25006"}
		}
		return nil
	})
	if tries != 2 || err != nil {
		t.Errorf("%d attempts, %v", tries, err)
	}
}

// TestTouchBesideModule: a reload, which touches modules, does not wait for a module whose write does not end.
func TestTouchBesideModule(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Schema(t)
	m := openShared(t, dsn).ServerModules()
	m.readers.patience = time.Hour
	mustAdd(t, m, "there", "held")
	holder := waitingHost(t, dsn)
	_, err := holder.Exec(t.Context(), "UPDATE modules SET at = at WHERE size = 4")
	mustDo(t, err)
	added := make(chan error, 1)
	go func() { added <- m.AddModule(t.Context(), testDigest("held"), []byte("held")) }()
	for m.db.Stats().InUse == 0 {
		runtime.Gosched()
	}
	if there, err := m.TouchModules(t.Context(), []string{testDigest("there")}); !there[testDigest("there")] || err != nil {
		t.Error(there, err)
	}
	_, err = holder.Exec(t.Context(), "ROLLBACK")
	mustDo(t, err)
	mustDo(t, <-added)
}

// TestKeysBesideModule: a module whose write does not end holds up neither the first message of a tenant, which needs a
// key, nor a host that reads again what others have changed.
func TestKeysBesideModule(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Schema(t)
	s := openShared(t, dsn)
	s.readers.patience = time.Hour
	holder := waitingHost(t, dsn)
	_, err := holder.Exec(t.Context(), "LOCK TABLE modules")
	mustDo(t, err)
	added := make(chan error, 1)
	go func() { added <- s.ServerModules().AddModule(t.Context(), testDigest("a module"), []byte("a module")) }()
	waiting := pgtest.Number(t, dsn, "SELECT count(*) FROM pg_locks l JOIN pg_class c ON c.oid = l.relation WHERE c.relname = 'modules' AND c.relnamespace = current_schema()::regnamespace AND NOT l.granted")
	for waiting() == 0 {
		runtime.Gosched()
	}
	if _, err := s.codec.ring.Sealer("late"); err != nil {
		t.Error(err)
	}
	if err := s.Refresh(t.Context()); err != nil {
		t.Error(err)
	}
	select {
	case err := <-added:
		t.Error("the module did not wait:", err)
	default:
	}
	_, err = holder.Exec(t.Context(), "ROLLBACK")
	mustDo(t, err)
	mustDo(t, <-added)
}
