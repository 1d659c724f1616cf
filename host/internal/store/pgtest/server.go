// Package pgtest owns the real PostgreSQL server that tests of a store run on: one for each
// test binary, started at its first use in a temporary directory, with a schema for each
// test. It must not know what is stored.
package pgtest

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"skep/host/internal/guests"
)

// Server is a server that only its own directory's socket leads to. It can be killed and
// started again on its files.
type Server struct {
	dir, programs string
	// user runs the server, which refuses to be root's; empty is the user of the test.
	user  string
	input io.WriteCloser
	cmd   *exec.Cmd
}

// shared is the server of this test binary. It ends with the process.
var shared = sync.OnceValues(func() (*Server, error) { return makeServer("") })

var schemas atomic.Int64

// Schema makes a schema on the server of this test binary, removes it when the test ends, and
// returns a DSN that leads to it.
func Schema(t testing.TB) string {
	t.Helper()
	requireServer(t)
	s, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	return s.schema(t)
}

// Place makes a schema that stays as long as the test binary, and returns a DSN that leads to it.
func Place(t testing.TB) string {
	t.Helper()
	requireServer(t)
	s, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	return s.newSchema(t)
}

// Start starts a server for this test alone.
func Start(t testing.TB) *Server {
	t.Helper()
	return start(t, "")
}

// start starts a server with further settings.
func start(t testing.TB, more string) *Server {
	t.Helper()
	requireServer(t)
	s, err := makeServer(more)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.stop() })
	return s
}

// Open starts a server for a program that is no test, until Close.
func Open() (*Server, error) { return makeServer("") }

// Close ends the server and removes its files.
func (s *Server) Close() error { return s.stop() }

// PID is the process whose descendants are the server.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// MakeSchema makes a schema, and returns a DSN that leads to it.
func (s *Server) MakeSchema(ctx context.Context) (dsn string, err error) {
	name := "t" + strconv.FormatInt(schemas.Add(1), 10)
	return s.DSN("search_path", name), s.run(ctx, "CREATE SCHEMA "+name)
}

// requireServer skips a test where no server is installed, unless all programs are required.
func requireServer(t testing.TB) {
	t.Helper()
	if _, err := findPrograms(); err != nil {
		if guests.ToolchainsRequired() {
			t.Fatal(err)
		}
		t.Skipf("the store on PostgreSQL is not tried: %v", err)
	}
}

// findPrograms returns the directory of the server's programs: Debian has them in none of
// PATH, https://wiki.debian.org/PostgreSql.
func findPrograms() (dir string, err error) {
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			return filepath.Dir(path), nil
		}
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) == 0 {
		return "", fmt.Errorf("no initdb in PATH or /usr/lib/postgresql: install postgresql")
	}
	return filepath.Dir(found[len(found)-1]), nil
}

// settings of the server: fsync stays on, as a store demands of a real one.
const settings = `listen_addresses = ''
max_connections = 300
shared_buffers = 32MB
log_min_messages = warning
`

func makeServer(more string) (_ *Server, err error) {
	s, err := newServer()
	if err != nil {
		return nil, err
	}
	if out, err := s.command(`exec "$0" -D data -U skep -A trust -E UTF8 --locale=C --no-sync`, "initdb").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w: %s", err, out)
	}
	if err := s.configure(settings + more); err != nil {
		return nil, err
	}
	return s, s.start()
}

// newServer makes the directory of a server.
func newServer() (s *Server, err error) {
	s = &Server{}
	if s.programs, err = findPrograms(); err != nil {
		return nil, err
	}
	// t.TempDir lies below a directory that only the user of the test may enter.
	if s.dir, err = os.MkdirTemp("", "skep-pg-"); err != nil {
		return nil, err
	}
	return s, s.chooseUser()
}

// configure adds settings; of two with one name the later counts.
func (s *Server) configure(lines string) error {
	file, err := os.OpenFile(filepath.Join(s.dir, "data", "postgresql.auto.conf"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteString(lines + "unix_socket_directories = '" + s.dir + "'\n")
	if err2 := file.Close(); err == nil {
		err = err2
	}
	return err
}

// chooseUser gives the directory to the distribution's user of the server if the test is
// root's.
func (s *Server) chooseUser() error {
	if os.Getuid() != 0 {
		return nil
	}
	owner, err := user.Lookup("postgres")
	if err != nil {
		return err
	}
	uid, err := strconv.Atoi(owner.Uid)
	if err != nil {
		return err
	}
	s.user = owner.Username
	return os.Chown(s.dir, uid, -1)
}

// command runs a script as the server's user in its directory; $0 is one of the programs.
func (s *Server) command(script, program string) *exec.Cmd {
	args := []string{"/bin/sh", "-c", script, filepath.Join(s.programs, program)}
	if s.user != "" {
		args = append([]string{"setpriv", "--reuid=" + s.user, "--regid=" + s.user, "--clear-groups"}, args...)
	}
	cmd := exec.Command(args[0], args[1:]...)
	// What a test has in its environment, secrets among it, is not for a server.
	cmd.Dir, cmd.Env = s.dir, []string{"PATH=" + os.Getenv("PATH")}
	return cmd
}

// serverScript runs the server $0 until standard input ends, at the latest with the process
// of the test: a panic runs no Cleanup. The files go with it, unless a line says otherwise.
// A server that has stopped, which it has not at once, makes no child while it and its children are killed
// (https://man7.org/linux/man-pages/man5/proc_pid_task.5.html); SIGQUIT ends them where the
// system has no such list. While a child has not ended it holds the shared memory, and no server
// starts on the files.
const serverScript = `"$0" -D data >>log 2>&1 & pid=$!
read -r what; kill -STOP $pid
while grep -q '^State:.[RSD]' /proc/$pid/status 2>/dev/null; do sleep 0.01; done
children=$(cat /proc/$pid/task/$pid/children 2>/dev/null) && kill -KILL $pid $children || { kill -QUIT $pid; kill -CONT $pid; }
wait $pid 2>/dev/null
for c in $children; do while grep -q '^State:.[^ZX]' /proc/$c/status 2>/dev/null; do sleep 0.01; done; done
test "$what" = keep || rm -rf "$PWD"`

// Start starts the server again, on its files.
func (s *Server) Start(t testing.TB) {
	t.Helper()
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
}

func (s *Server) start() (err error) {
	cmd := s.command(serverScript, "postgres")
	if s.input, err = cmd.StdinPipe(); err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	s.cmd = cmd
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		err := s.run(context.Background(), "SELECT 1")
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			log, _ := os.ReadFile(filepath.Join(s.dir, "log"))
			return fmt.Errorf("the server does not serve: %w: %s", err, log)
		}
	}
}

// Kill ends the server and its children with SIGKILL. Its files stay.
func (s *Server) Kill(t testing.TB) {
	t.Helper()
	if _, err := io.WriteString(s.input, "keep\n"); err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Wait(); err != nil {
		t.Fatal(err)
	}
}

// stop ends a server and removes its files.
func (s *Server) stop() error {
	if s.cmd != nil {
		_ = s.input.Close()
		_ = s.cmd.Wait()
	}
	return os.RemoveAll(s.dir)
}

// DSN leads to the server, with further parameters as pairs of a name and a value.
func (s *Server) DSN(params ...string) string {
	q := url.Values{"host": {s.dir}}
	for i := 0; i+1 < len(params); i += 2 {
		q.Set(params[i], params[i+1])
	}
	return "postgres://skep@/postgres?" + q.Encode()
}

func (s *Server) schema(t testing.TB) string {
	t.Helper()
	dsn := s.newSchema(t)
	t.Cleanup(func() {
		if err := s.runAt(context.Background(), dsn, "SET client_min_messages = warning; DO $$BEGIN EXECUTE 'DROP SCHEMA ' || current_schema() || ' CASCADE'; END$$"); err != nil {
			t.Error(err)
		}
	})
	return dsn
}

func (s *Server) newSchema(t testing.TB) string {
	t.Helper()
	dsn, err := s.MakeSchema(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return dsn
}

// Exec runs statements on the server, one after the other, as its administrator would.
func (s *Server) Exec(t testing.TB, statements ...string) {
	t.Helper()
	for _, text := range statements {
		if err := s.run(t.Context(), text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
}

// run runs statements on the server, as another program would.
func (s *Server) run(ctx context.Context, sql string) error { return s.runAt(ctx, s.DSN(), sql) }

func (s *Server) runAt(ctx context.Context, dsn, sql string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, sql)
	if err2 := conn.Close(ctx); err == nil {
		err = err2
	}
	return err
}
