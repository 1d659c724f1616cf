package process_test

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/emptypb"

	"skep/abi"
	"skep/abi/pluginpb"
	"skep/host/internal/turn"
	"skep/host/internal/turn/process"
)

// reach tries one system call on a foreign file or process, and returns the kernel's
// error.
func reach(do, with string) error {
	pid := os.Getppid()
	switch do {
	case "chmod":
		return unix.Chmod(with, 0o666)
	case "fchmod":
		fd, err := unix.Open("/usr", unix.O_RDONLY, 0)
		if err != nil {
			return err
		}
		var was unix.Stat_t
		if err := unix.Fstat(fd, &was); err != nil {
			return err
		}
		return unix.Fchmod(fd, was.Mode&0o7777)
	case "fchmodat2":
		return unix.Fchmodat(unix.AT_FDCWD, with, 0o666, unix.AT_SYMLINK_NOFOLLOW)
	case "chown":
		return unix.Lchown(with, os.Getuid(), os.Getgid())
	case "setxattr":
		return unix.Lsetxattr(with, "user.x", []byte("x"), 0)
	case "utimes":
		return unix.UtimesNanoAt(unix.AT_FDCWD, with, make([]unix.Timespec, 2), 0)
	case "prlimit":
		return unix.Prlimit(pid, unix.RLIMIT_CORE, &unix.Rlimit{}, nil)
	case "own prlimit":
		return unix.Prlimit(0, unix.RLIMIT_CORE, &unix.Rlimit{}, nil)
	case "setpriority":
		return unix.Setpriority(unix.PRIO_PROCESS, pid, 19)
	case "affinity":
		var set unix.CPUSet
		set.Set(0)
		return unix.SchedSetaffinity(pid, &set)
	case "scheduler":
		_, _, e := unix.Syscall(unix.SYS_SCHED_SETSCHEDULER, uintptr(pid), 3, uintptr(0))
		return errnoOf(e)
	case "ioprio":
		_, _, e := unix.Syscall(unix.SYS_IOPRIO_SET, 1, uintptr(pid), 3<<13)
		return errnoOf(e)
	case "shm":
		_, _, e := unix.Syscall(unix.SYS_SHMGET, 0, 4096, 0o600|01000)
		return errnoOf(e)
	case "msg":
		_, _, e := unix.Syscall(unix.SYS_MSGGET, 0, 0o600|01000, 0)
		return errnoOf(e)
	case "sem":
		_, _, e := unix.Syscall(unix.SYS_SEMGET, 0, 1, 0o600|01000)
		return errnoOf(e)
	case "memfd":
		_, err := unix.MemfdCreate("hidden", 0)
		return err
	case "kill":
		return unix.Kill(pid, 0)
	case "abstract":
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		if err != nil {
			return err
		}
		return unix.Connect(fd, &unix.SockaddrUnix{Name: "@" + with})
	case "connect":
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		if err != nil {
			return err
		}
		return unix.Connect(fd, &unix.SockaddrUnix{Name: with})
	case "truncate":
		return unix.Truncate(with, 0)
	case "link":
		return unix.Link(with, "stolen")
	case "symlink":
		if err := unix.Symlink(with, "leads"); err != nil {
			return err
		}
		_, err := os.ReadFile("leads")
		return err
	}
	return fmt.Errorf("no attack %q", do)
}

func errnoOf(e unix.Errno) error {
	if e == 0 {
		return nil
	}
	return e
}

// streams are the streams that the host has opened to this process.
type streams struct {
	mu   sync.Mutex
	open map[string]grpc.ServerStream
}

func (s *streams) see(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	s.mu.Lock()
	s.open[info.FullMethod] = stream
	s.mu.Unlock()
	return next(srv, stream)
}

// unasked sends what the host has not asked for: offers to listen without end, or
// one message that is far too large.
func (s *streams) unasked(what string) error {
	s.mu.Lock()
	broker, stdio := s.open["/plugin.GRPCBroker/StartStream"], s.open["/plugin.GRPCStdio/StreamStdio"]
	s.mu.Unlock()
	message := &emptypb.Empty{}
	if what == "large" {
		message.ProtoReflect().SetUnknown(protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), make([]byte, 8<<20)))
		return stdio.SendMsg(message)
	}
	for id := range uint64(maxOffers) {
		message.ProtoReflect().SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), id+100))
		if err := broker.SendMsg(message); err != nil {
			return err
		}
	}
	return nil
}

const maxOffers = 5000

// handles opens handles until it may not, with calls that cost nothing.
func (a *actor) handles(ctx context.Context, session string) (string, error) {
	for n := 0; ; n++ {
		rsp, err := a.host.Submit(ctx, &pluginpb.OpRequest{Session: session, Op: int32(abi.OpLastError)})
		if err != nil || rsp.Code != 0 {
			return fmt.Sprint(n, " ", string(rsp.GetError())), err
		}
	}
}

// waits waits for several handles, some of op last_error, and returns the ready ones.
func (a *actor) waits(ctx context.Context, session string) (string, error) {
	var handles []int32
	for _, op := range []abi.Op{abi.OpKVGet, abi.OpLastError} {
		rsp, err := a.host.Submit(ctx, &pluginpb.OpRequest{Session: session, Op: int32(op)})
		if err != nil {
			return "", err
		}
		handles = append(handles, rsp.Handle)
	}
	var ready []string
	for _, some := range [][]int32{handles[1:], handles, {handles[1], handles[0]}, handles[:1]} {
		rsp, err := a.host.Wait(ctx, &pluginpb.WaitRequest{Session: session, Handles: some, TimeoutMs: 10})
		if err != nil {
			return "", err
		}
		ready = append(ready, fmt.Sprint(rsp.Code, "/", rsp.Index))
	}
	return strings.Join(ready, " "), nil
}

// never are ops that do not end, of a port that knows no answers but its own.
type never struct{}

func (never) Call(context.Context, abi.Op, []byte) ([]byte, *abi.Error) { return nil, nil }

func (n never) Submit(context.Context, abi.Op, []byte) (turn.Answer, *abi.Error) { return n, nil }

func (never) Wait(_ context.Context, answers []turn.Answer, _ time.Duration) (int, *abi.Error) {
	for _, a := range answers {
		_ = a.(never)
	}
	return 0, abi.Errorf(abi.CodeDeadline, abi.OpKVGet, "timeout", "nothing is ready")
}

func (never) Read(context.Context, []byte) (int, *abi.Error) { return 0, nil }

func (never) Close() {}

// A handle that is no op's is ready at once, and no port is asked for it.
func TestWaitForWhatIsNoOp(t *testing.T) {
	p := newActor(t)
	res := p.Turn(t.Context(), turn.Turn{
		Tenant: "default", Limits: turn.Limits{Memory: 256 << 20}, Input: []byte(`{"do":"waits"}`), Ops: never{}, Clock: &clock{time.Unix(1, 0)},
	})
	if want := fmt.Sprintf("0/0 0/1 0/0 %d/0", abi.CodeDeadline); !strings.Contains(string(res.Output), want) || res.Exit != nil {
		t.Errorf("%s %v, want %q", res.Output, res.Exit, want)
	}
}

// mute never answers that it will end, where the program is called so.
func mute(name string) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		if name == "mute" && strings.HasSuffix(info.FullMethod, "/Shutdown") {
			select {}
		}
		return next(ctx, req)
	}
}

// stall meets the host as it should and lets it ask nothing.
func stall() error {
	own, err := certificate()
	if err != nil {
		return err
	}
	path := filepath.Join(os.Getenv("PLUGIN_UNIX_SOCKET_DIR"), "stall")
	l, err := tls.Listen("unix", path, &tls.Config{Certificates: []tls.Certificate{own}, NextProtos: []string{"h2"}})
	if err != nil {
		return err
	}
	fmt.Printf("1|%d|unix|%s|grpc|%s\n", pluginpb.ProtocolVersion, path, base64.RawStdEncoding.EncodeToString(own.Certificate[0]))
	for {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		// Settings: no stream at all. Then it agrees to the host's.
		_, _ = conn.Write([]byte("\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x00" + "\x00\x00\x00\x04\x01\x00\x00\x00\x00"))
		go func() { _, _ = io.Copy(io.Discard, conn) }()
	}
}

// A process that completes the handshake and then answers nothing delays no start.
func TestStallingProcess(t *testing.T) {
	program, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	_, err = process.Open(t.Context(), process.Options{Command: []string{"/proc/self/exe", process.Command}}.WithStart(2*time.Second),
		process.Source{Name: "stall", Program: program, Memory: 256 << 20})
	if err == nil || !strings.Contains(err.Error(), "it says that it serves, and does not") {
		t.Error(err)
	}
	noneCalled(t, "stall")
}

// A process that does not answer that it will end is ended all the same.
func TestMuteProcessIsStopped(t *testing.T) {
	p, err := open(t, process.Source{Name: "mute", Memory: 256 << 20})
	if err != nil {
		t.Fatal(err)
	}
	pid := pidOf(t, p)
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	gone(t, pid)
}

// Unsolicited data of a process is not kept.
func TestUnaskedMessagesAreNotKept(t *testing.T) {
	p := newActor(t)
	works(t, p)
	before := runtime.NumGoroutine()
	if note, exit := ask(t, t.Context(), p, "unasked", "offers"); note != "sent" || exit != nil {
		t.Fatalf("%q %v", note, exit)
	}
	works(t, p)
	if now := runtime.NumGoroutine(); now > before+maxOffers/10 {
		t.Errorf("%d goroutines, %d before", now, before)
	}
	if note, exit := ask(t, t.Context(), p, "unasked", "large"); exit != nil {
		t.Fatalf("%q %v", note, exit)
	}
	works(t, p)
}

// A guard that is killed, as for want of memory, leaves nothing behind: not what the
// process has detached, nor its directory.
func TestGuardIsKilled(t *testing.T) {
	p := newActor(t)
	pid := pidOf(t, p)
	note, exit := ask(t, t.Context(), p, "fork", "")
	if exit != nil {
		t.Fatal(exit)
	}
	dir, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid))
	if err != nil {
		t.Fatal(err)
	}
	var guard int
	if _, rest, _ := strings.Cut(procFile(t, pid, "stat"), ") "); rest != "" {
		guard = number(t, strings.Fields(rest)[1])
	}
	var hung sync.WaitGroup
	hung.Go(func() {
		if _, exit := ask(t, t.Context(), p, "hang", ""); exit == nil || exit.Kind != turn.ExitProcess || !strings.Contains(exit.Message, "its guard was killed") {
			t.Errorf("the turn in it ended as %v", exit)
		}
	})
	for !p.Busy() {
		runtime.Gosched()
	}
	if err := unix.Kill(guard, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	hung.Wait()
	gone(t, pid)
	gone(t, number(t, note))
	works(t, p)
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s: %v", dir, err)
	}
}

// fill keeps as much as it can in the process's directory: names, or files that have
// none any more.
func fill(how string) error {
	for n := range 50_000 {
		f, err := os.Create(fmt.Sprint("file-", n))
		if err != nil {
			return err
		}
		if how == "names" {
			_ = f.Close()
			continue
		}
		if err := errors.Join(os.Remove(f.Name()), unix.Fallocate(int(f.Fd()), 0, 0, 250<<20)); err != nil {
			return err
		}
		if n == 4 {
			break
		}
	}
	time.Sleep(time.Hour)
	return nil
}

// What a process keeps on disk is bounded, with a name or without.
func TestDiskIsBounded(t *testing.T) {
	for _, how := range []string{"names", "removed"} {
		t.Run(how, func(t *testing.T) {
			p := newActor(t)
			note, exit := ask(t, t.Context(), p, "fill", how)
			if exit == nil || exit.Kind != turn.ExitProcess || !strings.Contains(exit.Message, "files in its directory, and was killed") {
				t.Errorf("%q %v", note, exit)
			}
			works(t, p)
		})
	}
}

// Where the host is root's, what listens in /run is out of reach, though nothing else
// keeps a process from a socket with a path.
func TestServicesAreHidden(t *testing.T) {
	dir, err := os.MkdirTemp("/run", "skep-test-")
	if err != nil {
		t.Skip(err)
	}
	defer os.RemoveAll(dir)
	service, err := net.Listen("unix", filepath.Join(dir, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer service.Close()
	note, exit := ask(t, t.Context(), newActor(t), "reach", "connect:"+service.Addr().String())
	if strings.Contains(note, "done") && !canMount() {
		t.Skip("this user may not mount")
	}
	if !strings.Contains(note, "no such file") || exit != nil {
		t.Errorf("%q %v", note, exit)
	}
}

// hiddenFile is the error for a file that a process may not read.
func hiddenFile() string {
	if canMount() {
		return "no such file"
	}
	return "permission denied"
}

// canMount reports whether this process has CAP_SYS_ADMIN.
func canMount() bool {
	header, data := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, [2]unix.CapUserData{}
	return unix.Capget(&header, &data[0]) == nil && data[0].Effective&(1<<unix.CAP_SYS_ADMIN) != 0
}

// The number of handles is bounded, including handles of op last_error.
func TestHandlesAreBounded(t *testing.T) {
	note, exit := ask(t, t.Context(), newActor(t), "handles", "")
	if want := fmt.Sprint(turn.MaxHandles, " "); !strings.HasPrefix(note, want) || !strings.Contains(note, "LIMIT") || exit != nil {
		t.Errorf("%q %v, want %q", note, exit, want)
	}
}

// Of many connections so many are served as there is room for; one that ends makes
// room.
func TestFewConnections(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	few, ours := process.Few(l, 1), make(chan net.Conn)
	var serving sync.WaitGroup
	defer serving.Wait()
	defer l.Close()
	serving.Go(func() {
		for {
			conn, err := few.Accept()
			if err != nil {
				return
			}
			ours <- conn
		}
	})
	dial := func() net.Conn {
		conn, err := net.Dial("unix", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	dial()
	first := <-ours
	if _, err := dial().Read(make([]byte, 1)); err == nil {
		t.Error("a second one is served")
	}
	if err := errors.Join(first.Close(), first.Close()); err == nil {
		t.Error("closed twice without an error")
	}
	dial()
	second := <-ours
	if _, err := dial().Read(make([]byte, 1)); err == nil {
		t.Error("a connection that was closed twice has made room for two")
	}
	_ = second.Close()
}

// Calls that the user may make and landlock does not cover, but an agent's program may
// not: attributes of foreign files, other processes, memory that no limit counts.
func TestReachesNothingOfItsUser(t *testing.T) {
	file, unreadable := filepath.Join(t.TempDir(), "file"), filepath.Join(t.TempDir(), "unreadable")
	if err := errors.Join(os.WriteFile(file, []byte("x"), 0o600), os.WriteFile(unreadable, []byte("x"), 0o600)); err != nil {
		t.Fatal(err)
	}
	p, err := open(t, process.Source{Name: "actor", Memory: 256 << 20, Read: []string{filepath.Dir(file)}})
	if err != nil {
		t.Fatal(err)
	}
	var was, is unix.Stat_t
	if err := unix.Stat(file, &was); err != nil {
		t.Fatal(err)
	}
	here, err := net.Listen("unix", "@skep-test-"+rand.Text())
	if err != nil {
		t.Fatal(err)
	}
	defer here.Close()
	for do, want := range map[string]string{
		"chmod": "done", "fchmod": "done", "fchmodat2": "done", "chown": "done", "utimes": "done", // and nothing happens
		"setxattr": "operation not permitted", "truncate": "permission denied", "link": "invalid cross-device link", "symlink": hiddenFile(),
		"prlimit": "operation not permitted", "own prlimit": "done", "setpriority": "operation not permitted", "affinity": "operation not permitted",
		"scheduler": "operation not permitted", "ioprio": "operation not permitted", "kill": "operation not permitted",
		"shm": "operation not permitted", "msg": "operation not permitted", "sem": "operation not permitted", "memfd": "operation not permitted",
		"abstract": "operation not permitted",
	} {
		with := file
		if do == "symlink" {
			with = unreadable
		}
		if do == "abstract" {
			with = here.Addr().String()[1:]
		}
		if note, exit := ask(t, t.Context(), p, "reach", do+":"+with); !strings.Contains(note, want) || exit != nil {
			t.Errorf("%s: %q %v, want %q", do, note, exit, want)
		}
	}
	if err := unix.Stat(file, &is); err != nil {
		t.Fatal(err)
	}
	if is.Mode != was.Mode || is.Mtim != was.Mtim || is.Ctim != was.Ctim {
		t.Errorf("the file was %v and is %v", was, is)
	}
}
